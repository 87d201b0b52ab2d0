// An open bundle: manifest, and for the target in use the packs, the code and the proved plans. Immutable once open, so
// that any number of threads and executors share it; reference counted.
#ifndef BATTEN_RT_BUNDLE_H
#define BATTEN_RT_BUNDLE_H

#include "Cpu.h"
#include "Pack.h"
#include "Plan.h"
#include "Source.h"

namespace batten::rt {

/// The files of one target.
struct TargetFiles {
  TargetFiles() = default;
  ~TargetFiles() {
    for (u64 i = 0; i < planBytes.count(); ++i)
      std::free(planBytes[i]);
  }

  os::Mapping packMemory[2]; // mapped, or read; empty for blobs
  const u8 *packData[2] = {};
  Pack packs[2];
  os::Mapping code;      // the image's R+X segment; empty where the target isn't in use
  Array<u8 *> planBytes; // owned copies; null for blobs
  Array<Plan> plans;     // by Manifest::planIndex
};

class Bundle {
public:
  /// Opens from a source that holds files already (directory or blobs).
  /// Errors: all that batten_bundle_open can give but BUSY and NO_BUCKET.
  [[nodiscard]] Status open(const batten_bundle_options_t &options, batten_error_t &error) noexcept;
  /// Hashes every byte of every file and proves the plans of all targets.
  [[nodiscard]] Status verifyFull(batten_error_t &error) const noexcept;

  [[nodiscard]] const Manifest &manifest() const noexcept { return manifest_; }
  [[nodiscard]] const TargetFiles &files() const noexcept { return files_; }
  [[nodiscard]] const CpuInfo &cpu() const noexcept { return cpu_; }
  [[nodiscard]] u32 target() const noexcept { return target_; }
  /// False where the bundle was opened to be inspected only.
  [[nodiscard]] bool hasCode() const noexcept { return files_.code.data() != nullptr; }
  [[nodiscard]] const u8 *manifestDigest() const noexcept { return manifestDigest_; }
  [[nodiscard]] const Plan &plan(u32 lane, u32 bucket) const noexcept {
    return files_.plans[manifest_.planIndex(lane, bucket)];
  }
  /// First byte of a kernel's code.
  [[nodiscard]] const u8 *entry(const batten_kernel_t &kernel) const noexcept {
    return files_.code.data() + (kernel.entry - manifest_.targets.at(target_).codeOffset);
  }
  [[nodiscard]] const u8 *weight(const batten_weight_t &weight) const noexcept {
    return files_.packData[weight.pack] + weight.offset;
  }
  /// Bytes of the plans of the target in use, as they lie in memory.
  [[nodiscard]] u64 planBytes() const noexcept { return planBytesTotal_; }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// True for the last reference.
  [[nodiscard]] bool release() noexcept { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  Source source;

private:
  [[nodiscard]] Status readManifest(const batten_bundle_options_t &options, batten_error_t &error) noexcept;
  [[nodiscard]] Status chooseTarget(const batten_bundle_options_t &options, batten_error_t &error) noexcept;
  [[nodiscard]] Status loadPack(u32 target, u32 pack, TargetFiles &files, bool inUse,
                                batten_error_t &error) const noexcept;
  [[nodiscard]] Status loadCode(u32 target, os::Mapping &code, batten_error_t &error) const noexcept;
  [[nodiscard]] Status checkImage(u32 target, batten_error_t &error) const noexcept;
  [[nodiscard]] Status loadPlans(u32 target, TargetFiles &files, batten_error_t &error) const noexcept;
  [[nodiscard]] Status verifyHeaders(const TargetFiles &files, u32 target, batten_error_t &error) const noexcept;
  [[nodiscard]] Report reportOf(u32 file, batten_error_t &error) const noexcept {
    return Report(error, manifest_.text(manifest_.files.at(file).path));
  }

  std::atomic<u32> references_{1};
  CpuInfo cpu_;
  batten_load_t load_ = BATTEN_LOAD_MAP;
  bool mapImage_ = false;
  u32 target_ = 0;
  u64 planBytesTotal_ = 0;
  u8 manifestDigest_[32] = {};
  Bytes manifestBytes_;
  Manifest manifest_;
  TargetFiles files_;
};

} // namespace batten::rt

#endif // BATTEN_RT_BUNDLE_H
