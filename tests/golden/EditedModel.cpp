// See the header.
#include "tests/golden/EditedModel.h"
#include "compiler/spec/Safetensors.h"
#include "tests/SafetensorsWriter.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <gtest/gtest.h>

namespace batten::test {

EditedModel::EditedModel(const std::string &golden) {
  SafetensorsFile file = llvm::cantFail(SafetensorsFile::open(goldenPath(golden) + "/model.safetensors"));
  for (const StoredTensor &tensor : file.tensors()) {
    EXPECT_EQ(tensor.dtype, "F32") << tensor.name;
    std::vector<float> values(tensor.elements);
    llvm::cantFail(file.read(tensor, 0, tensor.bytes, reinterpret_cast<uint8_t *>(values.data())));
    tensors[tensor.name] = {tensor.shape, values};
  }
  config = readFile(goldenPath(golden) + "/config.json");
}

const EditedModel::Tensor &EditedModel::random(const std::string &name, std::vector<int64_t> shape) {
  std::normal_distribution<float> normal(0, 0.5f);
  std::vector<float> values(shape.size() == 1 ? shape[0] : shape[0] * shape[1]);
  for (float &value : values)
    value = normal(engine);
  return tensors[name] = {std::move(shape), std::move(values)};
}

void EditedModel::edit(const std::string &from, const std::string &to) {
  size_t at = config.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  config.replace(at, from.size(), to);
}

std::string EditedModel::write() {
  SafetensorsWriter writer;
  for (const auto &[name, tensor] : tensors)
    writer.addF32(name, tensor.shape, tensor.values);
  dir.write("model.safetensors", writer.bytes());
  dir.write("config.json", config);
  return dir.path();
}

const GoldenCase &caseOf(const Golden &golden, const std::string &name) {
  auto it = llvm::find_if(golden.cases, [&](const GoldenCase &entry) { return entry.name == name; });
  EXPECT_NE(it, golden.cases.end()) << name;
  return *it;
}

Rows linear(const Rows &x, const EditedModel::Tensor &w, const EditedModel::Tensor &b) {
  Rows out{x.rows, w.shape[0], 0, {}};
  for (int64_t row = 0; row < x.rows; ++row)
    for (int64_t n = 0; n < out.width; ++n) {
      double sum = b.values[n];
      for (int64_t k = 0; k < x.width; ++k)
        sum += double(w.values[n * x.width + k]) * x.values[row * x.width + k];
      out.values.push_back(static_cast<float>(sum));
    }
  return out;
}

Rows mean(const Rows &x, const std::vector<int32_t> &cu) {
  Rows out{static_cast<int64_t>(cu.size()) - 1, x.width, 0, {}};
  for (int64_t seq = 0; seq < out.rows; ++seq)
    for (int64_t column = 0; column < x.width; ++column) {
      double sum = 0;
      for (int32_t row = cu[seq]; row < cu[seq + 1]; ++row)
        sum += x.values[row * x.width + column];
      out.values.push_back(static_cast<float>(sum / (cu[seq + 1] - cu[seq])));
    }
  return out;
}

double largestDifference(const Rows &a, const Rows &b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.width, b.width);
  if (a.values.size() != b.values.size() || a.values.empty())
    return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.values.size(); ++i)
    if (double error = std::fabs(double(a.values[i]) - b.values[i]); !(error <= largest))
      largest = std::isnan(error) ? INFINITY : error;
  return largest;
}

void expectOutput(const std::string &path, const PackedBatch &batch, const std::string &output, const Rows &want) {
  auto blobs = TestBundle::compile(path);
  ASSERT_TRUE(blobs);
  double magnitude = 1;
  for (float value : want.values)
    magnitude = std::fmax(magnitude, std::fabs(value));
  for (const std::string &target : runnableTargets()) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    TestExecutor executor(*bundle, 1);
    Outputs got = executor.run(0, batch);
    ASSERT_TRUE(got.count(output)) << output;
    EXPECT_LE(largestDifference(got[output], want), 1e-5 * magnitude) << target;
  }
}

std::pair<batten_status_t, std::string> statusOf(const TestExecutor &executor, const PackedBatch &batch,
                                                 uint32_t outputs) {
  batten_output_view_t views[2] = {};
  batten_batch_t view = viewOf(batch);
  batten_error_t error{};
  batten_status_t status = batten_run_lane(executor.get(), 0, &view, views, outputs, nullptr, &error);
  return {status, error.message};
}

} // namespace batten::test
