// What a weight of the bundle is made of: an expression over checkpoint tensors, and where and how its value is stored.
// Plain structs without IR, so that the packer can be tested with tensors from memory. Vectors are one row.
#ifndef BATTEN_COMPILER_LAYOUT_WEIGHTEXPR_H
#define BATTEN_COMPILER_LAYOUT_WEIGHTEXPR_H

#include <cstdint>
#include <string>
#include <vector>

namespace batten::layout {

/// Element of a stored or packed tensor. The values of F32, F16, BF16 and I8 are those of batten_elem.
enum class Elem : uint32_t { F32 = 1, F16 = 2, BF16 = 3, I8 = 4 };

/// Bytes of one element.
constexpr int64_t elemBytes(Elem elem) { return elem == Elem::F32 ? 4 : elem == Elem::I8 ? 1 : 2; }

/// "f32", "f16", "bf16" or "i8".
constexpr const char *elemName(Elem elem) {
  switch (elem) {
  case Elem::F32:
    return "f32";
  case Elem::F16:
    return "f16";
  case Elem::BF16:
    return "bf16";
  case Elem::I8:
    return "i8";
  }
  return "?";
}

/// How the bytes of an entry are arranged; the values are those of batten_weight_layout, which draws them.
enum class Layout : uint32_t { Table = 1, Vector = 2, Panels = 3, DotPanels = 4 };

/// Whether entries of this layout are in the pack of panels.
constexpr bool isPanels(Layout layout) { return layout == Layout::Panels || layout == Layout::DotPanels; }

/// A value computed from checkpoint tensors at compile time.
///
/// Shapes: rows and cols are the value's. A one-dimensional tensor is [1, cols], one of more than two dimensions keeps its
///         first and multiplies the rest.
///   Tensor     dir and tensor name a checkpoint tensor; dir is "" or a sub-directory of the model's
///   Concat     operands below each other; operands of one row with a result of one row are joined end to end
///   Scale      operands[0] times scale, rounded once to f32
///   Transpose  operands[0] with rows and columns exchanged
///   Cast       operands[0] as elem: rounded to nearest even, so that a value of more than F16 holds is refused. I8: each
///              row by a scale of its own, only outermost and only for dot panels
///   Rope       no operand: row p is cos(p f_0) .. cos(p f_(cols/2 - 1)), then the sines, f_j = theta^(-2j / cols) / divisor. As PyTorch
///              does, exponent, power, frequency and angle are rounded to f32 one after the other; the functions of the
///              angle are rounded once
struct WeightExpr {
  enum class Kind { Tensor, Concat, Scale, Transpose, Cast, Rope };

  Kind kind = Kind::Tensor;
  std::string dir;
  std::string tensor;
  float scale = 1.0f;
  float theta = 0.0f, divisor = 1.0f;
  Elem elem = Elem::F32;
  std::vector<WeightExpr> operands;
  int64_t rows = 0;
  int64_t cols = 0;

  bool operator==(const WeightExpr &) const = default;
};

/// One tensor of a pack. rows and cols are those of the expression: for panels [n, k], for a vector [1, width].
struct PackEntry {
  std::string name;
  WeightExpr expr;
  Layout layout = Layout::Table;
  Elem elem = Elem::F32;
  int64_t rows = 0;
  int64_t cols = 0;

  bool operator==(const PackEntry &) const = default;
};

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_WEIGHTEXPR_H
