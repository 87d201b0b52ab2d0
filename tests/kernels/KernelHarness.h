// Runs a kernel as hard as it can be run: compiled in this process, mapped R+X, each operand between guard pages, NaN in
// every pad and slack row of the inputs, canaries over the output, under the floating point state of a run. Whatever the
// kernel may not read or write shows as a crash, a NaN or a broken canary.
#ifndef BATTEN_TESTS_KERNELS_KERNELHARNESS_H
#define BATTEN_TESTS_KERNELS_KERNELHARNESS_H

#include "compiler/kernels/Emit.h"
#include "compiler/kernels/KernelKey.h"
#include "tests/Reference.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace batten::test {

/// Targets whose code this machine runs, by name; all of them are compiled in any case. With a math those that it gains by too,
/// or only those where bits depend on the instruction (bf16; a machine without it runs its two steps).
std::vector<std::string> runnableTargets(layout::Elem math = layout::Elem::F32);

/// The targets that a kernel runs on here. Where 512-bit vectors don't run, one more stands in: emitted for 16 lanes with a
/// low tile, and split in halves for 256-bit registers. Linears would spill there, which the check of the code refuses.
std::vector<std::string> targetsOf(const KernelKey &key);

/// Floats between two pages that fault. The block ends, or begins, exactly at one of them.
class GuardedFloats {
public:
  enum class Tight { AtEnd, AtBegin };
  GuardedFloats(size_t count, Tight tight);
  ~GuardedFloats();
  GuardedFloats(const GuardedFloats &) = delete;
  GuardedFloats &operator=(const GuardedFloats &) = delete;

  float *data = nullptr;
  size_t count = 0;

private:
  void *mapping = nullptr;
  size_t mappingBytes = 0;
};

/// An input operand. Rows are laid out with the row stride; the other kinds as in a pack.
struct Input {
  enum class Kind { Rows, Table, Vector, Panels, DotPanels };
  Kind kind;
  size_t rows, cols;
  std::vector<float> values;             ///< dense, row-major
  layout::Elem elem = layout::Elem::F32; ///< that a table or panels are stored in

  static Input ofRows(size_t rows, size_t cols, std::vector<float> values) {
    return {Kind::Rows, rows, cols, std::move(values)};
  }
  static Input table(size_t rows, size_t cols, std::vector<float> values, layout::Elem elem = layout::Elem::F32) {
    return {Kind::Table, rows, cols, std::move(values), elem};
  }
  static Input vector(std::vector<float> values) { return {Kind::Vector, 1, values.size(), std::move(values)}; }
  static Input panels(size_t n, size_t k, std::vector<float> values, layout::Elem elem = layout::Elem::F32) {
    return {Kind::Panels, n, k, std::move(values), elem};
  }
  static Input dotPanels(size_t n, size_t k, std::vector<float> values, layout::Elem elem) {
    return {Kind::DotPanels, n, k, std::move(values), elem};
  }

  reference::Matrix matrix() const;
  std::vector<double> doubles() const { return {values.begin(), values.end()}; }
};

/// The inputs with `count` of their rows from `first` on.
std::vector<Input> someRows(std::vector<Input> inputs, size_t first, size_t count);

/// A batch: lengths of the packed sequences, and what tokens hold.
struct BatchSpec {
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> ids;                       ///< empty: not read
  std::vector<uint32_t> types;                     ///< empty: NULL
  std::vector<uint32_t> seqTypes = {};             ///< empty: NULL
  std::vector<std::vector<uint32_t>> markers = {}; ///< of each sequence, positions inside it; empty: none at all

  std::vector<uint32_t> cuSeqlens() const;
  std::vector<uint32_t> cuMarkers() const;
  std::vector<uint32_t> markerRows() const; ///< token rows
  uint32_t tokens() const;
};

/// A part of a step's units, done by a worker.
struct Part {
  uint32_t first, last, worker;
};

/// How to run a kernel.
struct RunOptions {
  std::vector<Part> parts; ///< in this order; empty: all units at once
  bool inPlace = false;    ///< the last input is the output's memory
  GuardedFloats::Tight tight = GuardedFloats::Tight::AtEnd;
  bool withNext = false; ///< give a prefetch hint
};

/// Units of a step's domain for that many rows.
uint32_t unitCount(const KernelKey &key, const BatchSpec &batch, uint32_t rows);

/// Runs the kernel and gives its output, dense [outRows, outCols]. Fails the test where it wrote what it may not.
std::vector<float> runKernel(const std::string &target, const KernelKey &key, const std::vector<Input> &inputs,
                             const BatchSpec &batch, uint32_t outRows, uint32_t outCols,
                             const RunOptions &options = {});

/// Runs the kernel on each target, at both ends of its pages, whole, in single units backwards and in a few random
/// splits over three workers, in place where it may; fails where any two outputs differ by a bit. Gives the output.
std::vector<float> runEveryWay(const KernelKey &key, const std::vector<Input> &inputs, const BatchSpec &batch,
                               uint32_t outRows, uint32_t outCols);

/// Fails where the bits differ; any NaN equals any other.
void expectSameBits(const std::vector<float> &got, const std::vector<float> &wanted, size_t cols,
                    const std::string &what);

/// Fails where |got - wanted| > ulps * 2^-24 * magnitude + absolute, element by element.
void expectClose(const std::vector<float> &got, const reference::Matrix &wanted, const reference::Matrix &magnitude,
                 double ulps, const std::string &what, double absolute = 0);

/// Normal numbers times scale, from a fixed seed.
std::vector<float> randomFloats(size_t count, uint32_t seed, float scale = 1.0f);

/// One sequence that holds all rows: for kernels that don't look at sequences.
BatchSpec plainBatch(uint32_t rows);

} // namespace batten::test

#endif // BATTEN_TESTS_KERNELS_KERNELHARNESS_H
