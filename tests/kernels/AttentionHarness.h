// What the tests of attention share: keys, batches, random rows, and the comparison with the reference.
#ifndef BATTEN_TESTS_KERNELS_ATTENTIONHARNESS_H
#define BATTEN_TESTS_KERNELS_ATTENTIONHARNESS_H

#include "tests/kernels/KernelHarness.h"

#include <cmath>
#include <optional>

namespace batten::test {

/// A key with the usual scale, 1 / sqrt(width).
inline KernelKey attentionKey(int64_t heads, int64_t width, int64_t kvHeads = 0,
                              std::optional<int64_t> window = std::nullopt) {
  return KernelKey::attention(heads, width, 1.0f / std::sqrt(static_cast<float>(width)), kvHeads, window);
}

inline BatchSpec batchOf(std::vector<uint32_t> lengths) { return {std::move(lengths), {}, {}}; }

/// Rows [q | k | v] of normal numbers times scale.
inline Input qkvOf(const KernelKey &key, uint32_t tokens, uint32_t seed, float scale = 1.0f) {
  uint32_t width = static_cast<uint32_t>(key.qkvWidth());
  return Input::ofRows(tokens, width, randomFloats(tokens * width, seed, scale));
}

/// Runs the kernel every way and compares with the reference.
///
/// Tolerance: an output is a mean of values weighted by p. p errs by what the score errs, which is a chain over the head
/// width of products of about one: a few units of 2^-24 times its root, times the score's own size.
inline void checkAttention(const KernelKey &key, const BatchSpec &batch, uint32_t seed) {
  uint32_t tokens = batch.tokens(), inner = static_cast<uint32_t>(key.heads * key.headWidth);
  Input qkv = qkvOf(key, tokens, seed);
  std::vector<float> got = runEveryWay(key, {qkv}, batch, tokens, inner);
  reference::Matrix wanted = reference::attention(qkv.matrix(), batch.cuSeqlens(), key.heads, key.headWidth, key.scale,
                                                  key.kvHeads, key.window);
  reference::Matrix magnitude(tokens, inner);
  for (double &value : magnitude.values)
    value = 1.0;
  expectClose(got, wanted, magnitude, 48, kernelSymbol(key));
}

} // namespace batten::test

#endif // BATTEN_TESTS_KERNELS_ATTENTIONHARNESS_H
