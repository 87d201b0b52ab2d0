// Batches in, outputs out.
#include "tools/batten/Batches.h"

#include "tools/common/Safetensors.h"
#include "tools/common/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace batten::tools {

batten_batch_t Batch::view() const {
  batten_batch_t view = BATTEN_BATCH_INIT;
  // data() of an empty vector may be NULL, which the runtime may read as "absent": point at something.
  static const int32_t nothing = 0;
  auto pointer = [](const std::vector<int32_t> &values) { return values.empty() ? &nothing : values.data(); };
  view.tokenIds = pointer(ids);
  view.cuSeqlens = pointer(cuSeqlens);
  view.tokenTypes = hasTypes ? pointer(types) : nullptr;
  view.markers = hasMarkers ? pointer(markers) : nullptr;
  view.cuMarkers = hasMarkers ? pointer(cuMarkers) : nullptr;
  view.seqTypes = hasSeqTypes ? pointer(seqTypes) : nullptr;
  view.tokenCount = tokenCount();
  view.seqCount = seqCount();
  view.markerCount = markerCount();
  return view;
}

uint64_t pairsOf(uint64_t length, uint32_t pairWindow) {
  if (pairWindow == 0 || pairWindow >= length)
    return length * length;
  uint64_t reach = pairWindow - 1;
  return length * (2 * reach + 1) - reach * (reach + 1); // less what both ends cut off
}

uint64_t Batch::pairCount(uint32_t pairWindow) const {
  uint64_t pairs = 0;
  for (size_t s = 0; s + 1 < cuSeqlens.size(); ++s)
    pairs += pairsOf(uint64_t(cuSeqlens[s + 1] - cuSeqlens[s]), pairWindow);
  return pairs;
}

void Batch::append(const Sequence &sequence) {
  if (sequence.hasTypes && !hasTypes)
    types.assign(ids.size(), 0);
  if (sequence.hasType && !hasSeqTypes)
    seqTypes.assign(seqCount(), 0);
  hasTypes |= sequence.hasTypes;
  hasMarkers |= sequence.hasMarkers;
  hasSeqTypes |= sequence.hasType;
  ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
  if (sequence.hasTypes)
    types.insert(types.end(), sequence.types.begin(), sequence.types.end());
  else if (hasTypes)
    types.resize(ids.size(), 0);
  markers.insert(markers.end(), sequence.markers.begin(), sequence.markers.end());
  if (hasSeqTypes)
    seqTypes.push_back(sequence.type);
  cuSeqlens.push_back(int32_t(ids.size()));
  cuMarkers.push_back(int32_t(markers.size()));
}

Batch readBatch(const std::string &path) {
  SafetensorsReader reader(path);
  const std::vector<std::string> known = {"token_ids", "cu_seqlens", "token_types",
                                          "markers",   "cu_markers", "seq_types"};
  for (const StoredTensor &tensor : reader.tensors())
    if (std::find(known.begin(), known.end(), tensor.name) == known.end())
      fail(path + ": unknown tensor " + printable(tensor.name) + didYouMean(tensor.name, known));
  auto read = [&](const char *name, std::vector<int32_t> &values) {
    const StoredTensor *tensor = reader.find(name);
    if (tensor)
      values = reader.readInt32(*tensor);
    return tensor != nullptr;
  };
  auto wantCount = [&](const char *name, size_t found, size_t wanted, const char *why) {
    if (found != wanted)
      fail(path + ": tensor " + name + " has " + std::to_string(found) + " elements, " + std::to_string(wanted) +
           " wanted: " + why);
  };
  Batch batch;
  if (!read("token_ids", batch.ids))
    fail(path + ": tensor token_ids is missing");
  if (!read("cu_seqlens", batch.cuSeqlens))
    fail(path + ": tensor cu_seqlens is missing");
  if (batch.cuSeqlens.empty())
    fail(path + ": tensor cu_seqlens has 0 elements, at least 1 wanted: one more than sequences");
  if (batch.ids.size() > std::numeric_limits<int32_t>::max())
    fail(path + ": tensor token_ids has " + std::to_string(batch.ids.size()) + " elements, at most 2147483647 wanted");
  size_t seqCount = batch.cuSeqlens.size() - 1;
  batch.hasTypes = read("token_types", batch.types);
  if (batch.hasTypes)
    wantCount("token_types", batch.types.size(), batch.ids.size(), "one a token");
  batch.hasMarkers = read("markers", batch.markers);
  bool hasCuMarkers = read("cu_markers", batch.cuMarkers);
  if (batch.hasMarkers != hasCuMarkers)
    fail(path + ": tensor " + (hasCuMarkers ? "markers" : "cu_markers") +
         " is missing: markers and cu_markers come together");
  if (batch.hasMarkers)
    wantCount("cu_markers", batch.cuMarkers.size(), seqCount + 1, "one more than sequences");
  else
    batch.cuMarkers.assign(seqCount + 1, 0);
  batch.hasSeqTypes = read("seq_types", batch.seqTypes);
  if (batch.hasSeqTypes)
    wantCount("seq_types", batch.seqTypes.size(), seqCount, "one a sequence");
  return batch;
}

