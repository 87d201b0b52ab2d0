// See Pack.h.
#include "Pack.h"

#include "Names.h"
#include "Sha256.h"

namespace batten::rt {

using ull = unsigned long long;

u64 tensorBytes(u32 layout, u32 elem, u32 rows, u32 cols) noexcept {
  u64 size = elemBytes(elem), elems = 0;
  if (size == 0 || rows == 0 || cols == 0)
    return 0;
  const u64 padded = roundUp(u64{cols}, BATTEN_LANES);
  bool fits = true;
  switch (layout) {
  case BATTEN_LAYOUT_TABLE:
    fits = checkedMul(u64{rows} - 1, cols, &elems) && checkedAdd(elems, padded, &elems);
    break;
  case BATTEN_LAYOUT_VECTOR:
    elems = rows == 1 ? padded : 0;
    break;
  case BATTEN_LAYOUT_PANELS:
    fits = checkedMul(ceilDiv(rows, BATTEN_PANEL_COLS) * BATTEN_PANEL_COLS, cols, &elems);
    break;
  case BATTEN_LAYOUT_DOT_PANELS: {
    // Words of a column: dots; behind those of i8, a scale and a sum for each group of 96.
    const u64 dots = ceilDiv(cols, elem == BATTEN_ELEM_BF16 ? 2 : 4);
    const u64 words = elem == BATTEN_ELEM_BF16 ? dots : elem == BATTEN_ELEM_I8 ? dots + 2 * ceilDiv(dots, 96) : 0;
    fits = checkedMul(ceilDiv(rows, BATTEN_PANEL_COLS) * BATTEN_PANEL_COLS, words, &elems);
    size = 4;
    break;
  }
  default:
    break;
  }
  if (!fits || !checkedMul(elems, size, &elems) || elems > u64{INT64_MAX})
    return 0;
  return roundUp(elems, BATTEN_ALIGNMENT);
}

Status Pack::open(const u8 *data, u32 pack, const batten_file_t &file, bool accelerated,
                  const Report &report) noexcept {
  u8 digest[Sha256::kDigestBytes];
  sha256(data, file.headBytes, accelerated, digest);
  if (std::memcmp(digest, file.headDigest, sizeof digest) != 0)
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0,
                       "its head differs from the digest in the manifest: damaged or mixed up");
  BATTEN_TRY(view.open(data, file.bytes, BATTEN_FILE_PACK, report));
  if (view.section(BATTEN_SECTION_PACK).count != 1)
    return report.fail(BATTEN_CORRUPT, "PACK", 0, view.section(BATTEN_SECTION_PACK).count, 1,
                       "one record was expected");
  const batten_pack_t record = view.records<batten_pack_t>(BATTEN_SECTION_PACK).at(0);
  const batten_section_t section = view.section(BATTEN_SECTION_DATA);
  if (record.pack != pack || record.alignment != BATTEN_ALIGNMENT)
    return report.fail(BATTEN_CORRUPT, "PACK", 0, record.pack, pack, "pack %u of alignment %u, %u of %u was expected",
                       record.pack, record.alignment, pack, BATTEN_ALIGNMENT);
  if (section.offset != record.dataOffset || section.count != record.dataBytes || record.dataOffset != file.headBytes ||
      record.dataOffset % 4096 != 0 || section.offset + section.count != file.bytes)
    return report.fail(BATTEN_CORRUPT, "PACK", 0, record.dataOffset, file.headBytes,
                       "data of %llu bytes at %llu; section table, manifest and size of the file disagree",
                       ull{record.dataBytes}, ull{record.dataOffset});
  tensors = view.records<batten_tensor_t>(BATTEN_SECTION_TENSORS);
  BATTEN_TRY(
      verifyNames(view, BATTEN_SECTION_TENSORS, tensors.count, [&](u32 i) { return tensors.at(i).name; }, report));
  u64 end = record.dataOffset;
  for (u32 i = 0; i < tensors.count; ++i) {
    batten_tensor_t tensor = tensors.at(i);
    u64 bytes = tensorBytes(tensor.layout, tensor.elem, tensor.rows, tensor.cols);
    if (bytes == 0 || tensor.bytes != bytes)
      return report.fail(BATTEN_CORRUPT, "TENSORS", i, tensor.bytes, bytes,
                         "%llu bytes for layout %u, element type %u, [%u, %u]; %llu were expected", ull{tensor.bytes},
                         tensor.layout, tensor.elem, tensor.rows, tensor.cols, ull{bytes});
    if (tensor.offset % BATTEN_ALIGNMENT != 0 || tensor.offset < end || !inRange(tensor.offset, bytes, file.bytes))
      return report.fail(BATTEN_CORRUPT, "TENSORS", i, tensor.offset, file.bytes,
                         "%llu bytes at %llu: not aligned, before the end of what precedes it (%llu), or past the file",
                         ull{bytes}, ull{tensor.offset}, ull{end});
    end = tensor.offset + bytes;
  }
  return BATTEN_OK;
}

u64 Pack::find(u64 offset) const noexcept {
  u64 low = 0, high = tensors.count;
  while (low < high) {
    u64 middle = low + (high - low) / 2;
    if (tensors.at(middle).offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low < tensors.count && tensors.at(low).offset == offset ? low : tensors.count;
}

} // namespace batten::rt
