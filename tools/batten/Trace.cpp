// See the header. The runtime calls back from C, so what a visitor throws is kept until the run is over.
#include "tools/batten/Trace.h"

#include "tools/batten/Inspect.h"
#include "tools/common/Safetensors.h"
#include "tools/common/Text.h"

#include <cctype>
#include <cstring>
#include <exception>
#include <filesystem>

namespace batten::tools {

namespace {

struct Visit {
  const StepVisitor &visit;
  std::vector<float> rows;
  std::exception_ptr thrown;
};

void showStep(void *user, uint32_t step, uint32_t, const batten_output_view_t *output) noexcept {
  Visit &state = *static_cast<Visit *>(user);
  if (state.thrown)
    return;
  try {
    state.rows.resize(size_t(output->rows) * output->width);
    for (uint32_t r = 0; r < output->rows; ++r)
      std::memcpy(state.rows.data() + size_t(r) * output->width,
                  static_cast<const uint8_t *>(output->data) + r * output->strideBytes, output->width * sizeof(float));
    state.visit(step, state.rows);
  } catch (...) {
    state.thrown = std::current_exception();
  }
}

std::string fileName(const std::string &laneName) {
  std::string name = laneName;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-", c))
      c = '_';
  if (name[0] == '.')
    name[0] = '_';
  return name + ".safetensors";
}

std::string tensorName(size_t step, const std::string &label) {
  std::string number = std::to_string(step);
  return std::string(number.size() < 3 ? 3 - number.size() : 0, '0') + number + " " + label;
}

TensorMetadata metadataOf(const batten_bundle_t *bundle, const Lane &lane, uint32_t bucket,
                          const std::vector<TracedStep> &steps) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  TensorMetadata metadata = {{"manifest_sha256", hex(info.manifestDigest)},
                             {"target", toString(targetInUse(bundle).name)},
                             {"lane", lane.name},
                             {"bucket", bucketName(lane.buckets[bucket])},
                             {"steps", std::to_string(steps.size())}};
  for (size_t i = 0; i < steps.size(); ++i) {
    nlohmann::ordered_json facts = {
        {"step", i}, {"label", steps[i].label}, {"kernel", steps[i].kernel}, {"rows", rowKindName(steps[i].rowKind)}};
    metadata.emplace_back(tensorName(i, steps[i].label),
                          facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  return metadata;
}

} // namespace

std::vector<TracedStep> readSteps(const batten_bundle_t *bundle, const Lane &lane, uint32_t bucket) {
  batten_plan_info_t plan;
  checkIndex(batten_bundle_get_plan(bundle, lane.index, bucket, &plan));
  std::vector<TracedStep> steps;
  for (uint32_t i = 0; i < plan.stepCount; ++i) {
    batten_step_info_t step;
    batten_operand_info_t output;
    checkIndex(batten_bundle_get_step(bundle, lane.index, bucket, i, &step));
    checkIndex(batten_bundle_get_operand(bundle, lane.index, bucket, i, step.operandCount - 1, &output));
    std::string label = toString(step.label);
    if (output.elem != 1)
      fail("step " + std::to_string(i) + " " + label + " writes " + elemName(output.elem) +
           ", this program shows f32 only");
    steps.push_back({label, toString(step.kernel), output.rowKind, output.width});
  }
  return steps;
}

uint32_t bucketOf(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where) {
  batten_batch_t view = batch.view();
  batten_error_t error = {};
  uint32_t bucket = 0;
  check(batten_check_batch(engine.executor.get(), lane.index, &view, &bucket, &error), error, where);
  return bucket;
}

Outputs runTraced(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where,
                  const StepVisitor &visit) {
  Visit state{visit, {}, nullptr};
  struct Tracing {
    batten_executor_t *executor;
    ~Tracing() { (void)batten_executor_set_trace(executor, nullptr, nullptr); }
  } tracing{engine.executor.get()};
  checkIndex(batten_executor_set_trace(tracing.executor, showStep, &state));
  Outputs outputs = runLane(engine, lane, batch, where);
  if (state.thrown)
    std::rethrow_exception(state.thrown);
  return outputs;
}

Outputs runToTrace(const batten_bundle_t *bundle, const Engine &engine, const Lane &lane, const Batch &batch,
                   const std::string &where, const std::string &folder) {
  uint32_t bucket = bucketOf(engine, lane, batch, where);
  std::vector<TracedStep> steps = readSteps(bundle, lane, bucket);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail(folder + ": cannot make this folder: " + error.message());
  // What the batch has of each kind; a step with no row is in the file, too, as a tensor of none.
  const uint32_t rows[4] = {batch.tokenCount(), batch.seqCount(), batch.markerCount(), batch.seqCount() != 0};
  std::vector<TensorShape> shapes;
  for (size_t i = 0; i < steps.size(); ++i)
    shapes.push_back({tensorName(i, steps[i].label), rows[steps[i].rowKind & 3], steps[i].width});
  SafetensorsWriter writer((std::filesystem::path(folder) / fileName(lane.name)).string(), shapes,
                           metadataOf(bundle, lane, bucket, steps));
  Outputs outputs = runTraced(engine, lane, batch, where, [&](uint32_t, const std::vector<float> &values) {
    writer.write(values.data(), values.size());
  });
  writer.commit();
  return outputs;
}

} // namespace batten::tools
