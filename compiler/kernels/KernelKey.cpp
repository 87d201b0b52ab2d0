// Names, symbols, bounds and facts of kernel keys.
#include "compiler/kernels/KernelKey.h"
#include "compiler/layout/AttentionScratch.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/RowStride.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace batten;
using llvm::StringRef;
using llvm::Twine;

static_assert(layout::kPanelCols == BATTEN_PANEL_COLS && layout::kLanes == BATTEN_LANES &&
                  layout::kAlignment == BATTEN_ALIGNMENT && layout::kKeyBlock == BATTEN_KEY_BLOCK &&
                  layout::kTaskRows == BATTEN_TASK_ROWS,
              "the layout rules and the kernel ABI agree");

namespace {

constexpr StringRef kOpNames[] = {
    "linear",     "embed",    "layer_norm",     "attention",         "pool",     "l2_normalize",
    "activation", "add",      "slice",          "concat_cols",       "rms_norm", "rope",
    "gated",      "add_type", "gather_markers", "decision_features", "softmax"};
constexpr StringRef kActivationNames[] = {"none", "gelu_erf", "gelu_tanh", "relu", "silu", "tanh", "sigmoid"};
constexpr StringRef kPoolNames[] = {"cls", "last", "mean", "mean_sqrt_len", "max"};
/// Dimensions stay below this, so that products of two fit easily in 64 bits.
constexpr int64_t kMostWidth = 1 << 24;
constexpr size_t kMostConcat = 6;
/// Columns that decision_features adds.
constexpr int64_t kFeatures = 4;

template <typename Enum, size_t N> std::optional<Enum> parseName(StringRef name, const StringRef (&names)[N]) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return static_cast<Enum>(i);
  return std::nullopt;
}

