// Adapter between spec and layout; see the header.
#include "compiler/artifact/CheckpointSource.h"
#include "compiler/spec/Text.h"

namespace batten {

bool CheckpointSource::find(const std::string &dir, const std::string &tensor, Info &info, std::string &error) {
  const Checkpoint::Tensor *found = checkpoint.lookup(dir, tensor);
  if (!found) {
    error = joinPath(checkpoint.directory(), dir) + ": tensor " + quoted(tensor) + " is missing";
    return false;
  }
  info.where = checkpoint.pathOf(*found) + ": " + tensor;
  info.elements = found->stored->elements;
  const std::string &dtype = found->stored->dtype;
  if (dtype == "F32")
    info.elem = layout::Elem::F32;
  else if (dtype == "F16")
    info.elem = layout::Elem::F16;
  else if (dtype == "BF16")
    info.elem = layout::Elem::BF16;
  else {
    error = info.where + ": " + dtype + " found; the types that are read: F32, F16, BF16";
    return false;
  }
  return true;
}

bool CheckpointSource::read(const std::string &dir, const std::string &tensor, int64_t first, int64_t count,
                            uint8_t *out, std::string &error) {
  const Checkpoint::Tensor *found = checkpoint.lookup(dir, tensor);
  if (!found) {
    error = joinPath(checkpoint.directory(), dir) + ": tensor " + quoted(tensor) + " is missing";
    return false;
  }
  int64_t size = found->stored->dtype == "F32" ? 4 : 2;
  if (llvm::Error failed =
          checkpoint.read(*found, static_cast<uint64_t>(first * size), static_cast<uint64_t>(count * size), out)) {
    error = llvm::toString(std::move(failed));
    return false;
  }
  return true;
}

} // namespace batten
