// The checkpoint as the packer's source of tensors.
#ifndef BATTEN_COMPILER_ARTIFACT_CHECKPOINTSOURCE_H
#define BATTEN_COMPILER_ARTIFACT_CHECKPOINTSOURCE_H

#include "compiler/layout/WeightPacker.h"
#include "compiler/spec/Checkpoint.h"

namespace batten {

/// Reads tensors of a checkpoint that outlives it. F32, F16 and BF16 only; errors name file, tensor and type.
class CheckpointSource : public layout::TensorSource {
public:
  explicit CheckpointSource(const Checkpoint &checkpoint) : checkpoint(checkpoint) {}

  bool find(const std::string &dir, const std::string &tensor, Info &info, std::string &error) override;
  bool read(const std::string &dir, const std::string &tensor, int64_t first, int64_t count, uint8_t *out,
            std::string &error) override;

private:
  const Checkpoint &checkpoint;
};

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_CHECKPOINTSOURCE_H
