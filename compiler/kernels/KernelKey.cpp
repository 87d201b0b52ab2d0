// Names, symbols, bounds and facts of kernel keys.
#include "compiler/kernels/KernelKey.h"
#include "compiler/layout/AttentionScratch.h"
#include "compiler/layout/RowStride.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace batten;
using llvm::StringRef;
using llvm::Twine;

static_assert(layout::kPanelCols == BATTEN_PANEL_COLS && layout::kLanes == BATTEN_LANES &&
                  layout::kAlignment == BATTEN_ALIGNMENT && layout::kKeyBlock == BATTEN_KEY_BLOCK,
              "the layout rules and the kernel ABI agree");

namespace {

constexpr StringRef kOpNames[] = {"linear",       "embed",      "layer_norm", "attention", "pool",
                                  "l2_normalize", "activation", "add",        "slice",     "concat_cols"};
constexpr StringRef kActivationNames[] = {"none", "gelu_erf", "gelu_tanh", "relu", "silu", "tanh"};
constexpr StringRef kPoolNames[] = {"cls", "last", "mean", "mean_sqrt_len", "max"};
/// Dimensions stay below this, so that products of two fit easily in 64 bits.
constexpr int64_t kMostWidth = 1 << 24;
constexpr size_t kMostConcat = 6;

template <typename Enum, size_t N> std::optional<Enum> parseName(StringRef name, const StringRef (&names)[N]) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return static_cast<Enum>(i);
  return std::nullopt;
}

std::string joinDims(llvm::ArrayRef<int64_t> dims) {
  return llvm::join(llvm::map_range(dims, [](int64_t d) { return std::to_string(d); }), "x");
}

} // namespace

StringRef batten::kernelOpName(KernelOp op) { return kOpNames[static_cast<size_t>(op)]; }
std::optional<KernelOp> batten::parseKernelOp(StringRef name) { return parseName<KernelOp>(name, kOpNames); }
StringRef batten::activationName(ActivationKind kind) { return kActivationNames[static_cast<size_t>(kind)]; }
std::optional<ActivationKind> batten::parseActivation(StringRef name) {
  return parseName<ActivationKind>(name, kActivationNames);
}
StringRef batten::poolKindName(PoolKind kind) { return kPoolNames[static_cast<size_t>(kind)]; }
std::optional<PoolKind> batten::parsePoolKind(StringRef name) { return parseName<PoolKind>(name, kPoolNames); }

KernelKey KernelKey::linear(int64_t k, int64_t n, bool bias, ActivationKind act, bool residual) {
  KernelKey key;
  key.op = KernelOp::Linear;
  key.k = k;
  key.n = n;
  key.bias = bias;
  key.act = act;
  key.residual = residual;
  return key;
}

KernelKey KernelKey::embed(int64_t width, bool words, bool types, bool positions, int64_t offset) {
  KernelKey key;
  key.op = KernelOp::Embed;
  key.width = width;
  key.words = words;
  key.types = types;
  key.positions = positions;
  key.offset = offset;
  return key;
}

KernelKey KernelKey::layerNorm(int64_t width, float eps, bool weight, bool bias) {
  KernelKey key;
  key.op = KernelOp::LayerNorm;
  key.width = width;
  key.eps = eps;
  key.weight = weight;
  key.bias = bias;
  return key;
}

KernelKey KernelKey::attention(int64_t heads, int64_t headWidth, float scale) {
  KernelKey key;
  key.op = KernelOp::Attention;
  key.heads = heads;
  key.headWidth = headWidth;
  key.scale = scale;
  return key;
}

KernelKey KernelKey::pooling(int64_t width, PoolKind kind) {
  KernelKey key;
  key.op = KernelOp::Pool;
  key.width = width;
  key.pool = kind;
  return key;
}

KernelKey KernelKey::l2Normalize(int64_t width, float eps) {
  KernelKey key;
  key.op = KernelOp::L2Normalize;
  key.width = width;
  key.eps = eps;
  return key;
}

KernelKey KernelKey::activation(int64_t width, ActivationKind act) {
  KernelKey key;
  key.op = KernelOp::Activation;
  key.width = width;
  key.act = act;
  return key;
}

KernelKey KernelKey::add(int64_t width) {
  KernelKey key;
  key.op = KernelOp::Add;
  key.width = width;
  return key;
}

