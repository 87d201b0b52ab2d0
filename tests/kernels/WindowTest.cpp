// attention with a window against its reference, and its bits: a row's depend on its sequence and its own window only.
#include "tests/kernels/AttentionHarness.h"

#include <cmath>

using namespace batten;
using namespace batten::test;

namespace {

KernelKey windowOf(int64_t window, int64_t heads, int64_t width, int64_t kvHeads = 0) {
  return attentionKey(heads, width, kvHeads, window);
}

std::vector<float> rowsOf(const std::vector<float> &values, size_t cols, size_t begin, size_t count) {
  return {values.begin() + begin * cols, values.begin() + (begin + count) * cols};
}

} // namespace

TEST(WindowTest, MatchesReferenceAroundTheWindow) {
  for (int64_t w : {0, 1, 3, 7, 64, 128})
    for (int64_t length : {w - 1, w, w + 1, 2 * w, 2 * w + 1, 2 * w + 2})
      if (length > 0)
        checkAttention(windowOf(w, 2, 16), batchOf({static_cast<uint32_t>(length)}),
                       static_cast<uint32_t>(8 * w + length));
}

// Tasks are of 64 rows and key blocks of 512: windows begin, end and straddle there.
TEST(WindowTest, MatchesReferenceAroundTasksAndKeyBlocks) {
  for (int64_t w : {0, 3, 64})
    for (uint32_t length : {63u, 64u, 65u, 129u, 257u, 511u, 512u, 513u, 577u, 1023u, 1024u, 1025u})
      checkAttention(windowOf(w, 1, 16), batchOf({length}), length);
  for (uint32_t length : {599u, 600u, 1023u, 1025u, 1300u})
    checkAttention(windowOf(600, 1, 16), batchOf({length}), length);
}

TEST(WindowTest, MatchesReferenceAtEveryHeadWidth) {
  for (int64_t width : {8, 24, 26, 48, 64, 80, 100, 128})
    checkAttention(windowOf(7, 2, width), batchOf({37, 0, 530, 1}), static_cast<uint32_t>(width));
}

TEST(WindowTest, MatchesReferenceWithFewerHeadsOfKeysAndValues) {
  for (int64_t kvHeads : {1, 2, 3})
    checkAttention(windowOf(5, 6, 24, kvHeads), batchOf({0, 0, 9, 1, 0, 130, 64, 2, 0}),
                   static_cast<uint32_t>(kvHeads));
}

// One local layer over 200 tokens, 64 keys to either side: row 0 sees tokens 0 to 64, row 100 sees 36 to 164.
TEST(WindowTest, TokenOutsideOfTheWindowChangesNothing) {
  constexpr uint32_t kTokens = 200, kInner = 32;
  KernelKey key = windowOf(64, 2, 16);
  BatchSpec batch = batchOf({kTokens});
  Input qkv = qkvOf(key, kTokens, 3);
  for (const std::string &target : targetsOf(key)) {
    std::vector<float> before = runKernel(target, key, {qkv}, batch, kTokens, kInner);
    for (uint32_t token : {0u, 35u, 36u, 64u, 65u, 164u, 165u, 199u})
      for (float change : {0.5f, INFINITY, NAN}) {
        Input changed = qkv;
        for (uint32_t column = 0; column < kInner; ++column) // its keys and values, not its query
          for (uint32_t part : {1u, 2u})
            changed.values[token * qkv.cols + part * kInner + column] += change;
        std::vector<float> after = runKernel(target, key, {changed}, batch, kTokens, kInner);
        for (uint32_t row = 0; row < kTokens; ++row) {
          bool sees = std::max(row, token) - std::min(row, token) <= 64;
          EXPECT_EQ(rowsOf(after, kInner, row, 1) != rowsOf(before, kInner, row, 1), sees)
              << target << ", row " << row << ", token " << token << " changed by " << change;
        }
      }
  }
}

TEST(WindowTest, WindowOfZeroGivesTheRowsOwnValues) {
  KernelKey key = windowOf(0, 4, 24, 2);
  BatchSpec batch = batchOf({3, 0, 515});
  Input qkv = qkvOf(key, batch.tokens(), 3);
  std::vector<float> got = runEveryWay(key, {qkv}, batch, batch.tokens(), 96);
  for (uint32_t row = 0; row < batch.tokens(); ++row)
    for (uint32_t column = 0; column < 96; ++column) // two query heads read each head of values
      ASSERT_EQ(got[row * 96 + column], qkv.values[row * qkv.cols + 96 + 48 + column / 48 * 24 + column % 24]);
}

