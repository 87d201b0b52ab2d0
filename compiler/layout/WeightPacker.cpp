// The evaluator is a recursion over the expression, called for blocks of result rows; each Tensor leaf reads, widens and
// checks just these rows. Panels take 32 rows at a time and turn them.
#include "compiler/layout/WeightPacker.h"
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/RowStride.h"
#include "compiler/layout/WeightStorage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace batten::layout {

static_assert(std::endian::native == std::endian::little, "checkpoints and packs are little endian");

/// Floats of a block: 1 MiB, so that the reads are large and several blocks of a nested expression stay small.
static constexpr int64_t kBlockFloats = 256 * 1024;
/// A transpose reads its whole operand for each block of its result, so its blocks are larger.
static constexpr int64_t kTransposeBlockFloats = 64 * kBlockFloats;

namespace {

std::string shapeText(int64_t rows, int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

std::string scaleText(float scale) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", static_cast<double>(scale));
  return text;
}

/// The tensors of an expression, "2_Dense/linear.weight, w".
std::string tensorNames(const WeightExpr &expr) {
  if (expr.kind == WeightExpr::Kind::Tensor)
    return (expr.dir.empty() ? "" : expr.dir + "/") + expr.tensor;
  std::string names;
  for (const WeightExpr &operand : expr.operands)
    names += (names.empty() ? "" : ", ") + tensorNames(operand);
  return names;
}

/// Evaluates one expression tree; checked once as a whole, then asked for blocks of rows.
class Evaluator {
public:
  Evaluator(TensorSource &source, std::string &error) : source(source), error(error) {}

  bool check(const WeightExpr &expr);
  /// Rows [first, first + count) into out, count * expr.cols floats.
  bool rows(const WeightExpr &expr, int64_t first, int64_t count, float *out);

private:
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool tensorRows(const WeightExpr &expr, int64_t first, int64_t count, float *out);
  bool concatRows(const WeightExpr &expr, int64_t first, int64_t count, float *out);
  bool transposeRows(const WeightExpr &expr, int64_t first, int64_t count, float *out);