/// A key that has a width, and perhaps more.
KernelKey ofWidth(KernelOp op, int64_t width) {
  KernelKey key;
  key.op = op;
  key.width = width;
  return key;
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

KernelKey KernelKey::with(layout::Elem newStorage, layout::Elem newMath) const {
  KernelKey key = *this;
  key.storage = newStorage;
  key.math = newMath;
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

KernelKey KernelKey::rmsNorm(int64_t width, float eps, bool weight) {
  KernelKey key = ofWidth(KernelOp::RmsNorm, width);
  key.eps = eps;
  key.weight = weight;
  return key;
}

KernelKey KernelKey::attention(int64_t heads, int64_t headWidth, float scale, int64_t kvHeads,
                               std::optional<int64_t> window) {
  KernelKey key = rope(heads, headWidth, kvHeads);
  key.op = KernelOp::Attention;
  key.window = window;
  key.scale = scale;
  return key;
}

KernelKey KernelKey::rope(int64_t heads, int64_t headWidth, int64_t kvHeads) {
  KernelKey key;
  key.op = KernelOp::Rope;
  key.heads = heads;
  key.headWidth = headWidth;
  key.kvHeads = kvHeads == heads ? 0 : kvHeads;
  return key;
}

KernelKey KernelKey::gated(int64_t width, ActivationKind act, bool second) {
  KernelKey key = ofWidth(KernelOp::Gated, width);
  key.act = act;
  key.second = second;
  return key;
}

KernelKey KernelKey::pooling(int64_t width, PoolKind kind) {
  KernelKey key = ofWidth(KernelOp::Pool, width);
  key.pool = kind;
  return key;
}

KernelKey KernelKey::l2Normalize(int64_t width, float eps) {
  KernelKey key = ofWidth(KernelOp::L2Normalize, width);
  key.eps = eps;
  return key;
}

KernelKey KernelKey::activation(int64_t width, ActivationKind act) {
  KernelKey key = ofWidth(KernelOp::Activation, width);
  key.act = act;
  return key;
}

KernelKey KernelKey::add(int64_t width) { return ofWidth(KernelOp::Add, width); }
KernelKey KernelKey::softmax(int64_t width) { return ofWidth(KernelOp::Softmax, width); }
KernelKey KernelKey::addType(int64_t width) { return ofWidth(KernelOp::AddType, width); }
KernelKey KernelKey::gatherMarkers(int64_t width) { return ofWidth(KernelOp::GatherMarkers, width); }
KernelKey KernelKey::decisionFeatures(int64_t width) { return ofWidth(KernelOp::DecisionFeatures, width); }

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
    if (key.math == layout::Elem::F32 ? key.storage == layout::Elem::I8
                                      : key.math == layout::Elem::F16 || key.storage != key.math)
      fail(Twine("math is ") + layout::elemName(key.math) + " with weights of " + layout::elemName(key.storage) +
           ", f32 with f32, f16 or bf16, bf16 with bf16, or i8 with i8 wanted");
    break;
  case KernelOp::Embed:
    positive("width", key.width);
    if (!key.words && !key.types && !key.positions)
      fail("has no table, at least one of words, types, positions wanted");
    if (key.storage == layout::Elem::I8)
      fail("tables are i8, f32, f16 or bf16 wanted");
    if (key.offset < 0 || key.offset >= kMostWidth || (key.offset && !key.positions))
      fail("offset is " + Twine(key.offset) + ", 0 to " + Twine(kMostWidth - 1) + " wanted, and 0 without positions");
    break;
  case KernelOp::LayerNorm:
  case KernelOp::RmsNorm:
  case KernelOp::L2Normalize:
    positive("width", key.width);
    epsilon();
    break;
  case KernelOp::Attention:
  case KernelOp::Rope:
    positive("heads", key.heads);
    positive("head_width", key.headWidth);
    if (key.kvHeads)
      positive("kv_heads", key.kvHeads);
    if (problem.empty() && key.qkvWidth() >= kMostWidth)
      fail("rows of q, k and v are " + Twine(key.qkvWidth()) + " wide, below " + Twine(kMostWidth) + " wanted");
    if (problem.empty() && (key.heads % key.kvHeadCount() || key.kvHeads == key.heads))
      fail("kv_heads is " + Twine(key.kvHeads) + ", a divisor of " + Twine(key.heads) +
           " heads wanted, and none where it would be the same");
    if (key.op == KernelOp::Rope) {
      if (key.headWidth % 2)
        fail("head_width is " + Twine(key.headWidth) + ", an even one wanted");
      break;
    }
    if (key.window && (*key.window < 0 || *key.window > kMostWidth))
      fail("window is " + Twine(*key.window) + ", 0 to " + Twine(kMostWidth) + " wanted");
    if (!std::isfinite(key.scale))
      fail("scale is " + shortestFloat(key.scale) + ", a finite number wanted");
    break;
  case KernelOp::Pool:
  case KernelOp::Add:
  case KernelOp::AddType:
  case KernelOp::GatherMarkers:
  case KernelOp::Softmax:
    positive("width", key.width);
    break;
  case KernelOp::DecisionFeatures:
    positive("width", key.width);
    positive("the output's width", key.width + kFeatures);
    break;
  case KernelOp::Gated:
    positive("width", key.width);
    positive("the input's width", 2 * key.width);
    if (key.act == ActivationKind::None)
      fail("act is none, a function wanted");
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
    return op + "_" + joinDims({key.k, key.n}) + "_" + layout::elemName(key.math) +
           (key.storage == key.math ? "" : std::string("_w") + layout::elemName(key.storage)) +
           flag(key.bias, "_bias") + act() + flag(key.residual, "_res");
  case KernelOp::Embed:
    return op + "_" + width + "_" + layout::elemName(key.storage) + "_" + flag(key.words, "w") + flag(key.types, "t") +
           flag(key.positions, "p") + (key.offset ? "_o" + std::to_string(key.offset) : "");
  case KernelOp::LayerNorm:
    return op + "_" + width + "_f32" + flag(key.weight || key.bias, "_") + flag(key.weight, "w") + flag(key.bias, "b") +
           "_e" + shortestFloat(key.eps);
  case KernelOp::RmsNorm:
    return op + "_" + width + "_f32" + flag(key.weight, "_w") + "_e" + shortestFloat(key.eps);
  case KernelOp::Attention:
  case KernelOp::Rope:
    return op + "_" + joinDims({key.heads, key.headWidth}) + "_f32" +
           (key.kvHeads ? "_kv" + std::to_string(key.kvHeads) : "") +
           (key.window ? "_w" + std::to_string(*key.window) : "") +
           (key.op == KernelOp::Attention ? "_s" + shortestFloat(key.scale) : "");
  case KernelOp::Gated:
    return op + "_" + width + "_f32" + act() + flag(key.second, "_second");
  case KernelOp::Pool:
    return op + "_" + poolKindName(key.pool).str() + "_" + width + "_f32";
  case KernelOp::L2Normalize:
    return op + "_" + width + "_f32_e" + shortestFloat(key.eps);
  case KernelOp::Activation:
    return op + "_" + width + "_f32" + act();
  case KernelOp::Add:
  case KernelOp::AddType:
  case KernelOp::GatherMarkers:
  case KernelOp::DecisionFeatures:
  case KernelOp::Softmax:
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
  case KernelOp::RmsNorm:
    facts.operandCount = 2 + key.weight + key.bias;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Rope:
  case KernelOp::AddType:
    facts.operandCount = 3;
    facts.mayOverwrite = true;
    facts.rowKind = BATTEN_ROWS_TOKENS;
    break;
  case KernelOp::GatherMarkers:
    facts.operandCount = 2;
    facts.rowKind = BATTEN_ROWS_MARKERS;
    break;
  case KernelOp::DecisionFeatures:
    facts.operandCount = 3;
    facts.rowKind = BATTEN_ROWS_SEQS;
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
  case KernelOp::Softmax:
    facts.operandCount = 2;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Add:
    facts.operandCount = 3;
    facts.mayOverwrite = true;
    break;
  case KernelOp::Slice:
  case KernelOp::Gated:
    facts.operandCount = 2;
    break;
  case KernelOp::ConcatCols:
    facts.operandCount = static_cast<uint32_t>(key.widths.size()) + 1;
    break;
  }
  return facts;
}

