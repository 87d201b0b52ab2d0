// Kernel keys: text form, attributes, symbols, refusals, facts.
#include "compiler/kernels/KernelKey.h"
#include "compiler/kernels/KernelKeyAttr.h"
#include "compiler/layout/AttentionScratch.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace batten;

namespace {

std::vector<KernelKey> someKeys() {
  return {KernelKey::linear(384, 1152, true),
          KernelKey::linear(384, 1152, false),
          KernelKey::linear(384, 1536, true, ActivationKind::GeluErf, true),
          KernelKey::linear(1536, 384, true, ActivationKind::Tanh),
          KernelKey::embed(384, true, true, true),
          KernelKey::embed(384, true, false, true, 2),
          KernelKey::layerNorm(384, 1e-12f),
          KernelKey::layerNorm(384, 1e-5f),
          KernelKey::layerNorm(384, 1e-5f, false, false),
          KernelKey::layerNorm(384, 1e-5f, true, false),
          KernelKey::layerNorm(384, 0.1f),
          KernelKey::layerNorm(384, std::nextafter(0.1f, 1.0f)),
          KernelKey::attention(12, 32, 1.0f / std::sqrt(32.0f)),
          KernelKey::attention(12, 32, 1.0f),
          KernelKey::pooling(384, PoolKind::MeanSqrtLen),
          KernelKey::pooling(384, PoolKind::Cls),
          KernelKey::l2Normalize(384, 1e-12f),
          KernelKey::activation(384, ActivationKind::Silu),
          KernelKey::add(384),
          KernelKey::slice(768, 384, 128),
          KernelKey::concatCols({384, 24, 1}),
          KernelKey::rmsNorm(384, 1e-5f),
          KernelKey::rmsNorm(384, 1e-6f),
          KernelKey::rmsNorm(384, 1e-5f, false),
          KernelKey::rope(12, 64),
          KernelKey::rope(12, 64, 4),
          KernelKey::rope(64, 12),
          KernelKey::gated(384, ActivationKind::GeluErf),
          KernelKey::gated(384, ActivationKind::GeluErf, true),
          KernelKey::gated(384, ActivationKind::Silu),
          KernelKey::activation(384, ActivationKind::Sigmoid),
          KernelKey::softmax(384),
          KernelKey::addType(384),
          KernelKey::gatherMarkers(384),
          KernelKey::decisionFeatures(384)};
}

std::string refusal(const std::string &text) {
  llvm::Expected<KernelKey> key = parseKernelKey(text);
  return key ? "" : toString(key.takeError());
}

} // namespace

TEST(KernelKeyTest, TextReadsBackAsTheSameKey) {
  for (const KernelKey &key : someKeys()) {
    llvm::Expected<KernelKey> again = parseKernelKey(printKernelKey(key));
    ASSERT_TRUE(bool(again)) << toString(again.takeError());
    EXPECT_EQ(*again, key) << printKernelKey(key);
  }
}

TEST(KernelKeyTest, TextIsAsDocumented) {
  EXPECT_EQ(printKernelKey(KernelKey::linear(384, 1152, true)), "linear {k = 384, n = 1152, bias, act = \"none\"}");
  EXPECT_EQ(printKernelKey(KernelKey::layerNorm(8, 1e-5f)),
            "layer_norm {width = 8, eps = 1.0e-05 : f32, weight, bias}");
  EXPECT_EQ(printKernelKey(KernelKey::concatCols({24, 8})), "concat_cols {widths = [24, 8]}");
  EXPECT_EQ(printKernelKey(KernelKey::rope(12, 64)), "rope {heads = 12, head_width = 64}");
  EXPECT_EQ(printKernelKey(KernelKey::rope(12, 64, 4)), "rope {heads = 12, kv_heads = 4, head_width = 64}");
  EXPECT_EQ(KernelKey::rope(12, 64, 12), KernelKey::rope(12, 64));
  EXPECT_EQ(printKernelKey(KernelKey::gated(8, ActivationKind::Silu, true)),
            "gated {width = 8, act = \"silu\", second}");
  EXPECT_EQ(printKernelKey(KernelKey::rmsNorm(8, 1e-5f)), "rms_norm {width = 8, eps = 1.0e-05 : f32, weight}");
}