KernelKey KernelKey::slice(int64_t widthIn, int64_t begin, int64_t width) {
  KernelKey key;
  key.op = KernelOp::Slice;
  key.widthIn = widthIn;
  key.begin = begin;
  key.width = width;
  return key;
}

KernelKey KernelKey::concatCols(std::vector<int64_t> widths) {
  KernelKey key;
  key.op = KernelOp::ConcatCols;
  key.widths = std::move(widths);
  return key;
}

llvm::Error batten::verifyKernelKey(const KernelKey &key) {
  std::string problem;
  auto fail = [&](const Twine &text) {
    if (problem.empty())
      problem = text.str();
  };
  auto positive = [&](StringRef name, int64_t value) {
    if (value < 1 || value >= kMostWidth)
      fail(name + " is " + Twine(value) + ", 1 to " + Twine(kMostWidth - 1) + " wanted");
  };
  auto epsilon = [&] {
    if (!std::isfinite(key.eps) || key.eps < 0)
      fail("eps is " + shortestFloat(key.eps) + ", a finite number of at least 0 wanted");
  };
  switch (key.op) {
  case KernelOp::Linear:
    positive("k", key.k);
    positive("n", key.n);
    break;
  case KernelOp::Embed:
    positive("width", key.width);
    if (!key.words && !key.types && !key.positions)
      fail("has no table, at least one of words, types, positions wanted");
    if (key.offset < 0 || key.offset >= kMostWidth || (key.offset && !key.positions))
      fail("offset is " + Twine(key.offset) + ", 0 to " + Twine(kMostWidth - 1) + " wanted, and 0 without positions");
    break;
  case KernelOp::LayerNorm:
  case KernelOp::L2Normalize:
    positive("width", key.width);
    epsilon();
    break;
  case KernelOp::Attention:
    positive("heads", key.heads);
    positive("head_width", key.headWidth);
    if (problem.empty() && 3 * key.heads * key.headWidth >= kMostWidth)
      fail("heads x head_width is " + Twine(key.heads * key.headWidth) + ", below " + Twine(kMostWidth / 3) +
           " wanted");
    if (!std::isfinite(key.scale))
      fail("scale is " + shortestFloat(key.scale) + ", a finite number wanted");
    break;
  case KernelOp::Pool:
  case KernelOp::Add:
    positive("width", key.width);
    break;
  case KernelOp::Activation:
    positive("width", key.width);
    if (key.act == ActivationKind::None)
      fail("act is none, a function wanted");
    break;
  case KernelOp::Slice:
    positive("width_in", key.widthIn);
    positive("width", key.width);
    if (key.begin < 0 || key.begin + key.width > key.widthIn)
      fail("columns " + Twine(key.begin) + " to " + Twine(key.begin + key.width) + " of " + Twine(key.widthIn) +
           " don't exist");
    break;
  case KernelOp::ConcatCols: {
    if (key.widths.empty() || key.widths.size() > kMostConcat)
      fail("has " + Twine(key.widths.size()) + " widths, 1 to " + Twine(kMostConcat) + " wanted");
    int64_t total = 0;
    for (int64_t width : key.widths) {
      positive("a width", width);
      total += width;
    }
    positive("the sum of widths", total);
    break;
  }
  }
  if (problem.empty())
    return llvm::Error::success();
  return llvm::createStringError("kernel key " + kernelOpName(key.op) + ": " + problem);
}

std::string batten::kernelSymbol(const KernelKey &key) {
  std::string op = kernelOpName(key.op).str();
  auto flag = [](bool value, const char *text) { return std::string(value ? text : ""); };
  auto act = [&] { return key.act == ActivationKind::None ? "" : "_" + activationName(key.act).str(); };
  std::string width = std::to_string(key.width);
  switch (key.op) {
  case KernelOp::Linear:
    return op + "_" + joinDims({key.k, key.n}) + "_f32" + flag(key.bias, "_bias") + act() + flag(key.residual, "_res");
  case KernelOp::Embed:
    return op + "_" + width + "_f32_" + flag(key.words, "w") + flag(key.types, "t") + flag(key.positions, "p") +
           (key.offset ? "_o" + std::to_string(key.offset) : "");
  case KernelOp::LayerNorm:
    return op + "_" + width + "_f32" + flag(key.weight || key.bias, "_") + flag(key.weight, "w") + flag(key.bias, "b") +
           "_e" + shortestFloat(key.eps);
  case KernelOp::Attention:
    return op + "_" + joinDims({key.heads, key.headWidth}) + "_f32_s" + shortestFloat(key.scale);
  case KernelOp::Pool:
    return op + "_" + poolKindName(key.pool).str() + "_" + width + "_f32";
  case KernelOp::L2Normalize:
    return op + "_" + width + "_f32_e" + shortestFloat(key.eps);
  case KernelOp::Activation:
    return op + "_" + width + "_f32" + act();
  case KernelOp::Add:
    return op + "_" + width + "_f32";
  case KernelOp::Slice:
    return op + "_" + joinDims({key.widthIn, key.width}) + "_f32_b" + std::to_string(key.begin);
  case KernelOp::ConcatCols:
    return op + "_" + joinDims(key.widths) + "_f32";
  }
  return op;
}

