// Writes bundles for tests from plain records, without the compiler. A spec is filled, bent where a test wants it, and
// serialized with every digest right, so that the structural verifier meets what was bent. reseal makes the digests of
// changed bytes right again.
#ifndef BATTEN_TESTS_BUNDLEBUILDER_H
#define BATTEN_TESTS_BUNDLEBUILDER_H

#include "batten/batten.h"
#include "batten/format.h"
#include "batten/kernel.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace batten::test {

using FileBytes = std::vector<uint8_t>;
/// Path within the bundle -> bytes.
using Files = std::map<std::string, FileBytes>;

/// The STRINGS section of a file.
struct Strings {
  std::string bytes;
  batten_string_t add(std::string_view text);
};

/// Collects sections and makes a file of them, header digest and all.
class FileWriter {
public:
  explicit FileWriter(uint32_t kind) : kind_(kind) {}
  void add(uint32_t kind, uint32_t recordBytes, const void *data, uint64_t count, uint64_t alignment = 64);
  template <typename T> void add(uint32_t kind, const std::vector<T> &records) {
    add(kind, sizeof(T), records.data(), records.size());
  }
  FileBytes finish() const;

private:
  struct Section {
    batten_section_t record;
    FileBytes bytes;
    uint64_t alignment;
  };
  uint32_t kind_;
  std::vector<Section> sections_;
};

struct PackSpec {
  std::string path;
  batten_pack_t pack = {};
  Strings strings;
  std::vector<batten_tensor_t> tensors; // offsets count from the start of DATA
  FileBytes data;

  /// Adds a tensor in its layout. values [rows][cols].
  void add(std::string_view name, uint32_t layout, uint32_t rows, uint32_t cols, const std::vector<float> &values);
};

struct PlanSpec {
  std::string path;
  uint32_t lane = 0, bucket = 0, target = 0; // manifest indices
  batten_plan_t plan = {};                   // digests are filled when serialized
  Strings strings;
  std::vector<batten_buffer_t> buffers;
  std::vector<batten_weight_t> weights; // offsets are filled from the pack's tensor of that name
  std::vector<batten_kernel_t> kernels;
  std::vector<batten_operand_t> operands;
  std::vector<batten_step_t> steps;
  std::vector<batten_plan_output_t> outputs;
  bool ownDigests = false; // keep the three digests as they are

  void addStep(std::string_view label, uint32_t kernel, uint32_t rowKind, std::vector<batten_operand_t> operands);
};

struct BundleSpec {
  Strings strings;
  batten_producer_t producer = {};
  std::vector<batten_target_t> targets; // file indices by the order of Files below
  std::vector<batten_stage_t> stages;
  std::vector<batten_bucket_t> buckets;
  std::vector<batten_lane_t> lanes;
  std::vector<batten_output_t> outputs;
  std::vector<batten_note_t> notes;
  std::vector<uint32_t> words;
  std::vector<batten_self_test_t> selfTests;
  std::vector<PackSpec> packs;                           // common, panels; shared by all targets
  std::vector<std::pair<std::string, FileBytes>> images; // one a target
  std::vector<PlanSpec> plans;
  std::vector<batten_file_t> files; // filled by serialize; bend sees and may change them

  /// FILES order: packs, images, plans.
  uint32_t imageFile(uint32_t target) const { return static_cast<uint32_t>(packs.size()) + target; }
  uint32_t planFile(uint32_t plan) const { return static_cast<uint32_t>(packs.size() + images.size()) + plan; }
  /// Last change of the manifest's records before its bytes are made; may be empty.
  std::function<void(BundleSpec &, std::vector<batten_plan_ref_t> &)> bend;
};

/// All files of the bundle.
Files serialize(BundleSpec spec);

/// Makes digests right again after bytes were changed in place. Knows where the records are from the intact files; sizes
/// must not change.
class Sealer {
public:
  explicit Sealer(const Files &intact);
  /// Bytes of a file by FILES index, or of the manifest for kManifest.
  using Access = std::function<uint8_t *(size_t file)>;
  static constexpr size_t kManifest = SIZE_MAX;
  size_t fileCount() const { return files_.size(); }
  const std::string &path(size_t file) const { return files_[file].path; }
  uint64_t bytes(size_t file) const { return file == kManifest ? manifestBytes_ : files_[file].record.bytes; }
  const batten_file_t &record(size_t file) const { return files_[file].record; }
  /// Everything that depends on one changed file (or on the manifest).
  void seal(size_t changed, const Access &data) const;
  void sealAll(const Access &data) const;

private:
  struct File {
    std::string path;
    batten_file_t record;
    size_t plan = 0; // plans: where the PLAN record is
    batten_target_t target = {};
  };
  void sealFile(size_t file, const Access &data) const;
  void sealPlan(size_t file, const Access &data) const;
  std::vector<File> files_;
  size_t filesAt_ = 0;
  uint64_t manifestBytes_ = 0;
};
/// All digests of changed files.
void reseal(Files &files, const Files &original);
/// Sets header.digest of a file, covering [0, coveredBytes).
void sealHeader(uint8_t *file, uint64_t coveredBytes);
inline void sealHeader(FileBytes &file, uint64_t coveredBytes) { sealHeader(file.data(), coveredBytes); }

/// First byte of a section of an intact file; npos where it isn't there.
size_t sectionOffset(const FileBytes &file, uint32_t kind);
/// Its records; 0 where it isn't there.
size_t sectionCount(const FileBytes &file, uint32_t kind);

/// Files as blobs, at 64-byte boundaries. The bytes may be changed in place.
class Blobs {
public:
  explicit Blobs(const Files &files);
  const std::vector<batten_blob_t> &list() const { return list_; }
  /// Bytes of a file, to be changed.
  uint8_t *data(const std::string &path);

private:
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<batten_blob_t> list_;
};

/// A directory that is removed with the object.
class TempDir {
public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;
  const std::string &path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
  std::string path_;
};

/// Writes the files below a new directory, modes 755 and 644 whatever the umask.
void writeFiles(const Files &files, const std::string &directory);
FileBytes readBytes(const std::string &path);

} // namespace batten::test

#endif // BATTEN_TESTS_BUNDLEBUILDER_H