TEST(KernelKeyTest, AttributesReadBackAsTheSameKey) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  for (const KernelKey &key : someKeys()) {
    mlir::DictionaryAttr attributes = kernelKeyToAttr(key, &context);
    llvm::Expected<KernelKey> again = kernelKeyFromAttr(kernelOpName(key.op), attributes);
    ASSERT_TRUE(bool(again)) << toString(again.takeError());
    EXPECT_EQ(*again, key);
    // What MLIR prints is text form too.
    std::string printed;
    llvm::raw_string_ostream(printed) << attributes;
    again = parseKernelKey((kernelOpName(key.op) + " " + printed).str());
    ASSERT_TRUE(bool(again)) << toString(again.takeError());
    EXPECT_EQ(*again, key) << printed;
  }
}

TEST(KernelKeyTest, TakesDenseWidthsAndRefusesOtherTypes) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto parse = [&](const char *text) { return llvm::cast<mlir::DictionaryAttr>(mlir::parseAttribute(text, &context)); };
  llvm::Expected<KernelKey> dense = kernelKeyFromAttr("concat_cols", parse("{widths = array<i64: 24, 8>}"));
  ASSERT_TRUE(bool(dense)) << toString(dense.takeError());
  EXPECT_EQ(*dense, KernelKey::concatCols({24, 8}));
  llvm::Expected<KernelKey> wrong = kernelKeyFromAttr("layer_norm", parse("{width = 8, eps = 0.5 : f64}"));
  ASSERT_FALSE(bool(wrong));
  EXPECT_EQ(toString(wrong.takeError()), "kernel key layer_norm: attribute 'eps' is 5.000000e-01 : f64, an integer, an "
                                         "f32, a string, a unit or a list of integers wanted");
}

TEST(KernelKeyTest, SymbolsTellKeysApart) {
  std::set<std::string> symbols;
  for (const KernelKey &key : someKeys())
    EXPECT_TRUE(symbols.insert(kernelSymbol(key)).second) << kernelSymbol(key);
  EXPECT_EQ(kernelSymbol(KernelKey::linear(384, 1152, true, ActivationKind::GeluErf, true)),
            "linear_384x1152_f32_bias_gelu_erf_res");
  EXPECT_EQ(kernelSymbol(KernelKey::embed(384, true, true, true)), "embed_384_f32_wtp");
  EXPECT_EQ(kernelSymbol(KernelKey::layerNorm(384, 1e-5f)), "layer_norm_384_f32_wb_e1e-05");
  EXPECT_EQ(kernelSymbol(KernelKey::pooling(384, PoolKind::Mean)), "pool_mean_384_f32");
  EXPECT_EQ(kernelSymbol(KernelKey::rope(12, 64, 4)), "rope_12x64_f32_kv4");
  EXPECT_EQ(kernelSymbol(KernelKey::rmsNorm(384, 1e-5f)), "rms_norm_384_f32_w_e1e-05");
  EXPECT_EQ(kernelSymbol(KernelKey::gated(384, ActivationKind::Silu, true)), "gated_384_f32_silu_second");
}

TEST(KernelKeyTest, RefusesWrongText) {
  EXPECT_EQ(refusal("lineal {k = 1}"),
            "kernel key 'lineal {k = 1}': unknown op 'lineal', one of linear, embed, layer_norm, "
            "attention, pool, l2_normalize, activation, add, slice, concat_cols, rms_norm, rope, gated, add_type, "
            "gather_markers, decision_features, softmax wanted");
  EXPECT_EQ(refusal("add"), "kernel key 'add': attributes in braces wanted after the op");
  EXPECT_EQ(refusal("add {}"), "kernel key 'add {}': attribute 'width' is missing");
  EXPECT_EQ(refusal("add {width = x}"), "kernel key 'add {width = x}': attribute 'width' is 'x', an integer wanted");
  EXPECT_EQ(refusal("add {width = 3 : f32}"),
            "kernel key 'add {width = 3 : f32}': attribute 'width' is '3 : f32', an integer wanted");
  EXPECT_EQ(refusal("add {width = 3, width = 4}"),
            "kernel key 'add {width = 3, width = 4}': unknown or repeated attribute 'width'");
  EXPECT_EQ(refusal("add {width = 3, height}"),
            "kernel key 'add {width = 3, height}': unknown or repeated attribute 'height'");
  EXPECT_EQ(
      refusal("activation {width = 3, act = \"swish\"}"),
      "kernel key 'activation {width = 3, act = \"swish\"}': attribute 'act' is \"swish\", which is no known name");
  EXPECT_EQ(
      refusal("linear {k = 1, n = 1, bias = 3, act = \"none\"}"),
      "kernel key 'linear {k = 1, n = 1, bias = 3, act = \"none\"}': attribute 'bias' has the value '3', none wanted");
  EXPECT_EQ(refusal("concat_cols {widths = 3}"),
            "kernel key 'concat_cols {widths = 3}': attribute 'widths' is '3', a list of integers wanted");
}

