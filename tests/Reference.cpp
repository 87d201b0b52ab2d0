// Plain loops. A reader should see at once that each is what its op says.
#include "tests/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace batten;
using namespace batten::reference;

double reference::activate(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::None:
    return x;
  case ActivationKind::GeluErf:
    return x == -INFINITY ? 0.0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  case ActivationKind::GeluTanh: // x * (1 + tanh(u)) / 2, in the form that doesn't cancel
    return x == -INFINITY ? 0.0 : x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
  case ActivationKind::Relu:
    return x < 0.0 ? 0.0 : x;
  case ActivationKind::Silu:
    return x == -INFINITY ? 0.0 : x / (1.0 + std::exp(-x));
  case ActivationKind::Tanh:
    return std::tanh(x);
  case ActivationKind::Sigmoid:
    return 1.0 / (1.0 + std::exp(-x));
  }
  return x;
}

Matrix reference::embed(const Matrix &table, const std::vector<uint32_t> &ids) {
  Matrix out(ids.size(), table.cols);
  for (size_t t = 0; t < ids.size(); ++t)
    for (size_t c = 0; c < table.cols; ++c)
      out(t, c) = table(ids[t], c);
  return out;
}

Matrix reference::embedPositions(const Matrix &table, const std::vector<uint32_t> &cuSeqlens, size_t offset) {
  Matrix out(cuSeqlens.back(), table.cols);
  for (size_t s = 0; s + 1 < cuSeqlens.size(); ++s)
    for (uint32_t t = cuSeqlens[s]; t < cuSeqlens[s + 1]; ++t)
      for (size_t c = 0; c < table.cols; ++c)
        out(t, c) = table(offset + (t - cuSeqlens[s]), c);
  return out;
}

Matrix reference::layerNorm(const Matrix &x, const std::vector<double> &weight, const std::vector<double> &bias,
                            double eps) {
  Matrix out(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < x.cols; ++c)
      mean += x(r, c) / static_cast<double>(x.cols);
    for (size_t c = 0; c < x.cols; ++c)
      variance += (x(r, c) - mean) * (x(r, c) - mean) / static_cast<double>(x.cols);
    for (size_t c = 0; c < x.cols; ++c)
      out(r, c) = (x(r, c) - mean) / std::sqrt(variance + eps) * (weight.empty() ? 1.0 : weight[c]) +
                  (bias.empty() ? 0.0 : bias[c]);
  }
  return out;
}

Matrix reference::rmsNorm(const Matrix &x, const std::vector<double> &weight, double eps) {
  Matrix out(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    double squares = 0;
    for (size_t c = 0; c < x.cols; ++c)
      squares += x(r, c) * x(r, c);
    for (size_t c = 0; c < x.cols; ++c)
      out(r, c) = x(r, c) / std::sqrt(squares / static_cast<double>(x.cols) + eps) * (weight.empty() ? 1.0 : weight[c]);
  }
  return out;
}

Matrix reference::linear(const Matrix &x, const Matrix &w, const std::vector<double> &bias) {
  Matrix out(x.rows, w.rows);
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t n = 0; n < w.rows; ++n) {
      double sum = bias.empty() ? 0.0 : bias[n];
      for (size_t k = 0; k < x.cols; ++k)
        sum += x(r, k) * w(n, k);
      out(r, n) = sum;
    }
  return out;
}

Matrix reference::activation(const Matrix &x, ActivationKind kind) {
  Matrix out = x;
  for (double &value : out.values)
    value = activate(kind, value);
  return out;
}

Matrix reference::add(const Matrix &a, const Matrix &b) {
  Matrix out = a;
  for (size_t i = 0; i < out.values.size(); ++i)
    out.values[i] += b.values[i];
  return out;
}

