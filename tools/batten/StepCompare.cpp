// See the header.
#include "tools/batten/StepCompare.h"

#include "tools/batten/Difference.h"
#include "tools/common/Text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

namespace batten::tools {

using nlohmann::ordered_json;

namespace {

using Digest = std::array<uint8_t, 32>;

/// The steps of one side and a digest of what each wrote; none where it had no row to work on.
struct Seen {
  std::vector<TracedStep> steps;
  std::vector<std::optional<Digest>> digests;
};

Seen digestSteps(const Side &side, const Batch &batch, const std::string &where) {
  Seen seen;
  seen.steps = readSteps(side.bundle, side.lane, bucketOf(*side.engine, side.lane, batch, where));
  seen.digests.resize(seen.steps.size());
  runTraced(*side.engine, side.lane, batch, where, [&](uint32_t step, const std::vector<float> &rows) {
    batten_sha256(rows.data(), rows.size() * sizeof(float), seen.digests[step].emplace().data());
  });
  return seen;
}

std::vector<float> rowsOf(const Side &side, const Batch &batch, const std::string &where, size_t wanted) {
  std::vector<float> found;
  runTraced(*side.engine, side.lane, batch, where, [&](uint32_t step, const std::vector<float> &rows) {
    if (step == wanted)
      found = rows;
  });
  return found;
}

/// Of each step of a, the step of b with the same label; equal labels in their order.
std::vector<std::optional<size_t>> matchSteps(const Seen &a, const Seen &b) {
  std::map<std::string, std::vector<size_t>> places;
  for (size_t i = 0; i < b.steps.size(); ++i)
    places[b.steps[i].label].push_back(i);
  std::map<std::string, size_t> used;
  std::vector<std::optional<size_t>> matches;
  for (const TracedStep &step : a.steps) {
    const std::vector<size_t> &found = places[step.label];
    size_t index = used[step.label]++;
    matches.push_back(index < found.size() ? std::optional(found[index]) : std::nullopt);
  }
  return matches;
}

void addParting(ordered_json &json, const Seen &a, const Seen &b) {
  for (size_t i = 0; i < std::max(a.steps.size(), b.steps.size()); ++i) {
    auto label = [&](const Seen &side) {
      return i < side.steps.size() ? ordered_json(side.steps[i].label) : ordered_json();
    };
    if (label(a) == label(b))
      continue;
    json["parts_at"] = {{"step", i}, {"a", label(a)}, {"b", label(b)}};
    return;
  }
}

/// Shortest text that reads back as the same float; NaN and infinities by name.
std::string floatText(float value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  std::string text;
  appendFloat(text, value);
  return text;
}

std::string bitsText(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t bytes[] = {uint8_t(bits >> 24), uint8_t(bits >> 16), uint8_t(bits >> 8), uint8_t(bits)};
  return "0x" + hex(bytes);
}

/// Names the first element that differs and says how far the step is apart.
void addElement(ordered_json &first, const TracedStep &step, const Batch &batch, const std::vector<float> &a,
                const std::vector<float> &b) {
  size_t at = 0;
  while (at + 1 < a.size() && std::bit_cast<uint32_t>(a[at]) == std::bit_cast<uint32_t>(b[at]))
    ++at;
  size_t row = at / step.width;
  first["row"] = row;
  first["column"] = at % step.width;
  if (step.rowKind == 0 || step.rowKind == 2) {
    const std::vector<int32_t> &cuts = step.rowKind == 0 ? batch.cuSeqlens : batch.cuMarkers;
    size_t sequence = size_t(std::upper_bound(cuts.begin(), cuts.end(), int32_t(row)) - cuts.begin()) - 1;
    first["sequence"] = sequence;
    first["index"] = row - size_t(cuts[sequence]);
  }
  Difference difference;
  difference.add(a.data(), b.data(), a.size() / step.width, step.width, 0);
  first["a"] = floatText(a[at]);
  first["b"] = floatText(b[at]);
  first["bits_a"] = bitsText(a[at]);
  first["bits_b"] = bitsText(b[at]);
  first["apart"] = std::abs(double(a[at]) - double(b[at]));
  first["bits_differ"] = difference.bitsDiffer;
  first["elements"] = a.size();
  first["max_abs"] = difference.maxAbs;
}

} // namespace

ordered_json compareSteps(const Side &a, const Side &b, const Batch &batch, const std::string &where) {
  const Seen seenA = digestSteps(a, batch, where), seenB = digestSteps(b, batch, where);
  const std::vector<std::optional<size_t>> matches = matchSteps(seenA, seenB);
  ordered_json json = {{"steps", std::count_if(matches.begin(), matches.end(), [](auto match) { return bool(match); })},
                       {"same_bits", true}};
  addParting(json, seenA, seenB);
  for (size_t i = 0; i < matches.size(); ++i) {
    if (!matches[i])
      continue;
    const size_t j = *matches[i];
    const TracedStep &stepA = seenA.steps[i], &stepB = seenB.steps[j];
    const bool sameShape = stepA.rowKind == stepB.rowKind && stepA.width == stepB.width;
    if (sameShape && seenA.digests[i] == seenB.digests[j])
      continue;
    json["same_bits"] = false;
    ordered_json &first = json["first"] = {{"label", stepA.label},
                                           {"step_a", i},
                                           {"step_b", j},
                                           {"kernel_a", stepA.kernel},
                                           {"kernel_b", stepB.kernel},
                                           {"rows_a", rowKindName(stepA.rowKind)},
                                           {"rows_b", rowKindName(stepB.rowKind)},
                                           {"width_a", stepA.width},
                                           {"width_b", stepB.width}};
    if (sameShape)
      addElement(first, stepA, batch, rowsOf(a, batch, where, i), rowsOf(b, batch, where, j));
    break;
  }
  return json;
}

std::string stepsPage(const ordered_json &steps) {
  auto text = [](const ordered_json &value) {
    return value.is_null() ? "no step" : value.is_string() ? printable(value.get<std::string>()) : value.dump();
  };
  std::string page;
  if (steps.contains("parts_at"))
    page += "  plans part at step " + text(steps["parts_at"]["step"]) + ": A has " + text(steps["parts_at"]["a"]) +
            ", B has " + text(steps["parts_at"]["b"]) + "; steps are matched by label\n";
  if (!steps.contains("first"))
    return page + "  " + text(steps["steps"]) + " steps match and give the same bits\n";
  const ordered_json &first = steps["first"];
  page += "  the first step that differs is " + text(first["label"]) + ", step " + text(first["step_a"]) +
          " of A (kernel " + text(first["kernel_a"]) + ") and " + text(first["step_b"]) + " of B (kernel " +
          text(first["kernel_b"]) + ")\n";
  if (!first.contains("row"))
    return page + "    it gives " + text(first["rows_a"]) + " x " + text(first["width_a"]) + " in A, " +
           text(first["rows_b"]) + " x " + text(first["width_b"]) + " in B\n";
  page += "    row " + text(first["row"]);
  if (first.contains("sequence"))
    page += std::string(first["rows_a"] == "tokens" ? " (token " : " (marker ") + text(first["index"]) +
            " of sequence " + text(first["sequence"]) + ")";
  else if (first["rows_a"] == "seqs")
    page += " (a sequence each)";
  page += ", column " + text(first["column"]) + ": " + text(first["a"]) + " (" + text(first["bits_a"]) + ") in A, " +
          text(first["b"]) + " (" + text(first["bits_b"]) + ") in B, " + significant(first["apart"].get<double>()) +
          " apart\n";
  return page + "    " + text(first["bits_differ"]) + " of " + text(first["elements"]) +
         " elements differ, by at most " + significant(first["max_abs"].get<double>()) + "\n";
}

} // namespace batten::tools
