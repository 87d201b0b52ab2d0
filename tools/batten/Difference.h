// How far values of one bundle are from another's. Pure: knows nothing of bundles.
#ifndef BATTEN_TOOLS_BATTEN_DIFFERENCE_H
#define BATTEN_TOOLS_BATTEN_DIFFERENCE_H

#include <cstddef>
#include <cstdint>

namespace batten::tools {

/// Sums up rows of a (what is compared with) and b. Differences are over the elements that are finite in both; where only
/// one is, or both are in different ways, the element counts as notFinite.
struct Difference {
  uint64_t rows = 0, elements = 0, notFinite = 0, bitsDiffer = 0;
  double maxAbs = 0, sumAbs = 0;
  double largest = 0;     ///< |a| at most
  double leastCosine = 1; ///< of a row; 0 for a row with notFinite elements or one that only b or a has 0
  uint64_t decidedRows = 0,
           agreed = 0; ///< rows whose two best columns of a are margin apart; those with b's best equal

  /// Shapes: a, b [rows, width], dense.
  /// Units:  margin is in the values' own unit.
  void add(const float *a, const float *b, size_t rowCount, size_t width, double margin);

  double meanAbs() const { return elements ? sumAbs / double(elements) : 0; }
  /// maxAbs over the largest |a|; infinite where a is 0 everywhere and b isn't.
  double maxRelative() const;
  /// Share of the decided rows; 1 where there is none.
  double argmaxAgreement() const { return decidedRows ? double(agreed) / double(decidedRows) : 1; }
};

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_DIFFERENCE_H
