// What a kernel is made for: the key that kernels are selected, shared and named by. Plain data without IR, so that
// planning, serializing and tests need no MLIR. A key knows no row count, bucket or target.
#ifndef BATTEN_COMPILER_KERNELS_KERNELKEY_H
#define BATTEN_COMPILER_KERNELS_KERNELKEY_H

#include "batten/kernel.h"
#include "compiler/layout/WeightExpr.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batten {

/// The op that a kernel carries out. The text form is the op's name in the batten dialect.
enum class KernelOp {
  Linear,
  Embed,
  LayerNorm,
  Attention,
  Pool,
  L2Normalize,
  Activation,
  Add,
  Slice,
  ConcatCols,
  RmsNorm,
  Rope,
  Gated,
  AddType,
  GatherMarkers,
  DecisionFeatures,
  Softmax
};

/// An elementwise function. The text forms are none, gelu_erf, gelu_tanh, relu, silu, tanh, sigmoid.
enum class ActivationKind { None, GeluErf, GeluTanh, Relu, Silu, Tanh, Sigmoid };

/// How a sequence's rows become one. The text forms are cls, last, mean, mean_sqrt_len, max.
enum class PoolKind { Cls, Last, Mean, MeanSqrtLen, Max };

llvm::StringRef kernelOpName(KernelOp op);
std::optional<KernelOp> parseKernelOp(llvm::StringRef name);
llvm::StringRef activationName(ActivationKind kind);
std::optional<ActivationKind> parseActivation(llvm::StringRef name);
llvm::StringRef poolKindName(PoolKind kind);
std::optional<PoolKind> parsePoolKind(llvm::StringRef name);

/// A kernel key. Fields that an op doesn't list keep their defaults, so that keys compare as wholes.
///
///   op                 attributes                                     pointers, output last
///   linear             k n [bias] act [residual] [storage] [math]     x w [bias] [residual] out
///   embed              width [words] [types] [positions] offset [storage]  [words] [types] [positions] out
///   layer_norm         width eps [weight] [bias]                      [gamma] [beta] x out
///   rms_norm           width eps [weight]                             [gamma] x out
///   attention          heads [kv_heads] head_width [window] scale     qkv out
///   rope               heads [kv_heads] head_width                    table qkv out
///   gated              width act [second]                             x out
///   pool               width kind                                     x out
///   l2_normalize       width eps                                      x out
///   activation         width act                                      x out
///   softmax            width                                          x out
///   add                width                                          a b out
///   add_type           width                                          table x out
///   slice              width_in begin width                           x out
///   concat_cols        widths (1 to 6)                                x0 x1 .. out
///   gather_markers     width                                          x out
///   decision_features  width                                          x logits out
///
/// storage is the element type of linear's weight and of embed's tables, math what linear multiplies in; neither is printed
/// where it is f32. Other operands are f32. Widths are the output's; gated reads rows twice as wide, decision_features writes rows 4 wider than x.
struct KernelKey {
  KernelOp op = KernelOp::Add;
  int64_t k = 0, n = 0;
  int64_t width = 0;
  int64_t widthIn = 0, begin = 0;
  int64_t heads = 0, headWidth = 0;
  int64_t kvHeads = 0;           ///< heads of keys and values; 0: as many as heads
  std::optional<int64_t> window; ///< keys on either side that a query sees; none: all of its sequence
  int64_t offset = 0;            ///< added to the position within the sequence
  float eps = 0.0f, scale = 0.0f;
  ActivationKind act = ActivationKind::None;
  PoolKind pool = PoolKind::Cls;
  bool bias = false, residual = false, weight = false;
  bool second = false; ///< gated: the second half goes through the function
  bool words = false, types = false, positions = false;
  std::vector<int64_t> widths;
  layout::Elem storage = layout::Elem::F32, math = layout::Elem::F32;

  bool operator==(const KernelKey &) const = default;

  int64_t kvHeadCount() const { return kvHeads ? kvHeads : heads; }
  /// Width of [q | k | v] rows: of attention's and rope's input.
  int64_t qkvWidth() const { return (heads + 2 * kvHeadCount()) * headWidth; }

