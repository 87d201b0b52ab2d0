// `batten inspect --plan`: steps of one plan, with their operands' places and their work.
#include "tools/batten/Inspect.h"

#include "tools/batten/Batches.h"
#include "tools/common/Text.h"

#include <algorithm>

namespace batten::tools {

using nlohmann::ordered_json;

std::string bucketName(const batten_bucket_info_t &bucket) {
  return std::to_string(bucket.tokens) + "x" + std::to_string(bucket.seqs) + "x" + std::to_string(bucket.markers);
}

const char *domainName(uint32_t domain) {
  static const char *const names[] = {"panels", "rows", "tasks", "one"};
  return domain < 4 ? names[domain] : "?";
}

uint64_t mostPairs(const Lane &lane, const batten_bucket_info_t &bucket, uint32_t pairWindow) {
  uint64_t longest = lane.info.maxSeqTokens ? std::min(lane.info.maxSeqTokens, bucket.tokens) : bucket.tokens;
  if (longest == 0 || bucket.seqs == 0)
    return 0;
  uint64_t whole = std::min<uint64_t>(bucket.tokens / longest, bucket.seqs);
  uint64_t rest = whole < bucket.seqs ? bucket.tokens - whole * longest : 0;
  return whole * pairsOf(longest, pairWindow) + pairsOf(rest, pairWindow);
}

namespace {

ordered_json describeOperand(const batten_operand_info_t &operand) {
  static const char *const access[] = {"?", "read", "write", "in place"};
  ordered_json json = {{"kind", operand.isWeight ? "weight" : "buffer"},
                       {"access", access[std::min(operand.access, 3u)]}};
  if (operand.isWeight)
    json["name"] = toString(operand.name);
  else {
    json["buffer"] = operand.buffer;
    json["rows"] = rowKindName(operand.rowKind);
    json["width"] = operand.width;
    json["stride_bytes"] = operand.strideBytes;
  }
  json["element"] = elemName(operand.elem);
  json["offset"] = operand.offset;
  json["bytes"] = operand.bytes;
  return json;
}

} // namespace

ordered_json describePlan(const batten_bundle_t *bundle, const std::string &bundlePath, const std::string &name) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  std::string known;
  for (uint32_t l = 0; l < info.laneCount; ++l) {
    Lane lane = readLane(bundle, l);
    for (uint32_t b = 0; b < lane.buckets.size(); ++b) {
      const batten_bucket_info_t &bucket = lane.buckets[b];
      std::string planName = lane.name + "-" + bucketName(bucket);
      known += (known.empty() ? "" : ", ") + planName;
      if (planName != name)
        continue;
      batten_plan_info_t plan;
      checkIndex(batten_bundle_get_plan(bundle, l, b, &plan));
      ordered_json json = {{"plan", name},
                           {"lane", lane.name},
                           {"target", toString(targetInUse(bundle).name)},
                           {"bucket", {{"tokens", bucket.tokens}, {"seqs", bucket.seqs}, {"markers", bucket.markers}}},
                           {"arena_bytes", plan.arenaBytes},
                           {"arena_lower_bound_bytes", plan.lowerBoundBytes},
                           {"scratch_bytes_per_worker", plan.scratchBytes},
                           {"buffers", plan.bufferCount},
                           {"weights", plan.weightCount},
                           {"kernels", plan.kernelCount},
                           {"steps", ordered_json::array()}};
      const uint64_t rows[4] = {bucket.tokens, bucket.seqs, bucket.markers, 1};
      for (uint32_t s = 0; s < plan.stepCount; ++s) {
        batten_step_info_t step;
        checkIndex(batten_bundle_get_step(bundle, l, b, s, &step));
        uint64_t stepRows = step.rowKind < 4 ? rows[step.rowKind] : 0;
        ordered_json entry = {
            {"label", toString(step.label)},
            {"kernel", toString(step.kernel)},
            {"key", toString(step.key)},
            {"domain", domainName(step.domain)},
            {"rows", rowKindName(step.rowKind)},
            {"flop", step.flopsPerRow * stepRows + step.flopsPerPair * mostPairs(lane, bucket, step.pairWindow)},
            {"flop_per_row", step.flopsPerRow},
            {"flop_per_pair", step.flopsPerPair},
            {"pair_window", step.pairWindow},
            {"activation_bytes", step.bytesPerRow * stepRows},
            {"weight_bytes", step.weightBytes},
            {"scratch_bytes_per_worker", step.scratchBytes},
            {"operands", ordered_json::array()}};
        for (uint32_t o = 0; o < step.operandCount; ++o) {
          batten_operand_info_t operand;
          checkIndex(batten_bundle_get_operand(bundle, l, b, s, o, &operand));
          entry["operands"].push_back(describeOperand(operand));
        }
        json["steps"].push_back(std::move(entry));
      }
      return json;
    }
  }
  fail(bundlePath + ": has no plan '" + name + "', only " + known);
}

std::string planPage(const ordered_json &plan) {
  auto text = [](const ordered_json &value) {
    return value.is_string() ? printable(value.get<std::string>()) : value.dump();
  };
  auto bytes = [](const ordered_json &value) { return humanBytes(value.get<uint64_t>()); };
  std::string page = "plan " + text(plan["plan"]) + " for " + text(plan["target"]) + "\n";
  page += "  arena " + bytes(plan["arena_bytes"]) + " (lower bound " + bytes(plan["arena_lower_bound_bytes"]) +
          "), scratch " + bytes(plan["scratch_bytes_per_worker"]) + " a worker, " + text(plan["buffers"]) +
          " buffers, " + text(plan["weights"]) + " weights, " + text(plan["kernels"]) + " kernels\n\n";
  Table table("rllrrrl");
  table.add({"", "step", "kernel", "MFLOP", "activations", "weights", "operands"});
  double flop = 0;
  for (const ordered_json &step : plan["steps"]) {
    flop += step["flop"].get<double>();
    std::string operands;
    for (const ordered_json &operand : step["operands"]) {
      operands += operands.empty() ? "" : "  ";
      std::string access = operand["access"] == "read" ? "" : operand["access"] == "write" ? ">" : "=";
      if (operand["kind"] == "weight")
        operands += access + text(operand["name"]) + "+" + text(operand["offset"]);
      else
        operands += access + "b" + text(operand["buffer"]) + "[" + text(operand["rows"]) + "," +
                    text(operand["width"]) + "]@" + text(operand["offset"]);
    }
    table.add({std::to_string(&step - &plan["steps"][0]), text(step["label"]), text(step["kernel"]),
               fixed(step["flop"].get<double>() / 1e6, 3), bytes(step["activation_bytes"]), bytes(step["weight_bytes"]),
               operands});
  }
  page += table.str();
  page += "\n  " + fixed(flop / 1e6, 3) +
          " MFLOP for a full bucket. An operand is a weight + its offset in the pack, or a buffer [rows,width]\n"
          "  @ its offset in the arena; > is written, = is updated in place.\n";
  return page;
}

} // namespace batten::tools
