// The manifest, verified once: indices, enums, names, paths, stage order, and one plan for each target, lane and bucket.
// After verify the records are read in place without a check. Opens no file: whether the files are there is the bundle's.
#ifndef BATTEN_RT_MANIFEST_H
#define BATTEN_RT_MANIFEST_H

#include "Reader.h"

namespace batten::rt {

class Manifest {
public:
  /// Opens and proves a manifest. The bytes outlive the object.
  /// Errors: CORRUPT, VERSION (format or kernel ABI), OUT_OF_MEMORY.
  [[nodiscard]] Status open(const u8 *data, u64 bytes, bool accelerated, const Report &report) noexcept;

  /// Index of a plan within its target: lanes in order, buckets of the lane's stage in order.
  [[nodiscard]] u32 planIndex(u32 lane, u32 bucket) const noexcept { return laneStart_[lane] + bucket; }
  [[nodiscard]] u32 plansPerTarget() const noexcept { return laneStart_[lanes.count]; }
  /// FILES index of a plan.
  [[nodiscard]] u32 planFile(u32 target, u32 planIndex) const noexcept {
    return planFile_[u64{target} * plansPerTarget() + planIndex];
  }
  [[nodiscard]] u32 bucketCount(u32 lane) const noexcept { return stages.at(lanes.at(lane).stage).bucketCount; }
  [[nodiscard]] batten_bucket_t bucket(u32 lane, u32 bucket) const noexcept {
    return buckets.at(stages.at(lanes.at(lane).stage).firstBucket + u64{bucket});
  }
  [[nodiscard]] Text text(batten_string_t string) const noexcept { return view.verifiedText(string); }

  FileView view;
  batten_producer_t producer = {};
  Records<batten_file_t> files;
  Records<batten_target_t> targets;
  Records<batten_stage_t> stages;
  Records<batten_bucket_t> buckets;
  Records<batten_lane_t> lanes;
  Records<batten_output_t> outputs;
  Records<batten_plan_ref_t> plans;
  Records<batten_note_t> notes;
  Records<batten_self_test_t> selfTests;
  const u32 *words = nullptr;
  u64 wordCount = 0;

private:
  [[nodiscard]] Status verifyProducer(const Report &report) noexcept;
  [[nodiscard]] Status verifyFiles(const Report &report) noexcept;
  [[nodiscard]] Status verifyTargets(const Report &report) noexcept;
  [[nodiscard]] Status verifyStages(const Report &report) noexcept;
  [[nodiscard]] Status verifyLanes(const Report &report) noexcept;
  [[nodiscard]] Status verifyPlans(const Report &report) noexcept;
  [[nodiscard]] Status verifyNotes(const Report &report) noexcept;
  [[nodiscard]] Status verifySelfTests(const Report &report) noexcept;

  Array<u32> laneStart_; // [lanes + 1]: plans of the lanes before
  Array<u32> planFile_;  // [targets][plansPerTarget]
};

} // namespace batten::rt

#endif // BATTEN_RT_MANIFEST_H
