// See Running.h. Every failure of the API is a test failure with the API's own message.
#include "tests/golden/Running.h"

#include <cstring>
#include <gtest/gtest.h>

namespace batten::test {

static std::string str(batten_text_t text) { return std::string(text.data, text.bytes); }

std::shared_ptr<const std::vector<CompiledBlob>> TestBundle::compile(const std::string &input,
                                                                     const std::string &bucketsFile,
                                                                     const std::string &weights,
                                                                     const std::string &math) {
  CompileRequest request;
  request.weights = weights;
  request.math = math;
  request.input = input;
  request.bucketsFile = bucketsFile;
  auto blobs = compileToMemory(request);
  if (!blobs) {
    ADD_FAILURE() << llvm::toString(blobs.takeError());
    return nullptr;
  }
  return std::make_shared<const std::vector<CompiledBlob>>(std::move(*blobs));
}

std::unique_ptr<TestBundle> TestBundle::open(std::shared_ptr<const std::vector<CompiledBlob>> blobs,
                                             const std::string &target) {
  if (!blobs)
    return nullptr;
  auto out = std::make_unique<TestBundle>();
  std::vector<batten_blob_t> views;
  for (const CompiledBlob &blob : *blobs)
    views.push_back({blob.path().c_str(), blob.data(), blob.size()});
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.target = target.c_str();
  options.level = BATTEN_VERIFY_FULL;
  batten_error_t error;
  if (batten_bundle_open_blobs(views.data(), views.size(), &options, &out->bundle, &error) != BATTEN_OK) {
    ADD_FAILURE() << error.message;
    return nullptr;
  }
  out->blobs = std::move(blobs);
  return out;
}

TestBundle::~TestBundle() { batten_bundle_release(bundle); }

uint32_t TestBundle::lane(const std::string &name) const {
  uint32_t index = 0;
  batten_error_t error;
  EXPECT_EQ(batten_bundle_find_lane(bundle, name.c_str(), &index, &error), BATTEN_OK) << error.message;
  return index;
}

std::vector<std::string> TestBundle::laneNames() const {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < info.laneCount; ++i) {
    batten_lane_info_t lane;
    EXPECT_EQ(batten_bundle_get_lane(bundle, i, &lane), BATTEN_OK);
    names.push_back(str(lane.name));
  }
  return names;
}

std::vector<batten_bucket_info_t> TestBundle::buckets(uint32_t lane) const {
  batten_lane_info_t info;
  EXPECT_EQ(batten_bundle_get_lane(bundle, lane, &info), BATTEN_OK);
  std::vector<batten_bucket_info_t> out(info.bucketCount);
  for (uint32_t i = 0; i < info.bucketCount; ++i)
    EXPECT_EQ(batten_bundle_get_bucket(bundle, lane, i, &out[i]), BATTEN_OK);
  return out;
}

TestExecutor::TestExecutor(const TestBundle &owner, uint32_t threads) : bundle(owner.get()) {
  batten_error_t error;
  batten_executor_options_t options = BATTEN_EXECUTOR_OPTIONS_INIT;
  if (threads > 1) {
    batten_pool_options_t poolOptions = BATTEN_POOL_OPTIONS_INIT;
    poolOptions.threads = threads;
    EXPECT_EQ(batten_pool_create(&poolOptions, &pool, &error), BATTEN_OK) << error.message;
    options.pool = pool;
  }
  EXPECT_EQ(batten_executor_create(bundle, &options, &executor, &error), BATTEN_OK) << error.message;
}

TestExecutor::~TestExecutor() {
  batten_executor_destroy(executor);
  if (pool)
    batten_pool_release(pool);
}

batten_batch_t viewOf(const PackedBatch &batch) {
  batten_batch_t view = BATTEN_BATCH_INIT;
  view.tokenIds = batch.ids.data();
  view.tokenTypes = batch.types.empty() ? nullptr : batch.types.data();
  view.cuSeqlens = batch.cu.data();
  view.markers = batch.markers.data();
  view.cuMarkers = batch.markers.empty() ? nullptr : batch.cuMarkers.data();
  view.seqTypes = batch.seqTypes.empty() ? nullptr : batch.seqTypes.data();
  view.markerCount = static_cast<uint32_t>(batch.markers.size());
  view.tokenCount = static_cast<uint32_t>(batch.ids.size());
  view.seqCount = batch.seqs();
  return view;
}

Outputs TestExecutor::run(uint32_t lane, const PackedBatch &batch, int bucket) {
  batten_lane_info_t info;
  EXPECT_EQ(batten_bundle_get_lane(bundle, lane, &info), BATTEN_OK);
  std::vector<batten_output_view_t> views(info.outputCount, batten_output_view_t{});
  batten_batch_t view = viewOf(batch);
  batten_error_t error{};
  batten_status_t status = bucket < 0
                               ? batten_run_lane(executor, lane, &view, views.data(), info.outputCount, nullptr, &error)
                               : batten_run_in_bucket(executor, lane, static_cast<uint32_t>(bucket), &view,
                                                      views.data(), info.outputCount, &error);
  EXPECT_EQ(status, BATTEN_OK) << error.message;
  Outputs outputs;
  if (status != BATTEN_OK)
    return outputs;
  for (uint32_t i = 0; i < info.outputCount; ++i) {
    batten_output_info_t output;
    EXPECT_EQ(batten_bundle_get_output(bundle, lane, i, &output), BATTEN_OK);
    Rows &rows = outputs[str(output.name)];
    rows.kind = output.rowKind;
    rows.rows = views[i].rows;
    rows.width = views[i].width;
    rows.values.resize(rows.rows * rows.width);
    for (int64_t r = 0; r < rows.rows; ++r)
      std::memcpy(rows.values.data() + r * rows.width,
                  static_cast<const uint8_t *>(views[i].data) + r * views[i].strideBytes, rows.width * sizeof(float));
  }
  return outputs;
}

std::vector<std::string> runnableTargets(const std::string &math) {
  bool v4 = __builtin_cpu_supports("x86-64-v4");
  std::vector<std::string> out;
  if (math == "bf16")
    return v4 && __builtin_cpu_supports("avx512bf16") ? std::vector<std::string>{"x86-64-v4+avx512_bf16"} : out;
  if (__builtin_cpu_supports("x86-64-v3"))
    out.push_back("x86-64-v3");
  if (v4)
    out.push_back("x86-64-v4");
  if (math == "i8" && v4 && __builtin_cpu_supports("avx512vnni"))
    out.push_back("x86-64-v4+avx512_vnni");
  return out;
}

} // namespace batten::test
