// Layout rules and pack offsets: the numbers of DESIGN.md and format.h, and refusal of sizes that don't fit.
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/RowStride.h"

#include <gtest/gtest.h>

#include <limits>

using namespace batten::layout;

static PackEntry entry(std::string name, Layout layout, int64_t rows, int64_t cols) {
  PackEntry e;
  e.name = std::move(name);
  e.layout = layout;
  e.rows = rows;
  e.cols = cols;
  return e;
}

TEST(RowStrideTest, RoundsToLanesAndCacheLines) {
  EXPECT_EQ(rowStrideBytes(1, 4), 64);
  EXPECT_EQ(rowStrideBytes(16, 4), 64);
  EXPECT_EQ(rowStrideBytes(17, 4), 128);
  EXPECT_EQ(rowStrideBytes(36, 4), 192);
  EXPECT_EQ(rowStrideBytes(17, 2), 64);
  EXPECT_EQ(rowStrideBytes(33, 2), 128); // 48 elements are 96 bytes
}

TEST(RowStrideTest, NeverAMultipleOf4096) {
  for (int64_t width = 1; width < 9000; ++width)
    for (int64_t bytes : {1, 2, 4}) {
      int64_t stride = rowStrideBytes(width, bytes);
      ASSERT_NE(stride % 4096, 0) << width;
      ASSERT_EQ(stride % 64, 0) << width;
      ASSERT_GE(stride, roundUp(width, 16) * bytes) << width;
      ASSERT_LE(stride, roundUp(width, 16) * bytes + 127) << width;
    }
}

TEST(RowStrideTest, SlabRowsFitTheCache) {
  EXPECT_EQ(slabRows(384), 336);
  EXPECT_EQ(slabRows(768), 168);
  EXPECT_EQ(slabRows(1), 672);
  EXPECT_EQ(slabRows(1536), 84);
  EXPECT_EQ(slabRows(100000), 84);
  for (int64_t k = 1; k < 5000; ++k)
    ASSERT_TRUE(slabRows(k) % 84 == 0 && slabRows(k) >= 84 && slabRows(k) <= 672) << k;
}

TEST(PackLayoutTest, EntryBytesFollowTheFormat) {
  EXPECT_EQ(entryBytes(Layout::Table, Elem::F32, 3, 5), 128); // (2*5 + 16) * 4 = 104
  EXPECT_EQ(entryBytes(Layout::Table, Elem::F32, 4, 16), 256);
  EXPECT_EQ(entryBytes(Layout::Vector, Elem::F32, 1, 17), 128);
  EXPECT_EQ(entryBytes(Layout::Panels, Elem::F32, 2, 50), 32 * 50 * 4);
  EXPECT_EQ(entryBytes(Layout::Panels, Elem::F32, 33, 7), 64 * 7 * 4);
  EXPECT_EQ(entryBytes(Layout::Panels, Elem::BF16, 32, 3), 192);
  EXPECT_EQ(entryBytes(Layout::DotPanels, Elem::BF16, 33, 3), 2 * 2 * 128);
  EXPECT_EQ(entryBytes(Layout::DotPanels, Elem::I8, 33, 5), 2 * (2 + 2) * 128); // two dots, a scale and a sum a column
  EXPECT_EQ(entryBytes(Layout::DotPanels, Elem::I8, 32, 4 * 96 + 1), (97 + 4) * 128);
  EXPECT_FALSE(entryBytes(Layout::DotPanels, Elem::F32, 33, 5));
  EXPECT_FALSE(entryBytes(Layout::DotPanels, Elem::F16, 33, 5));
  EXPECT_FALSE(entryBytes(Layout::DotPanels, Elem::I8, int64_t(1) << 31, int64_t(1) << 40));
}

TEST(PackLayoutTest, SE01_RefusesSizesThatOverflow) {
  constexpr int64_t kHuge = int64_t(1) << 62;
  for (Layout layout : {Layout::Table, Layout::Panels}) {
    EXPECT_FALSE(entryBytes(layout, Elem::F32, kHuge, 4));
    EXPECT_FALSE(entryBytes(layout, Elem::F32, int64_t(1) << 32, int64_t(1) << 32));
    EXPECT_FALSE(entryBytes(layout, Elem::F32, std::numeric_limits<int64_t>::max(), 1));
    EXPECT_FALSE(entryBytes(layout, Elem::F32, 1, std::numeric_limits<int64_t>::max()));
    EXPECT_FALSE(entryBytes(layout, Elem::F32, 0, 4));
    EXPECT_FALSE(entryBytes(layout, Elem::F32, 4, -1));
  }
  EXPECT_FALSE(entryBytes(Layout::Vector, Elem::F32, 2, 4));
}

TEST(PackLayoutTest, R4_EveryEntryIsAlignedAndInOrder) {
  std::vector<PackEntry> entries;
  for (int i = 1; i <= 70; ++i)
    entries.push_back(entry("w" + std::to_string(i), i % 2 ? Layout::Table : Layout::Panels, i, 3 * i));
  PackLayout layout;
  std::string error;
  ASSERT_TRUE(layoutPack(entries, layout, error)) << error;
  EXPECT_EQ(layout.stringsOffset, 256);
  EXPECT_EQ(layout.dataOffset % 4096, 0);
  EXPECT_GE(layout.dataOffset, layout.tensorsOffset + 70 * 40);
  int64_t at = layout.dataOffset;
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(layout.offset[i], at);
    EXPECT_EQ(layout.offset[i] % 64, 0);
    at += layout.bytes[i];
  }
  EXPECT_EQ(layout.fileBytes, at);
  EXPECT_EQ(layout.dataBytes, at - layout.dataOffset);
}

TEST(PackLayoutTest, AnEmptyPackIsAHead) {
  PackLayout layout;
  std::string error;
  ASSERT_TRUE(layoutPack({}, layout, error));
  EXPECT_EQ(layout.dataBytes, 0);
  EXPECT_EQ(layout.fileBytes, layout.dataOffset);
}

TEST(PackLayoutTest, RefusesBadEntriesByName) {
  PackLayout layout;
  std::string error;
  EXPECT_FALSE(layoutPack({entry("a", Layout::Table, 1, 1), entry("a", Layout::Table, 1, 1)}, layout, error));
  EXPECT_EQ(error, "pack entry 'a' is there twice");
  EXPECT_FALSE(layoutPack({entry("", Layout::Table, 1, 1)}, layout, error));
  EXPECT_FALSE(layoutPack({entry("b", Layout::Vector, 2, 8)}, layout, error));
  EXPECT_EQ(error, "pack entry 'b': shape [2, 8], a vector has one row");
  EXPECT_FALSE(layoutPack({entry("c", Layout::Table, 0, 8)}, layout, error));
  EXPECT_FALSE(layoutPack({entry("d", Layout::Table, 4294967295, 4294967295)}, layout, error));
  EXPECT_NE(error.find("'d'"), std::string::npos);
}

TEST(PackLayoutTest, SplitsByPackInOrder) {
  std::vector<PackEntry> common, panels;
  splitByPack({entry("t", Layout::Table, 1, 1), entry("p", Layout::Panels, 1, 1), entry("v", Layout::Vector, 1, 1)},
              common, panels);
  ASSERT_EQ(common.size(), 2u);
  EXPECT_EQ(common[1].name, "v");
  ASSERT_EQ(panels.size(), 1u);
}