TEST(KernelKeyTest, RefusesKeysThatNoEmitterTakes) {
  EXPECT_EQ(refusal("add {width = 0}"), "kernel key add: width is 0, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("add {width = 99999999}"), "kernel key add: width is 99999999, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("activation {width = 3, act = \"none\"}"), "kernel key activation: act is none, a function wanted");
  EXPECT_EQ(refusal("slice {width_in = 8, begin = 4, width = 5}"), "kernel key slice: columns 4 to 9 of 8 don't exist");
  EXPECT_EQ(refusal("embed {width = 3, offset = 0}"),
            "kernel key embed: has no table, at least one of words, types, positions wanted");
  EXPECT_EQ(refusal("embed {width = 3, words, offset = 2}"),
            "kernel key embed: offset is 2, 0 to 16777215 wanted, and 0 without positions");
  EXPECT_EQ(refusal("layer_norm {width = 3, eps = -1.0}"),
            "kernel key layer_norm: eps is -1, a finite number of at least 0 wanted");
  EXPECT_EQ(refusal("rope {heads = 2, head_width = 7}"), "kernel key rope: head_width is 7, an even one wanted");
  EXPECT_EQ(refusal("rope {heads = 4, kv_heads = 3, head_width = 8}"),
            "kernel key rope: kv_heads is 3, a divisor of 4 heads wanted, and none where it would be the same");
  EXPECT_EQ(refusal("rope {heads = 4, kv_heads = 4, head_width = 8}"),
            "kernel key rope: kv_heads is 4, a divisor of 4 heads wanted, and none where it would be the same");
  EXPECT_EQ(
      refusal("rope {heads = 4, kv_heads = 0, head_width = 8}"),
      "kernel key 'rope {heads = 4, kv_heads = 0, head_width = 8}': attribute 'kv_heads' is 0, left out or at least "
      "1 wanted");
  EXPECT_EQ(refusal("rope {heads = 0, head_width = 8}"), "kernel key rope: heads is 0, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("rope {heads = 8000000, head_width = 2}"),
            "kernel key rope: rows of q, k and v are 48000000 wide, below 16777216 wanted");
  EXPECT_EQ(refusal("rms_norm {width = 3, eps = -1.0}"),
            "kernel key rms_norm: eps is -1, a finite number of at least 0 wanted");
  EXPECT_EQ(refusal("gated {width = 3, act = \"none\"}"), "kernel key gated: act is none, a function wanted");
  EXPECT_EQ(refusal("gated {width = 9000000, act = \"silu\"}"),
            "kernel key gated: the input's width is 18000000, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("decision_features {width = 16777213}"),
            "kernel key decision_features: the output's width is 16777217, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("softmax {width = 0}"), "kernel key softmax: width is 0, 1 to 16777215 wanted");
  EXPECT_EQ(refusal("concat_cols {widths = [1, 2, 3, 4, 5, 6, 7]}"),
            "kernel key concat_cols: has 7 widths, 1 to 6 wanted");
}

TEST(KernelKeyTest, FactsFollowTheTable) {
  KernelFacts linear = kernelFacts(KernelKey::linear(768, 100, true, ActivationKind::None, true));
  EXPECT_EQ(linear.domain, BATTEN_DOMAIN_PANELS);
  EXPECT_EQ(linear.panels, 4u);
  EXPECT_EQ(linear.slabRows, 168u);
  EXPECT_EQ(linear.operandCount, 5u);
  EXPECT_TRUE(linear.mayOverwrite);
  EXPECT_FALSE(kernelFacts(KernelKey::linear(768, 100, true)).mayOverwrite);
  KernelFacts attention = kernelFacts(KernelKey::attention(12, 32, 1.0f));
  EXPECT_EQ(attention.domain, BATTEN_DOMAIN_TASKS);
  EXPECT_EQ(attention.heads, 12u);
  EXPECT_EQ(attention.rowKind, BATTEN_ROWS_TOKENS);
  EXPECT_EQ(kernelFacts(KernelKey::pooling(8, PoolKind::Max)).rowKind, BATTEN_ROWS_SEQS);
  EXPECT_FALSE(kernelFacts(KernelKey::add(8)).rowKind.has_value());
  KernelFacts rope = kernelFacts(KernelKey::rope(12, 64));
  EXPECT_EQ(rope.domain, BATTEN_DOMAIN_ROWS);
  EXPECT_EQ(rope.operandCount, 3u);
  EXPECT_TRUE(rope.mayOverwrite);
  EXPECT_EQ(rope.rowKind, BATTEN_ROWS_TOKENS);
  EXPECT_EQ(kernelFacts(KernelKey::rmsNorm(8, 1e-5f)).operandCount, 3u);
  EXPECT_EQ(kernelFacts(KernelKey::rmsNorm(8, 1e-5f, false)).operandCount, 2u);
  EXPECT_FALSE(kernelFacts(KernelKey::gated(8, ActivationKind::Silu)).mayOverwrite);
  EXPECT_FALSE(kernelFacts(KernelKey::softmax(8)).rowKind.has_value());
  EXPECT_EQ(kernelFacts(KernelKey::addType(8)).rowKind, BATTEN_ROWS_TOKENS);
  EXPECT_EQ(kernelFacts(KernelKey::gatherMarkers(8)).rowKind, BATTEN_ROWS_MARKERS);
  EXPECT_EQ(kernelFacts(KernelKey::decisionFeatures(8)).rowKind, BATTEN_ROWS_SEQS);
  EXPECT_EQ(kernelCost(KernelKey::rope(2, 4, 1)).flopsPerRow, 3u * 12);
  EXPECT_EQ(kernelCost(KernelKey::rope(2, 4, 1)).bytesPerRow, 4u * 2 * 16);
  EXPECT_EQ(kernelCost(KernelKey::gated(8, ActivationKind::Silu)).bytesPerRow, 4u * 24);
}

TEST(KernelKeyTest, ScratchGrowsWithTheLongestSequence) {
  KernelKey key = KernelKey::attention(12, 32, 1.0f);
  EXPECT_EQ(kernelScratchBytes(KernelKey::add(8), 128), 0u);
  // Linear keeps 32 sums for each row that it takes through a panel in chunks, however many there are.
  EXPECT_EQ(kernelScratchBytes(KernelKey::linear(384, 8, true), 1), 96u * 32 * 4);
  EXPECT_EQ(kernelScratchBytes(key, 33) - kernelScratchBytes(key, 32), 32u * 32 * 4);
  EXPECT_EQ(kernelScratchBytes(key, 33), kernelScratchBytes(key, 64));
  // Values of long sequences are packed too.
  EXPECT_EQ(kernelScratchBytes(key, 257) - kernelScratchBytes(key, 256), 32u * 32 * 4 + 288u * 32 * 4);
  EXPECT_EQ(kernelScratchBytes(key, 1000) % 64, 0u);
  // With a window it stops growing once four tasks of 64 rows see no more.
  KernelKey limited = KernelKey::attention(12, 32, 1.0f, 0, 64);
  EXPECT_EQ(kernelScratchBytes(limited, 416), kernelScratchBytes(key, 416));
  EXPECT_EQ(kernelScratchBytes(limited, 1 << 20), kernelScratchBytes(limited, 416));
  EXPECT_EQ(kernelScratchBytes(KernelKey::attention(12, 32, 1.0f, 0, 1 << 24), 1000), kernelScratchBytes(key, 1000));
  EXPECT_EQ(layout::attentionScratch(50).keys % 64, 0);
}