  static KernelKey linear(int64_t k, int64_t n, bool bias, ActivationKind act = ActivationKind::None,
                          bool residual = false);
  static KernelKey embed(int64_t width, bool words, bool types, bool positions, int64_t offset = 0);
  /// The key with weights of that type, computed in that math.
  KernelKey with(layout::Elem storage, layout::Elem math = layout::Elem::F32) const;
  static KernelKey layerNorm(int64_t width, float eps, bool weight = true, bool bias = true);
  static KernelKey rmsNorm(int64_t width, float eps, bool weight = true);
  /// kvHeads as many as heads, or fewer.
  static KernelKey attention(int64_t heads, int64_t headWidth, float scale, int64_t kvHeads = 0,
                             std::optional<int64_t> window = std::nullopt);
  static KernelKey rope(int64_t heads, int64_t headWidth, int64_t kvHeads = 0);
  static KernelKey gated(int64_t width, ActivationKind act, bool second = false);
  static KernelKey pooling(int64_t width, PoolKind kind);
  static KernelKey l2Normalize(int64_t width, float eps);
  static KernelKey activation(int64_t width, ActivationKind act);
  static KernelKey add(int64_t width);
  static KernelKey slice(int64_t widthIn, int64_t begin, int64_t width);
  static KernelKey concatCols(std::vector<int64_t> widths);
  static KernelKey softmax(int64_t width);
  static KernelKey addType(int64_t width);
  static KernelKey gatherMarkers(int64_t width);
  static KernelKey decisionFeatures(int64_t width);
};

/// Checks what the emitters rely on: positive widths below 2^24, finite eps and scale, flags that make sense.
///
/// Errors: the op, the attribute, the value found and the bound.
llvm::Error verifyKernelKey(const KernelKey &key);

/// Prints the key as op and attributes: `linear {k = 384, n = 1152, bias, act = "none"}`. Floats are printed exactly. An
/// MLIR parser reads the braces' content as a dictionary.
std::string printKernelKey(const KernelKey &key);

/// Reads what printKernelKey prints; also the order and the type suffixes that MLIR prints. The result is verified.
///
/// Errors: the text, what was found and what was wanted.
llvm::Expected<KernelKey> parseKernelKey(llvm::StringRef text);

/// The shortest decimal that reads back as the same float: 1e-05, 0.17677669, 2.
std::string shortestFloat(float value);

/// Name of the kernel's symbol, a pure function of the key and different for different keys:
/// `linear_384x1152_f32_bias_gelu_erf_res`, `layer_norm_384_f32_wb_e1e-05`.
std::string kernelSymbol(const KernelKey &key);

/// What the plan's kernel record says of a kernel (batten_kernel_t), and how a step's rows are counted.
struct KernelFacts {
  batten_work_domain domain = BATTEN_DOMAIN_ROWS;
  uint32_t panels = 0;       ///< domain panels: 32-column panels
  uint32_t slabRows = 0;     ///< domain panels: most rows of a slab
  uint32_t heads = 0;        ///< domain tasks
  uint32_t operandCount = 0; ///< pointers, output last
  bool mayOverwrite = false; ///< the last input may be the output's memory
  /// Row kind of the output that the op fixes: tokens for embed and attention, seqs for pool. Otherwise the operands' own.
  std::optional<batten_row_kind> rowKind;
};

KernelFacts kernelFacts(const KernelKey &key);

/// Scratch bytes that a worker needs; a multiple of 64, 0 for all but attention and linear.
///
/// Units: maxSeqTokens is the longest sequence of the bucket (the lesser of its tokens and the model's positions).
uint64_t kernelScratchBytes(const KernelKey &key, uint64_t maxSeqTokens);

/// Work and traffic, for profiles and rooflines. An fma counts as two operations; weights aren't counted as bytes.
struct KernelCost {
  uint64_t flopsPerRow = 0;
  uint64_t flopsPerPair = 0; ///< for each (query, key) of a sequence, all heads
  uint64_t bytesPerRow = 0;  ///< activations read and written
};

KernelCost kernelCost(const KernelKey &key);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_KERNELKEY_H