uint64_t batten::kernelScratchBytes(const KernelKey &key, uint64_t maxSeqTokens) {
  if (key.op == KernelOp::Linear) // its sums, and before them its rows as dots
    return static_cast<uint64_t>(layout::kLinearSumsBytes +
                                 (key.math == layout::Elem::F32 ? 0 : layout::dotScratchBytes(key.math, key.k)));
  if (key.op != KernelOp::Attention || maxSeqTokens == 0)
    return 0;
  return static_cast<uint64_t>(
      layout::attentionScratchBytes(key.headWidth, static_cast<int64_t>(maxSeqTokens), key.window));
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
    return {width * (tables - 1), 0, width * (kElem + tables * static_cast<uint64_t>(elemBytes(key.storage)))};
  }
  case KernelOp::LayerNorm:
    return {width * (6 + key.weight + key.bias), 0, kElem * 2 * width};
  case KernelOp::RmsNorm:
    return {width * (3 + key.weight), 0, kElem * 2 * width};
  case KernelOp::Attention: {
    uint64_t inner = static_cast<uint64_t>(key.heads * key.headWidth), in = static_cast<uint64_t>(key.qkvWidth());
    return {inner, 4 * inner, kElem * (in + inner)};
  }
  case KernelOp::Rope: {
    uint64_t turned = static_cast<uint64_t>((key.heads + key.kvHeadCount()) * key.headWidth);
    return {3 * turned, 0, kElem * 2 * static_cast<uint64_t>(key.qkvWidth())};
  }
  case KernelOp::Gated:
    return {2 * width, 0, kElem * 3 * width};
  case KernelOp::AddType:
    return {width, 0, kElem * 3 * width};
  case KernelOp::GatherMarkers:
    return {0, 0, kElem * 2 * width};
  case KernelOp::DecisionFeatures:
    return {0, 0, kElem * (2 * width + kFeatures + 1)};
  case KernelOp::Softmax:
    return {4 * width, 0, kElem * 2 * width};
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