// The same operations in the same order, masks or not.
TEST(WindowTest, WindowAsLongAsTheSequenceHasTheBitsOfNone) {
  KernelKey limited = windowOf(1299, 2, 26), unlimited = attentionKey(2, 26);
  for (uint32_t length : {1u, 70u, 513u, 1300u}) {
    Input qkv = qkvOf(limited, length, length);
    for (const std::string &target : targetsOf(limited))
      expectSameBits(runKernel(target, limited, {qkv}, batchOf({length}), length, 52),
                     runKernel(target, unlimited, {qkv}, batchOf({length}), length, 52), 52, target);
  }
}

// A row's window alone, as a sequence whose key blocks begin at the same place, gives the row's bits: what else is in its
// tile, its task and its block has no part in them.
TEST(WindowTest, RowHasTheBitsOfItsWindowAlone) {
  constexpr int64_t kWindow = 40;
  constexpr uint32_t kLength = 700, kInner = 26;
  KernelKey limited = windowOf(kWindow, 1, kInner), unlimited = attentionKey(1, kInner);
  Input qkv = qkvOf(limited, kLength, 8);
  for (const std::string &target : targetsOf(limited)) {
    std::vector<float> all = runKernel(target, limited, {qkv}, batchOf({kLength}), kLength, kInner);
    for (uint32_t row :
         {40u, 56u, 88u, 200u, 456u, 568u, 600u, 648u}) { // windows that start at a multiple of 16 in a block
      uint32_t begin = (row - kWindow) / 16 * 16, skipped = row - kWindow - begin, count = skipped + 2 * kWindow + 1;
      Input part = Input::ofRows(count, qkv.cols, rowsOf(qkv.values, qkv.cols, begin, count));
      std::vector<float> alone =
          runKernel(target, skipped ? limited : unlimited, {part}, batchOf({count}), count, kInner);
      expectSameBits(rowsOf(all, kInner, row, 1), rowsOf(alone, kInner, row - begin, 1), kInner,
                     target + ", row " + std::to_string(row));
    }
  }
}

TEST(WindowTest, SequenceAloneHasTheBitsItHasInABatch) {
  KernelKey key = windowOf(33, 4, 26, 2);
  BatchSpec batch = batchOf({5, 0, 70, 1, 600, 33, 0});
  uint32_t tokens = batch.tokens(), inner = 104;
  Input qkv = qkvOf(key, tokens, 3);
  for (const std::string &target : targetsOf(key)) {
    std::vector<float> all = runKernel(target, key, {qkv}, batch, tokens, inner);
    std::vector<uint32_t> offsets = batch.cuSeqlens();
    for (size_t s = 0; s < batch.lengths.size(); ++s)
      if (uint32_t length = batch.lengths[s]) {
        Input own = Input::ofRows(length, qkv.cols, rowsOf(qkv.values, qkv.cols, offsets[s], length));
        expectSameBits(runKernel(target, key, {own}, batchOf({length}), length, inner),
                       rowsOf(all, inner, offsets[s], length), inner, target + ", sequence " + std::to_string(s));
      }
  }
}

// Scratch is as long as the window, not as the sequence: one long sequence among many short ones.
TEST(WindowTest, LongSequenceAmongManyOfOneToken) {
  KernelKey key = windowOf(64, 2, 32);
  std::vector<uint32_t> lengths(501, 1);
  lengths[250] = 8192;
  EXPECT_EQ(kernelScratchBytes(key, 8192), kernelScratchBytes(key, 500));
  checkAttention(key, batchOf(lengths), 9);
}

// All weight on one key, which for most rows is in another block than the one they began with.
TEST(WindowTest, LargeScoresPickOneKeyAcrossBlocks) {
  KernelKey key = KernelKey::attention(1, 16, 1.0f, 0, 90);
  BatchSpec batch = batchOf({600});
  Input qkv = qkvOf(key, 600, 3, 40.0f);
  std::vector<float> got = runEveryWay(key, {qkv}, batch, 600, 16);
  reference::Matrix wanted = reference::attention(qkv.matrix(), batch.cuSeqlens(), 1, 16, 1.0, 0, 90);
  reference::Matrix magnitude(600, 16);
  for (double &value : magnitude.values)
    value = 40.0 * 25600; // scores of that size, held to 2^-24 of it
  expectClose(got, wanted, magnitude, 4, "large scores");
}