KernelFacts batten::kernelFacts(const KernelKey &key) {
  KernelFacts facts;
  switch (key.op) {
  case KernelOp::Linear:
    facts.domain = BATTEN_DOMAIN_PANELS;
    facts.panels = static_cast<uint32_t>(layout::panelCount(key.n));
    facts.slabRows = static_cast<uint32_t>(layout::slabRows(key.k));
    facts.operandCount = 3 + key.bias + key.residual;
    facts.mayOverwrite = key.residual;
    break;
  case KernelOp::Embed:
    facts.operandCount = 1 + key.words + key.types + key.positions;
    facts.rowKind = BATTEN_ROWS_TOKENS;
    break;
  case KernelOp::LayerNorm:
    facts.operandCount = 2 + key.weight + key.bias;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Attention:
    facts.domain = BATTEN_DOMAIN_TASKS;
    facts.heads = static_cast<uint32_t>(key.heads);
    facts.operandCount = 2;
    facts.rowKind = BATTEN_ROWS_TOKENS;
    break;
  case KernelOp::Pool:
    facts.operandCount = 2;
    facts.rowKind = BATTEN_ROWS_SEQS;
    break;
  case KernelOp::L2Normalize:
  case KernelOp::Activation:
    facts.operandCount = 2;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Add:
    facts.operandCount = 3;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Slice:
    facts.operandCount = 2;
    break;
  case KernelOp::ConcatCols:
    facts.operandCount = static_cast<uint32_t>(key.widths.size()) + 1;
    break;
  }
  return facts;
}

uint64_t batten::kernelScratchBytes(const KernelKey &key, uint64_t maxSeqTokens) {
  if (key.op != KernelOp::Attention || maxSeqTokens == 0)
    return 0;
  return static_cast<uint64_t>(layout::attentionScratchBytes(key.headWidth, static_cast<int64_t>(maxSeqTokens)));
}

KernelCost batten::kernelCost(const KernelKey &key) {
  constexpr uint64_t kElem = 4;
  uint64_t width = static_cast<uint64_t>(key.width);
  switch (key.op) {
  case KernelOp::Linear: {
    uint64_t k = static_cast<uint64_t>(key.k), n = static_cast<uint64_t>(key.n);
    return {2 * k * n + n * (key.bias + key.residual), 0, kElem * (k + n * (1 + key.residual))};
  }
  case KernelOp::Embed: {
    uint64_t tables = static_cast<uint64_t>(key.words + key.types + key.positions);
    return {width * (tables - 1), 0, kElem * width * (tables + 1)};
  }
  case KernelOp::LayerNorm:
    return {width * (6 + key.weight + key.bias), 0, kElem * 2 * width};
  case KernelOp::Attention: {
    uint64_t inner = static_cast<uint64_t>(key.heads * key.headWidth);
    return {inner, 4 * inner, kElem * 4 * inner};
  }
  case KernelOp::Pool:
  case KernelOp::Activation:
    return {width, 0, kElem * 2 * width};
  case KernelOp::L2Normalize:
    return {3 * width, 0, kElem * 2 * width};
  case KernelOp::Add:
    return {width, 0, kElem * 3 * width};
  case KernelOp::Slice:
    return {0, 0, kElem * 2 * width};
  case KernelOp::ConcatCols: {
    uint64_t total = 0;
    for (int64_t part : key.widths)
      total += static_cast<uint64_t>(part);
    return {0, 0, kElem * 2 * total};
  }
  }
  return {};
}
