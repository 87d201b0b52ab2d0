// Sizes and offsets of pack entries. All products of file-given numbers are checked.
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/RowStride.h"

#include <limits>
#include <unordered_set>

namespace batten::layout {

std::optional<int64_t> dotPanelBytes(Elem elem, int64_t cols) {
  if (elem != Elem::BF16 && elem != Elem::I8)
    return std::nullopt;
  int64_t dots = elem == Elem::BF16 ? ceilDiv(cols, 2) : i8Dots(cols) + 2 * i8Groups(cols);
  return checkedMul(dots, kPanelCols * kDotBytes);
}

std::optional<int64_t> entryBytes(Layout layout, Elem elem, int64_t rows, int64_t cols) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - kPackDataAlignment;
  if (rows <= 0 || cols <= 0 || rows > kMost || cols > kMost)
    return std::nullopt;
  std::optional<int64_t> count;
  switch (layout) {
  case Layout::Table: { // the last row is readable up to a multiple of 16 columns
    std::optional<int64_t> body = checkedMul(rows - 1, cols);
    count = body ? checkedAdd(*body, roundUp(cols, kLanes)) : std::nullopt;
    break;
  }
  case Layout::Vector:
    count = rows == 1 ? std::optional<int64_t>(roundUp(cols, kLanes)) : std::nullopt;
    break;
  case Layout::Panels:
    count = checkedMul(roundUp(rows, kPanelCols), cols);
    break;
  case Layout::DotPanels: {
    std::optional<int64_t> bytes = dotPanelBytes(elem, cols);
    std::optional<int64_t> all = bytes ? checkedMul(panelCount(rows), *bytes) : std::nullopt;
    return all && *all <= kMost ? all : std::nullopt; // panels are a multiple of 64 long
  }
  }
  std::optional<int64_t> bytes = count ? checkedMul(*count, elemBytes(elem)) : std::nullopt;
  if (!bytes || *bytes > kMost)
    return std::nullopt;
  return roundUp(*bytes, kAlignment);
}

static bool checkEntry(const PackEntry &entry, std::unordered_set<std::string> &names, std::string &error) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (entry.name.empty()) {
    error = "a pack entry has no name";
    return false;
  }
  if (!names.insert(entry.name).second) {
    error = "pack entry '" + entry.name + "' is there twice";
    return false;
  }
  std::string shape = "[" + std::to_string(entry.rows) + ", " + std::to_string(entry.cols) + "]";
  if (entry.rows <= 0 || entry.cols <= 0 || entry.rows > kMost || entry.cols > kMost) {
    error = "pack entry '" + entry.name + "': shape " + shape + ", wanted dimensions within [1, 4294967295]";
    return false;
  }
  if (entry.layout == Layout::Vector && entry.rows != 1) {
    error = "pack entry '" + entry.name + "': shape " + shape + ", a vector has one row";
    return false;
  }
  return true;
}

bool layoutPack(const std::vector<PackEntry> &entries, PackLayout &out, std::string &error) {
  out = PackLayout();
  std::unordered_set<std::string> names;
  for (const PackEntry &entry : entries) {
    if (!checkEntry(entry, names, error))
      return false;
    out.stringsBytes += static_cast<int64_t>(entry.name.size());
  }
  constexpr int64_t kSections = 4; // STRINGS PACK TENSORS DATA
  out.stringsOffset = roundUp(kFileHeaderBytes + kSections * kSectionBytes, kAlignment);
  out.packOffset = roundUp(out.stringsOffset + out.stringsBytes, kAlignment);
  out.tensorsOffset = roundUp(out.packOffset + kPackRecordBytes, kAlignment);
  int64_t headEnd = out.tensorsOffset + kTensorRecordBytes * static_cast<int64_t>(entries.size());
  out.dataOffset = roundUp(headEnd, kPackDataAlignment);
  int64_t at = out.dataOffset;
  for (const PackEntry &entry : entries) {
    std::optional<int64_t> bytes = entryBytes(entry.layout, entry.elem, entry.rows, entry.cols);
    std::optional<int64_t> end = bytes ? checkedAdd(at, *bytes) : std::nullopt;
    if (!end) {
      error = "pack entry '" + entry.name + "': [" + std::to_string(entry.rows) + ", " + std::to_string(entry.cols) +
              "] is more bytes than a file can have";
      return false;
    }
    out.offset.push_back(at);
    out.bytes.push_back(*bytes);
    at = *end;
  }
  out.dataBytes = at - out.dataOffset;
  out.fileBytes = at;
  return true;
}

void splitByPack(const std::vector<PackEntry> &entries, std::vector<PackEntry> &common,
                 std::vector<PackEntry> &panels) {
  for (const PackEntry &entry : entries)
    (isPanels(entry.layout) ? panels : common).push_back(entry);
}

} // namespace batten::layout
