// Heads of families with rotary positions that have no golden, worked out in double precision from the hidden states of one
// that does; sequences that a changing base bounds; configs in both spellings as the same bundle.
#include "tests/golden/EditedModel.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

Rows each(Rows rows, double (*function)(double)) {
  for (float &value : rows.values)
    value = static_cast<float>(function(value));
  return rows;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

/// The first row of each sequence; none may be empty.
Rows first(const Rows &x, const std::vector<int32_t> &cu) {
  Rows out{static_cast<int64_t>(cu.size()) - 1, x.width, 0, {}};
  for (int64_t seq = 0; seq < out.rows; ++seq)
    out.values.insert(out.values.end(), x.values.begin() + cu[seq] * x.width,
                      x.values.begin() + (cu[seq] + 1) * x.width);
  return out;
}

} // namespace

TEST(RotaryHeadTest, R14_EuroBertsClassifierPoolsLateOrBefore) {
  Golden golden = llvm::cantFail(loadGolden("eurobert"));
  const GoldenCase &entry = caseOf(golden, "ragged");
  const Rows &hidden = entry.outputs.at("hidden");
  for (std::string pooling : {"late", "bos", "mean"}) {
    EditedModel model("eurobert");
    auto dense = model.random("dense.weight", {48, 48}), denseBias = model.random("dense.bias", {48});
    auto out = model.random("classifier.weight", {3, 48}), outBias = model.random("classifier.bias", {3});
    model.edit("EuroBertModel", "EuroBertForSequenceClassification");
    model.edit("\"classifier_pooling\": \"late\"", "\"classifier_pooling\": \"" + pooling + "\"");
    Rows x = pooling == "late"  ? hidden
             : pooling == "bos" ? first(hidden, entry.batch.cu)
                                : mean(hidden, entry.batch.cu);
    x = linear(each(linear(x, dense, denseBias), gelu), out, outBias);
    expectOutput(model.write(), entry.batch, "logits", pooling == "late" ? mean(x, entry.batch.cu) : x);
  }
}

TEST(RotaryHeadTest, R13_GteAndNomicClassifyOverThePooler) {
  for (auto [name, from, to] : {std::tuple("gte", "GteModel", "GteForSequenceClassification"),
                                std::tuple("nomic-bert", "NomicBertModel", "NomicBertForSequenceClassification")}) {
    Golden golden = llvm::cantFail(loadGolden(name));
    const GoldenCase &entry = caseOf(golden, "ragged");
    const Rows &hidden = entry.outputs.at("hidden");
    EditedModel model(name);
    auto pooler = model.random("pooler.dense.weight", {hidden.width, hidden.width}),
         poolerBias = model.random("pooler.dense.bias", {hidden.width});
    auto out = model.random("classifier.weight", {1, hidden.width}), outBias = model.random("classifier.bias", {1});
    model.edit(from, to);
    Rows pooled = each(linear(first(hidden, entry.batch.cu), pooler, poolerBias), std::tanh);
    expectOutput(model.write(), entry.batch, "logits", linear(pooled, out, outBias));
  }
}

TEST(RotaryHeadTest, R13_JinasClassifierIsRobertas) {
  Golden golden = llvm::cantFail(loadGolden("jina-embeddings-v3"));
  const GoldenCase &entry = caseOf(golden, "ragged");
  EditedModel model("jina-embeddings-v3");
  auto dense = model.random("classifier.dense.weight", {32, 32}),
       denseBias = model.random("classifier.dense.bias", {32});
  auto out = model.random("classifier.out_proj.weight", {2, 32}),
       outBias = model.random("classifier.out_proj.bias", {2});
  model.edit("JinaEmbeddingsV3Model", "JinaEmbeddingsV3ForSequenceClassification");
  Rows x = each(linear(first(entry.outputs.at("hidden"), entry.batch.cu), dense, denseBias), std::tanh);
  expectOutput(model.write(), entry.batch, "logits", linear(x, out, outBias));
}

// Nomic's rotary_scaling_factor leaves sequences of up to max_trained_positions alone and would change longer ones.
TEST(RotaryHeadTest, LongerSequencesThanAPlainBaseHoldsAreRefused) {
  Golden golden = llvm::cantFail(loadGolden("nomic-bert"));
  const GoldenCase &entry = caseOf(golden, "ragged");
  EditedModel model("nomic-bert");
  model.edit("\"head_dim\"", "\"rotary_scaling_factor\": 2, \"max_trained_positions\": 48, \"head_dim\"");
  std::string path = model.write();
  expectOutput(path, entry.batch, "hidden", entry.outputs.at("hidden"));
  auto bundle = TestBundle::open(TestBundle::compile(path), runnableTargets().front());
  ASSERT_TRUE(bundle);
  TestExecutor executor(*bundle, 1);
  PackedBatch batch;
  batch.ids.assign(48, 7);
  batch.cu.push_back(48);
  EXPECT_EQ(statusOf(executor, batch, 1).first, BATTEN_OK);
  batch.ids.push_back(7);
  batch.cu.back() = 49;
  auto [status, message] = statusOf(executor, batch, 1);
  EXPECT_EQ(status, BATTEN_BAD_BATCH);
  EXPECT_NE(message.find("49"), std::string::npos) << message;
  EXPECT_NE(message.find("48"), std::string::npos) << message;
}

// Without a table nothing but the bucket bounds a sequence.
TEST(RotaryHeadTest, RotarySequencesMayBeLongerThanTheConfigSays) {
  auto bundle = TestBundle::open(TestBundle::compile(goldenPath("gte")), runnableTargets().front());
  ASSERT_TRUE(bundle);
  TestExecutor executor(*bundle, 1);
  PackedBatch batch;
  batch.ids.assign(2048, 7); // max_position_embeddings is 64
  batch.cu.push_back(2048);
  EXPECT_EQ(statusOf(executor, batch, 1).first, BATTEN_OK);
  batch.ids.push_back(7);
  batch.cu.back() = 2049;
  EXPECT_EQ(statusOf(executor, batch, 1).first, BATTEN_NO_BUCKET);
}

TEST(RotaryHeadTest, R14_BothSpellingsOfModernBertAreTheSameBundle) {
  EditedModel old("modernbert-old-config"), now("modernbert-old-config");
  now.edit("\"global_attn_every_n_layers\": 2",
           R"("layer_types": ["full_attention", "sliding_attention", "full_attention"])");
  now.edit("\"global_rope_theta\": 8000.0",
           R"("rope_parameters": {"full_attention": {"rope_theta": 8000.0, "rope_type": "default"},
                                  "sliding_attention": {"rope_theta": 200.0, "rope_type": "default"}})");
  now.edit("\"local_rope_theta\": 200.0", "\"unread\": 0");
  auto a = TestBundle::compile(old.write()), b = TestBundle::compile(now.write());
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i) {
    const CompiledBlob &x = (*a)[i], &y = (*b)[i];
    EXPECT_EQ(x.path(), y.path());
    EXPECT_TRUE(std::equal(x.data(), x.data() + x.size(), y.data(), y.data() + y.size())) << x.path();
  }
}