Matrix reference::attention(const Matrix &qkv, const std::vector<uint32_t> &cuSeqlens, size_t heads, size_t headWidth,
                            double scale, size_t kvHeads, std::optional<int64_t> window) {
  if (kvHeads == 0)
    kvHeads = heads;
  size_t inner = heads * headWidth, kvInner = kvHeads * headWidth;
  Matrix out(qkv.rows, inner);
  for (size_t s = 0; s + 1 < cuSeqlens.size(); ++s)
    for (size_t h = 0; h < heads; ++h)
      for (int64_t i = cuSeqlens[s]; i < cuSeqlens[s + 1]; ++i) {
        int64_t begin = cuSeqlens[s], end = cuSeqlens[s + 1];
        if (window) {
          begin = std::max(begin, i - *window);
          end = std::min(end, i + *window + 1);
        }
        size_t key = inner + h / (heads / kvHeads) * headWidth, value = key + kvInner;
        std::vector<double> p;
        double most = -INFINITY, total = 0;
        for (int64_t j = begin; j < end; ++j) {
          double score = 0;
          for (size_t d = 0; d < headWidth; ++d)
            score += qkv(i, h * headWidth + d) * qkv(j, key + d);
          p.push_back(scale * score);
          most = std::max(most, p.back());
        }
        for (double &weight : p) {
          weight = std::exp(weight - most);
          total += weight;
        }
        for (size_t d = 0; d < headWidth; ++d) {
          double sum = 0;
          for (int64_t j = begin; j < end; ++j)
            sum += p[j - begin] / total * qkv(j, value + d);
          out(i, h * headWidth + d) = sum;
        }
      }
  return out;
}

Matrix reference::ropeTable(size_t positions, size_t headWidth, double theta) {
  Matrix table(positions, headWidth);
  size_t half = headWidth / 2;
  for (size_t p = 0; p < positions; ++p)
    for (size_t j = 0; j < half; ++j) {
      double angle =
          static_cast<double>(p) * std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(headWidth));
      table(p, j) = std::cos(angle);
      table(p, half + j) = std::sin(angle);
    }
  return table;
}

Matrix reference::rope(const Matrix &qkv, const std::vector<uint32_t> &cuSeqlens, const Matrix &table, size_t heads,
                       size_t kvHeads, size_t headWidth) {
  Matrix out = qkv;
  size_t half = headWidth / 2;
  for (size_t s = 0; s + 1 < cuSeqlens.size(); ++s)
    for (uint32_t t = cuSeqlens[s]; t < cuSeqlens[s + 1]; ++t)
      for (size_t h = 0; h < heads + kvHeads; ++h)
        for (size_t j = 0; j < half; ++j) {
          double cosine = table(t - cuSeqlens[s], j), sine = table(t - cuSeqlens[s], half + j);
          double lo = qkv(t, h * headWidth + j), hi = qkv(t, h * headWidth + half + j);
          out(t, h * headWidth + j) = lo * cosine - hi * sine;
          out(t, h * headWidth + half + j) = hi * cosine + lo * sine;
        }
  return out;
}

Matrix reference::gated(const Matrix &x, ActivationKind act, bool second) {
  Matrix out(x.rows, x.cols / 2);
  for (size_t r = 0; r < out.rows; ++r)
    for (size_t c = 0; c < out.cols; ++c) {
      double a = x(r, c), b = x(r, out.cols + c);
      out(r, c) = second ? a * activate(act, b) : activate(act, a) * b;
    }
  return out;
}

Matrix reference::addType(const Matrix &x, const std::vector<uint32_t> &cuSeqlens, const std::vector<uint32_t> &types,
                          const Matrix &table) {
  Matrix out = x;
  for (size_t s = 0; s + 1 < cuSeqlens.size(); ++s)
    for (uint32_t t = cuSeqlens[s]; t < cuSeqlens[s + 1]; ++t)
      for (size_t c = 0; c < x.cols; ++c)
        out(t, c) += table(types[s], c);
  return out;
}

Matrix reference::gatherRows(const Matrix &x, const std::vector<uint32_t> &rows) {
  Matrix out(rows.size(), x.cols);
  for (size_t m = 0; m < rows.size(); ++m)
    for (size_t c = 0; c < x.cols; ++c)
      out(m, c) = x(rows[m], c);
  return out;
}

