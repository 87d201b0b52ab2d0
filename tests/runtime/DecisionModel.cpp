// See DecisionModel.h.
#include "DecisionModel.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace batten::test {
namespace {

constexpr uint64_t kStride = 128; // of width 20

/// Appends gather and decide to a plan of modelSpec: buffers 5 gathered, 6 decision, kernels 8 and 9.
void extend(PlanSpec &spec, const Bucket &bucket) {
  const uint64_t gathered = bucket.markers * kStride, decision = bucket.seqs * kStride, x = bucket.tokens * kStride;
  batten_plan_t &plan = spec.plan;
  spec.buffers.push_back({BATTEN_ROWS_MARKERS, kWidth, BATTEN_ELEM_F32, 0, kStride, plan.arenaBytes});
  spec.buffers.push_back({BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0, kStride, plan.arenaBytes + gathered});
  plan.arenaBytes += gathered + decision;
  plan.lowerBoundBytes = std::max(plan.lowerBoundBytes, x + 2 * decision + gathered);
  for (const char *name : {"gather_markers_20", "decide_20"}) {
    const auto [entry, bytes] = kernelEntry(name);
    spec.kernels.push_back({spec.strings.add(name), spec.strings.add("width = 20"), entry, bytes, BATTEN_DOMAIN_ROWS, 0,
                            0, 0, std::string_view(name) == "decide_20" ? 4u : 2u, 0});
  }
  auto in = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_BUFFER, i, BATTEN_ACCESS_READ, 0}; };
  auto out = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_BUFFER, i, BATTEN_ACCESS_WRITE, 0}; };
  const batten_operand_t words{BATTEN_OPERAND_WEIGHT, 0, BATTEN_ACCESS_READ, 0};
  spec.addStep("gather", 8, BATTEN_ROWS_MARKERS, {in(0), out(5)});
  spec.addStep("decide", 9, BATTEN_ROWS_SEQS, {words, in(0), in(5), out(6)});
  spec.outputs = {{spec.strings.add("gathered"), 5, 0},
                  {spec.strings.add("decision"), 6, 0},
                  {spec.strings.add("embedding"), 4, 0}};
}

} // namespace

BundleSpec decisionSpec(const std::vector<Bucket> &buckets) {
  BundleSpec spec = modelSpec(buckets);
  for (PlanSpec &plan : spec.plans) {
    if (plan.lane != 0)
      continue;
    extend(plan, buckets[plan.bucket]);
    plan.plan.lane = plan.strings.add("decide");
    plan.path.replace(plan.path.find("embed"), 5, "decide");
  }
  spec.outputs.insert(spec.outputs.begin(),
                      {{spec.strings.add("gathered"), BATTEN_ROWS_MARKERS, kWidth, BATTEN_ELEM_F32, 0},
                       {spec.strings.add("decision"), BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0}});
  spec.lanes[0].name = spec.strings.add("decide"), spec.lanes[0].outputCount = 3;
  spec.lanes[0].inputs |= BATTEN_INPUT_MARKERS | BATTEN_INPUT_SEQ_TYPES, spec.lanes[0].seqTypeCount = kSeqTypes;
  spec.lanes[1].firstOutput = 3;
  // ids, cu_seqlens, markers, cu_markers, seq_types
  spec.words = {1, 2, 3, 4, 5, 0, 3, 5, 2, 0, 1, 0, 2, 3, 2, 0};
  batten_self_test_t &test = spec.selfTests[0];
  test.markers = 3, test.markerPos = 8, test.cuMarkers = 11, test.seqTypes = 14;
  Batch batch;
  batch.ids = {1, 2, 3, 4, 5}, batch.cuSeqlens = {0, 3, 5};
  batch.markers = {2, 0, 1}, batch.cuMarkers = {0, 2, 3}, batch.seqTypes = {2, 0};
  const Decision expected = decide(batch);
  std::vector<float> all = expected.gathered;
  all.insert(all.end(), expected.decision.begin(), expected.decision.end());
  const Outputs outputs = reference(batch);
  all.insert(all.end(), outputs.pooled.begin(), outputs.pooled.end());
  batten_sha256(all.data(), all.size() * 4, test.digest);
  return spec;
}

Decision decide(const Batch &batch) {
  const std::vector<float> hidden = reference(batch).hidden;
  const float *words = wordTable();
  Decision out;
  for (uint32_t s = 0; s < batch.seqs(); ++s) {
    const int32_t begin = batch.cuSeqlens[s], end = batch.cuSeqlens[s + 1];
    const uint32_t type = batch.seqTypes.empty() ? 0 : static_cast<uint32_t>(batch.seqTypes[s]);
    std::vector<float> sum(words + type * kWidth, words + (type + 1) * kWidth);
    auto add = [&](int32_t row) {
      for (uint32_t c = 0; c < kWidth; ++c)
        sum[c] += hidden[static_cast<size_t>(row) * kWidth + c];
    };
    if (end > begin)
      add(begin);
    for (int32_t m = batch.markers.empty() ? 0 : batch.cuMarkers[s];
         !batch.markers.empty() && m < batch.cuMarkers[s + 1]; ++m) {
      const int32_t row = begin + batch.markers[static_cast<size_t>(m)];
      add(row);
      out.gathered.insert(out.gathered.end(), hidden.begin() + row * kWidth, hidden.begin() + (row + 1) * kWidth);
    }
    out.decision.insert(out.decision.end(), sum.begin(), sum.end());
  }
  return out;
}

Decision runDecide(batten_executor_t *executor, const Batch &batch, uint32_t bucket) {
  Decision out;
  const uint32_t markers = static_cast<uint32_t>(batch.markers.size());
  out.gathered.resize(markers * kWidth + 1), out.decision.resize(batch.seqs() * kWidth + 1);
  batten_output_view_t views[3] = {};
  views[0].copyTo = out.gathered.data(), views[0].copyBytes = markers * kWidth * 4;
  views[1].copyTo = out.decision.data(), views[1].copyBytes = batch.seqs() * kWidth * 4;
  batten_error_t error;
  const batten_batch_t view = batch.view();
  if (bucket == UINT32_MAX)
    EXPECT_EQ(batten_run(executor, &view, views, 3, nullptr, &error), BATTEN_OK) << error.message;
  else
    EXPECT_EQ(batten_run_in_bucket(executor, 0, bucket, &view, views, 3, &error), BATTEN_OK) << error.message;
  EXPECT_EQ(views[0].rows, markers);
  EXPECT_EQ(views[1].rows, batch.seqs());
  out.gathered.pop_back(), out.decision.pop_back();
  return out;
}

Batch makeMarkedBatch(const std::vector<uint32_t> &lengths, uint32_t seed) {
  Batch batch = makeBatch(lengths, seed);
  std::mt19937 random(seed + 1);
  batch.cuMarkers = {0};
  for (uint32_t length : lengths) {
    for (uint32_t count = length ? random() % 7 : 0; count > 0; --count)
      batch.markers.push_back(static_cast<int32_t>(random() % length));
    batch.cuMarkers.push_back(static_cast<int32_t>(batch.markers.size()));
    batch.seqTypes.push_back(static_cast<int32_t>(random() % kSeqTypes));
  }
  return batch;
}

} // namespace batten::test
