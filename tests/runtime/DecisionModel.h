// The test model with a lane that reads markers and sequence types: "decide" takes the place of "embed" and gathers marker
// rows, then adds them up by sequence. For what only such lanes show; its plain loops stand beside it.
#ifndef BATTEN_TESTS_DECISIONMODEL_H
#define BATTEN_TESTS_DECISIONMODEL_H

#include "TestModel.h"

namespace batten::test {

inline constexpr uint32_t kSeqTypes = 3;

/// Lane 0 "decide", outputs "gathered" (markers), "decision" and "embedding" (seqs); lane 1 "encode" as in modelSpec. A
/// self-test of lane 0 with markers and sequence types.
BundleSpec decisionSpec(const std::vector<Bucket> &buckets = {{8, 4, 4}, {32, 8, 16}, {200, 64, 64}});

struct Decision {
  std::vector<float> gathered; ///< [markers, kWidth]
  std::vector<float> decision; ///< [seqs, kWidth]
};
/// Plain loops over the same weights.
Decision decide(const Batch &batch);
/// Runs lane "decide" and copies its outputs; fails the test where the run fails. bucket UINT32_MAX: any.
Decision runDecide(batten_executor_t *executor, const Batch &batch, uint32_t bucket = UINT32_MAX);
/// Sequences of these lengths with 0 to 6 markers each (repeated and out of order; none where a sequence is empty) and a
/// type, drawn from seed.
Batch makeMarkedBatch(const std::vector<uint32_t> &lengths, uint32_t seed);

} // namespace batten::test

#endif // BATTEN_TESTS_DECISIONMODEL_H
