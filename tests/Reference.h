// The definition of each op of the batten dialect: one naive function in double precision, plain loops, no blocking. Every
// kernel of every target is held against these. Assumes valid input; checks nothing.
#ifndef BATTEN_TESTS_REFERENCE_H
#define BATTEN_TESTS_REFERENCE_H

#include "compiler/kernels/KernelKey.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace batten::reference {

/// Rows of numbers, dense and row-major.
struct Matrix {
  Matrix() = default;
  Matrix(size_t rows, size_t cols) : rows(rows), cols(cols), values(rows * cols) {}

  double &operator()(size_t row, size_t col) { return values[row * cols + col]; }
  double operator()(size_t row, size_t col) const { return values[row * cols + col]; }

  size_t rows = 0, cols = 0;
  std::vector<double> values;
};

/// act(x), with the limit at infinities (gelu and silu of -inf are 0); NaN gives NaN.
double activate(ActivationKind kind, double x);

/// Row ids[t] of a table for each token t.
Matrix embed(const Matrix &table, const std::vector<uint32_t> &ids);

/// Row offset + (place of the token in its sequence) of a table for each token.
Matrix embedPositions(const Matrix &table, const std::vector<uint32_t> &cuSeqlens, size_t offset);

/// (x - mean) / sqrt(variance + eps) * weight + bias, per row; an empty weight is ones, an empty bias zeros.
Matrix layerNorm(const Matrix &x, const std::vector<double> &weight, const std::vector<double> &bias, double eps);

/// x / sqrt(mean of squares + eps) * weight, per row; an empty weight is ones.
Matrix rmsNorm(const Matrix &x, const std::vector<double> &weight, double eps);

/// x w^T + bias, w is [n, k]; an empty bias is zeros.
Matrix linear(const Matrix &x, const Matrix &w, const std::vector<double> &bias);

Matrix activation(const Matrix &x, ActivationKind kind);
Matrix add(const Matrix &a, const Matrix &b);

/// softmax(scale * q k^T) v inside each sequence and head, over rows [q of heads | k of kvHeads | v of kvHeads]; query
/// head h reads head h / (heads / kvHeads) of the others. kvHeads 0: as many as heads. A window keeps the keys at most
/// that far from the query, on either side.
Matrix attention(const Matrix &qkv, const std::vector<uint32_t> &cuSeqlens, size_t heads, size_t headWidth,
                 double scale, size_t kvHeads = 0, std::optional<int64_t> window = std::nullopt);

/// Cosines, then sines, of p * theta^(-2j / headWidth) for each position p: rows of headWidth.
Matrix ropeTable(size_t positions, size_t headWidth, double theta);

/// Rotates the heads of q and k of [q | k | v] rows by the table's row of their position in the sequence: elements
/// (j, j + headWidth / 2) become (lo cos - hi sin, hi cos + lo sin).
Matrix rope(const Matrix &qkv, const std::vector<uint32_t> &cuSeqlens, const Matrix &table, size_t heads,
            size_t kvHeads, size_t headWidth);

/// act(a half of each row) times the other half; `second`: of the second half.
Matrix gated(const Matrix &x, ActivationKind act, bool second);

/// Row types[s] of a table added to every row of sequence s.
Matrix addType(const Matrix &x, const std::vector<uint32_t> &cuSeqlens, const std::vector<uint32_t> &types,
               const Matrix &table);

/// Rows by their numbers.
Matrix gatherRows(const Matrix &x, const std::vector<uint32_t> &rows);

/// Per sequence: its first row, zeros if it is empty; then, p being the softmax of its markers' logits and k their number
/// but at least 2: the largest p, that minus the second largest (0 where there is but one), -sum p ln max(p, 1e-9) / ln k,
/// k / 255. Without markers the first three are 0.
Matrix decisionFeatures(const Matrix &x, const Matrix &logits, const std::vector<uint32_t> &cuSeqlens,
                        const std::vector<uint32_t> &cuMarkers);

/// exp(x) / sum of exp(x), per row.
Matrix softmax(const Matrix &x);

/// One row a sequence; an empty sequence gives zeros. max gives NaN for a column that holds one.
Matrix pool(const Matrix &x, const std::vector<uint32_t> &cuSeqlens, PoolKind kind);

/// x / max(norm, eps), per row.
Matrix l2Normalize(const Matrix &x, double eps);

/// Columns [begin, begin + width).
Matrix slice(const Matrix &x, size_t begin, size_t width);

/// The rows' columns side by side.
Matrix concatCols(const std::vector<Matrix> &parts);

} // namespace batten::reference

#endif // BATTEN_TESTS_REFERENCE_H