Matrix reference::decisionFeatures(const Matrix &x, const Matrix &logits, const std::vector<uint32_t> &cuSeqlens,
                                   const std::vector<uint32_t> &cuMarkers) {
  Matrix out(cuSeqlens.size() - 1, x.cols + 4);
  for (size_t s = 0; s < out.rows; ++s) {
    for (size_t c = 0; c < x.cols && cuSeqlens[s] < cuSeqlens[s + 1]; ++c)
      out(s, c) = x(cuSeqlens[s], c);
    size_t first = cuMarkers[s], count = cuMarkers[s + 1] - first;
    double k = static_cast<double>(std::max<size_t>(count, 2));
    out(s, x.cols + 3) = k / 255.0;
    if (count == 0)
      continue;
    Matrix row(1, count);
    for (size_t i = 0; i < count; ++i)
      row(0, i) = logits(first + i, 0);
    std::vector<double> p = softmax(row).values;
    double entropy = 0;
    for (double value : p) // a NaN makes it NaN
      entropy -= value * std::log(value < 1e-9 ? 1e-9 : value);
    std::sort(p.rbegin(), p.rend());
    out(s, x.cols) = p[0];
    out(s, x.cols + 1) = p[0] - (count > 1 ? p[1] : 0.0);
    out(s, x.cols + 2) = entropy / std::log(k);
  }
  return out;
}

Matrix reference::softmax(const Matrix &x) {
  Matrix out(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    double most = -INFINITY, total = 0;
    for (size_t c = 0; c < x.cols; ++c)
      most = std::max(most, x(r, c));
    for (size_t c = 0; c < x.cols; ++c)
      total += std::exp(x(r, c) - most);
    for (size_t c = 0; c < x.cols; ++c)
      out(r, c) = std::exp(x(r, c) - most) / total;
  }
  return out;
}

Matrix reference::pool(const Matrix &x, const std::vector<uint32_t> &cuSeqlens, PoolKind kind) {
  Matrix out(cuSeqlens.size() - 1, x.cols);
  for (size_t s = 0; s < out.rows; ++s) {
    uint32_t begin = cuSeqlens[s], end = cuSeqlens[s + 1];
    if (begin == end)
      continue;
    for (size_t c = 0; c < x.cols; ++c) {
      double sum = 0, most = -INFINITY;
      for (uint32_t t = begin; t < end; ++t) {
        sum += x(t, c);
        most = std::isnan(most) || std::isnan(x(t, c)) ? std::nan("") : std::max(most, x(t, c));
      }
      double length = end - begin;
      out(s, c) = kind == PoolKind::Cls    ? x(begin, c)
                  : kind == PoolKind::Last ? x(end - 1, c)
                  : kind == PoolKind::Mean ? sum / length
                  : kind == PoolKind::Max  ? most
                                           : sum / std::sqrt(length);
    }
  }
  return out;
}

Matrix reference::l2Normalize(const Matrix &x, double eps) {
  Matrix out(x.rows, x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    double squares = 0;
    for (size_t c = 0; c < x.cols; ++c)
      squares += x(r, c) * x(r, c);
    for (size_t c = 0; c < x.cols; ++c)
      out(r, c) = x(r, c) / std::max(std::sqrt(squares), eps);
  }
  return out;
}

Matrix reference::slice(const Matrix &x, size_t begin, size_t width) {
  Matrix out(x.rows, width);
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < width; ++c)
      out(r, c) = x(r, begin + c);
  return out;
}

Matrix reference::concatCols(const std::vector<Matrix> &parts) {
  size_t width = 0;
  for (const Matrix &part : parts)
    width += part.cols;
  Matrix out(parts[0].rows, width);
  for (size_t r = 0; r < out.rows; ++r) {
    size_t begin = 0;
    for (const Matrix &part : parts) {
      for (size_t c = 0; c < part.cols; ++c)
        out(r, begin + c) = part(r, c);
      begin += part.cols;
    }
  }
  return out;
}
