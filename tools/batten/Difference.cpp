// See the header. Everything in double.
#include "tools/batten/Difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace batten::tools {

namespace {

/// Same value: equal, or both NaN.
bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// The column of the largest value, the first among equals.
size_t best(const float *row, size_t width) { return size_t(std::max_element(row, row + width) - row); }

/// The largest value less the next.
double lead(const float *row, size_t width, size_t best) {
  double next = -std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < width; ++c)
    if (c != best)
      next = std::max(next, double(row[c]));
  return double(row[best]) - next;
}

} // namespace

void Difference::add(const float *a, const float *b, size_t rowCount, size_t width, double margin) {
  rows += rowCount;
  for (size_t r = 0; r < rowCount; ++r, a += width, b += width) {
    double ab = 0, aa = 0, bb = 0;
    uint64_t differ = 0, odd = 0;
    for (size_t c = 0; c < width; ++c) {
      differ += std::bit_cast<uint32_t>(a[c]) != std::bit_cast<uint32_t>(b[c]);
      if (!std::isfinite(a[c]) || !std::isfinite(b[c])) {
        odd += !same(a[c], b[c]);
        continue;
      }
      double x = a[c], y = b[c], apart = std::abs(x - y);
      ++elements;
      maxAbs = std::max(maxAbs, apart);
      sumAbs += apart;
      largest = std::max(largest, std::abs(x));
      ab += x * y, aa += x * x, bb += y * y;
    }
    bitsDiffer += differ;
    notFinite += odd;
    if (differ != 0) {
      double norms = std::sqrt(aa) * std::sqrt(bb);
      double cosine = odd ? 0 : norms > 0 ? std::min(ab / norms, 1.0) : aa == bb ? 1 : 0;
      leastCosine = std::min(leastCosine, cosine);
    }
    if (width < 2)
      continue;
    size_t chosen = best(a, width);
    if (lead(a, width, chosen) < margin)
      continue;
    ++decidedRows;
    agreed += odd == 0 && best(b, width) == chosen;
  }
}

double Difference::maxRelative() const {
  return maxAbs == 0 ? 0 : largest > 0 ? maxAbs / largest : std::numeric_limits<double>::infinity();
}

} // namespace batten::tools
