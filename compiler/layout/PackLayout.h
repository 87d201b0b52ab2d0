// Where each entry of a pack lies in its file: sizes, offsets, head and data. Pure arithmetic on names and shapes; it
// neither reads tensors nor writes bytes (WeightPacker, PackWriter). The order of entries is the caller's, which is the
// order in which plans first use them, so that a run reads a pack front to back.
#ifndef BATTEN_COMPILER_LAYOUT_PACKLAYOUT_H
#define BATTEN_COMPILER_LAYOUT_PACKLAYOUT_H

#include "compiler/layout/WeightExpr.h"

#include <optional>
#include <string>
#include <vector>

namespace batten::layout {

/// Alignment in a pack file of its DATA section.
inline constexpr int64_t kPackDataAlignment = 4096;
/// Sizes of the records in a pack's head; PackWriter asserts that format.h agrees.
inline constexpr int64_t kFileHeaderBytes = 128, kSectionBytes = 32, kPackRecordBytes = 24, kTensorRecordBytes = 40;

/// Bytes of one of an entry's dot panels, cols its inner width; nothing for element types that have none, or an overflow.
///
/// Source: batten_weight_layout in format.h.
std::optional<int64_t> dotPanelBytes(Elem elem, int64_t cols);

/// Bytes of an entry in the pack, a multiple of 64; nothing where they don't fit 63 bits or a dimension is not positive.
///
/// Source: batten_weight_layout in format.h.
std::optional<int64_t> entryBytes(Layout layout, Elem elem, int64_t rows, int64_t cols);

/// A pack file's layout. All offsets count from the start of the file; offset[i] and bytes[i] are of entry i.
struct PackLayout {
  int64_t stringsOffset = 0, stringsBytes = 0;
  int64_t packOffset = 0;
  int64_t tensorsOffset = 0;
  int64_t dataOffset = 0; ///< also the bytes of the head that the pack's own digest covers
  int64_t dataBytes = 0;
  int64_t fileBytes = 0;
  std::vector<int64_t> offset;
  std::vector<int64_t> bytes;
};

/// Lays out a pack with the given entries, in their order.
///
/// Errors: false with text for a repeated or empty name, a shape that is not positive or beyond 32 bits, a size that
///         overflows, a vector of more than one row.
[[nodiscard]] bool layoutPack(const std::vector<PackEntry> &entries, PackLayout &out, std::string &error);

/// Splits entries into those of packs/common.pack (tables and vectors) and those of the panels pack, order kept.
void splitByPack(const std::vector<PackEntry> &entries, std::vector<PackEntry> &common, std::vector<PackEntry> &panels);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_PACKLAYOUT_H