Batch makeBatch(const Lane &lane, uint32_t tokens, uint32_t seqs) {
  auto roomy = std::find_if(lane.buckets.begin(), lane.buckets.end(), [&](const batten_bucket_info_t &bucket) {
    return tokens <= bucket.tokens && seqs <= bucket.seqs && bucket.markers != 0;
  });
  const bool marks = lane.info.readsMarkers && roomy != lane.buckets.end();
  const uint32_t mostMarkers = marks ? std::min(4u, roomy->markers / seqs) : 0;
  Batch batch;
  uint32_t state = 1;
  for (uint32_t s = 0; s < seqs; ++s) {
    Batch::Sequence sequence;
    const uint32_t length = tokens / seqs + (s < tokens % seqs ? 1 : 0), markers = std::min(mostMarkers, length);
    for (uint32_t m = 0; m < markers; ++m)
      sequence.markers.push_back(int32_t(uint64_t(m) * length / markers));
    sequence.hasMarkers = lane.info.readsMarkers;
    sequence.hasType = lane.info.readsSeqTypes;
    sequence.type = sequence.hasType ? int32_t(s % lane.info.seqTypeCount) : 0;
    sequence.ids.resize(length);
    for (int32_t &id : sequence.ids) {
      state = state * 1664525u + 1013904223u;
      id = lane.info.idCount ? int32_t(uint64_t(state) * lane.info.idCount >> 32) : 0;
    }
    batch.append(sequence);
  }
  return batch;
}

Outputs runLane(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where) {
  const uint32_t counts[4] = {batch.tokenCount(), batch.seqCount(), batch.markerCount(), 1};
  Outputs outputs;
  std::vector<batten_output_view_t> views;
  for (const Lane::Output &output : lane.outputs) {
    if (output.elem != 1 || output.rowKind > 3)
      fail(where + ": output " + output.name + " is " + elemName(output.elem) + ", this program writes f32 only");
    outputs.rows.push_back(counts[output.rowKind]);
    outputs.data.emplace_back(size_t(counts[output.rowKind]) * output.width);
  }
  float nothing = 0; // copyTo that isn't NULL for an output of no rows
  for (std::vector<float> &data : outputs.data)
    views.push_back({data.empty() ? &nothing : data.data(), data.size() * sizeof(float), nullptr, 0, 0, 0});
  batten_batch_t view = batch.view();
  batten_error_t error = {};
  check(
      batten_run_lane(engine.executor.get(), lane.index, &view, views.data(), uint32_t(views.size()), nullptr, &error),
      error, where);
  for (size_t i = 0; i < views.size(); ++i)
    outputs.rows[i] = views[i].rows; // a row kind of one has none without a sequence
  return outputs;
}

void appendLines(std::string &text, const Lane &lane, const Batch &batch, const Outputs &outputs) {
  auto appendRow = [&](const float *row, uint32_t width) {
    text += '[';
    for (uint32_t c = 0; c < width; ++c) {
      if (c)
        text += ',';
      appendFloat(text, row[c]);
    }
    text += ']';
  };
  for (uint32_t s = 0; s < batch.seqCount(); ++s) {
    text += '{';
    for (size_t i = 0; i < lane.outputs.size(); ++i) {
      const Lane::Output &output = lane.outputs[i];
      text += (i ? "," : "") +
              nlohmann::json(output.name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + ":";
      const float *data = outputs.data[i].data();
      if (output.rowKind == 1 || output.rowKind == 3) {
        appendRow(data + (output.rowKind == 1 ? size_t(s) * output.width : 0), output.width);
        continue;
      }
      const std::vector<int32_t> &cuts = output.rowKind == 0 ? batch.cuSeqlens : batch.cuMarkers;
      text += '[';
      for (int32_t row = cuts[s]; row < cuts[s + 1]; ++row) {
        if (row > cuts[s])
          text += ',';
        appendRow(data + size_t(row) * output.width, output.width);
      }
      text += ']';
    }
    text += "}\n";
  }
}

} // namespace batten::tools