  TensorSource &source;
  std::string &error;
  std::vector<uint8_t> raw;
};

bool Evaluator::check(const WeightExpr &expr) {
  std::optional<int64_t> elements = checkedMul(expr.rows, expr.cols);
  if (expr.rows <= 0 || expr.cols <= 0 || !elements)
    return fail("weight expression of shape " + shapeText(expr.rows, expr.cols) + ", wanted dimensions of at least 1");
  if (expr.kind == WeightExpr::Kind::Tensor) {
    TensorSource::Info info;
    if (!source.find(expr.dir, expr.tensor, info, error))
      return false;
    if (info.elements != *elements)
      return fail(info.where + ": " + shapeText(expr.rows, expr.cols) + " wanted, " + std::to_string(info.elements) +
                  " elements found");
    return true;
  }
  if (expr.kind == WeightExpr::Kind::Rope)
    return expr.cols % 2 == 0 || fail("rope table of " + std::to_string(expr.cols) + " columns, an even number wanted");
  if (expr.operands.empty() || (expr.kind != WeightExpr::Kind::Concat && expr.operands.size() != 1))
    return fail("weight expression with " + std::to_string(expr.operands.size()) + " operands");
  int64_t rowSum = 0, colSum = 0;
  bool sameCols = true, oneRow = true;
  for (const WeightExpr &operand : expr.operands) {
    if (!check(operand))
      return false;
    rowSum += operand.rows;
    colSum += operand.cols;
    sameCols &= operand.cols == expr.cols;
    oneRow &= operand.rows == 1;
  }
  const WeightExpr &first = expr.operands.front();
  bool fits = false;
  switch (expr.kind) {
  case WeightExpr::Kind::Tensor:
  case WeightExpr::Kind::Rope:
    break;
  case WeightExpr::Kind::Concat:
    fits = (sameCols && rowSum == expr.rows) || (oneRow && expr.rows == 1 && colSum == expr.cols);
    break;
  case WeightExpr::Kind::Transpose:
    fits = first.rows == expr.cols && first.cols == expr.rows;
    break;
  case WeightExpr::Kind::Cast:
  case WeightExpr::Kind::Scale:
    fits = first.rows == expr.rows && first.cols == expr.cols;
    break;
  }
  return fits ||
         fail("weight expression of shape " + shapeText(expr.rows, expr.cols) + " does not follow from " +
              std::to_string(expr.operands.size()) + " operands, the first " + shapeText(first.rows, first.cols));
}

bool Evaluator::tensorRows(const WeightExpr &expr, int64_t first, int64_t count, float *out) {
  TensorSource::Info info;
  if (!source.find(expr.dir, expr.tensor, info, error))
    return false;
  int64_t elements = count * expr.cols;
  if (info.elem == Elem::F32) {
    if (!source.read(expr.dir, expr.tensor, first * expr.cols, elements, reinterpret_cast<uint8_t *>(out), error))
      return false;
  } else {
    raw.resize(static_cast<size_t>(elements) * 2);
    if (!source.read(expr.dir, expr.tensor, first * expr.cols, elements, raw.data(), error))
      return false;
    for (int64_t i = 0; i < elements; ++i) {
      uint16_t bits;
      std::memcpy(&bits, raw.data() + 2 * i, 2);
      out[i] = info.elem == Elem::F16 ? widenF16(bits) : widenBF16(bits);
    }
  }
  bool finite = true;
  for (int64_t i = 0; i < elements; ++i)
    finite &= (std::bit_cast<uint32_t>(out[i]) & 0x7F800000u) != 0x7F800000u;
  if (finite)
    return true;
  int64_t at = std::find_if(out, out + elements, [](float v) { return !std::isfinite(v); }) - out;
  const char *value = std::isnan(out[at]) ? "NaN" : out[at] > 0 ? "inf" : "-inf";
  return fail(info.where + ": " + value + " at row " + std::to_string(first + at / expr.cols) + ", column " +
              std::to_string(at % expr.cols));
}

bool Evaluator::concatRows(const WeightExpr &expr, int64_t first, int64_t count, float *out) {
  if (expr.operands.front().cols != expr.cols) { // one row each, end to end
    for (const WeightExpr &operand : expr.operands) {
      if (!rows(operand, 0, 1, out))
        return false;
      out += operand.cols;
    }
    return true;
  }
  int64_t begin = 0;
  for (const WeightExpr &operand : expr.operands) {
    int64_t from = std::max(first, begin), to = std::min(first + count, begin + operand.rows);
    if (from < to && !rows(operand, from - begin, to - from, out + (from - first) * expr.cols))
      return false;
    begin += operand.rows;
  }
  return true;
}

bool Evaluator::transposeRows(const WeightExpr &expr, int64_t first, int64_t count, float *out) {
  const WeightExpr &operand = expr.operands.front();
  int64_t step = std::max<int64_t>(1, kBlockFloats / operand.cols);
  std::vector<float> block(static_cast<size_t>(std::min(step, operand.rows) * operand.cols));
  for (int64_t row = 0; row < operand.rows; row += step) {
    int64_t here = std::min(step, operand.rows - row);
    if (!rows(operand, row, here, block.data()))
      return false;
    for (int64_t r = 0; r < here; ++r)
      for (int64_t c = 0; c < count; ++c)
        out[c * expr.cols + row + r] = block[static_cast<size_t>(r * operand.cols + first + c)];
  }
  return true;
}

/// The double functions err by less than 1e-15, so that what is rounded to f32 is the same with any libm.
static void ropeRows(const WeightExpr &expr, int64_t first, int64_t count, float *out) {
  int64_t half = expr.cols / 2;
  std::vector<float> frequency(static_cast<size_t>(half));
  for (int64_t j = 0; j < half; ++j) {
    float exponent = static_cast<float>(2 * j) / static_cast<float>(expr.cols);
    frequency[static_cast<size_t>(j)] =
        1.0f / static_cast<float>(std::pow(static_cast<double>(expr.theta), static_cast<double>(exponent))) /
        expr.divisor;
  }
  for (int64_t row = first; row < first + count; ++row, out += expr.cols)
    for (int64_t j = 0; j < half; ++j) {
      float angle = static_cast<float>(row) * frequency[static_cast<size_t>(j)];
      out[j] = static_cast<float>(std::cos(static_cast<double>(angle)));
      out[half + j] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
}

bool Evaluator::rows(const WeightExpr &expr, int64_t first, int64_t count, float *out) {
  switch (expr.kind) {
  case WeightExpr::Kind::Tensor:
    return tensorRows(expr, first, count, out);
  case WeightExpr::Kind::Concat:
    return concatRows(expr, first, count, out);
  case WeightExpr::Kind::Transpose:
    return transposeRows(expr, first, count, out);
  case WeightExpr::Kind::Rope:
    ropeRows(expr, first, count, out);
    return true;
  case WeightExpr::Kind::Cast:
  case WeightExpr::Kind::Scale:
    break;
  }
  if (!rows(expr.operands.front(), first, count, out))
    return false;
  bool scales = expr.kind == WeightExpr::Kind::Scale;
  for (int64_t i = 0, n = count * expr.cols; i < n; ++i) {
    out[i] = scales ? out[i] * expr.scale : roundTo(expr.elem, out[i]);
    if (!std::isfinite(out[i]))
      return fail(tensorNames(expr) +
                  (scales ? " times " + scaleText(expr.scale) : std::string(" as ") + elemName(expr.elem)) +
                  " is not finite at row " + std::to_string(first + i / expr.cols) + ", column " +
                  std::to_string(i % expr.cols));
  }
  return true;
}

bool hasTranspose(const WeightExpr &expr) {
  return expr.kind == WeightExpr::Kind::Transpose ||
         std::any_of(expr.operands.begin(), expr.operands.end(), [](const WeightExpr &e) { return hasTranspose(e); });
}

} // namespace

bool evaluate(const WeightExpr &expr, TensorSource &source, float *out, std::string &error) {
  Evaluator evaluator(source, error);
  return evaluator.check(expr) && evaluator.rows(expr, 0, expr.rows, out);
}

bool packEntry(const PackEntry &entry, TensorSource &source, ByteSink &sink, std::string &error) {
  const WeightExpr &expr = entry.expr;
  std::optional<int64_t> bytes = entryBytes(entry.layout, entry.elem, entry.rows, entry.cols);
  if (!bytes || entry.rows != expr.rows || entry.cols != expr.cols) {
    error = "pack entry '" + entry.name + "': " + shapeText(entry.rows, entry.cols) + " with a value of " +
            shapeText(expr.rows, expr.cols);
    return false;
  }
  bool dots = entry.layout == Layout::DotPanels;
  if (entry.elem == Elem::I8 && !dots) {
    error = "pack entry '" + entry.name + "': i8 outside of dot panels";
    return false;
  }
  Evaluator evaluator(source, error);
  if (!evaluator.check(expr))
    return false;

  bool panels = isPanels(entry.layout);
  int64_t blockFloats = hasTranspose(expr) ? kTransposeBlockFloats : kBlockFloats;
  int64_t step = std::max<int64_t>(1, blockFloats / entry.cols);
  if (panels)
    step = roundUp(step, kPanelCols);
  step = std::min(step, entry.rows);
  std::vector<float> value(static_cast<size_t>(step * entry.cols));
  std::vector<uint8_t> stored;
  int64_t written = 0;
  for (int64_t row = 0; row < entry.rows; row += step) {
    int64_t here = std::min(step, entry.rows - row);
    if (!evaluator.rows(expr, row, here, value.data()))
      return false;
    stored.clear();
    appendStored(entry.layout, entry.elem, value.data(), here, entry.cols, stored);
    if (!sink.write(stored.data(), stored.size(), error))
      return false;
    written += static_cast<int64_t>(stored.size());
  }
  const uint8_t zeros[kAlignment * 2] = {};
  return written == *bytes || sink.write(zeros, static_cast<size_t>(*bytes - written), error);
}

} // namespace batten::layout
