// See the header. The head is small and made in memory; data is never in memory as a whole.
#include "compiler/artifact/PackWriter.h"
#include "compiler/artifact/SectionFile.h"
#include "compiler/layout/RowStride.h"
#include "compiler/spec/Text.h"

#include "batten/kernel.h"

namespace batten {

static_assert(layout::kAlignment == BATTEN_ALIGNMENT && layout::kLanes == BATTEN_LANES &&
              layout::kPanelCols == BATTEN_PANEL_COLS);
static_assert(layout::kFileHeaderBytes == sizeof(batten_file_header_t) &&
              layout::kSectionBytes == sizeof(batten_section_t) && layout::kPackRecordBytes == sizeof(batten_pack_t) &&
              layout::kTensorRecordBytes == sizeof(batten_tensor_t));
static_assert(static_cast<uint32_t>(layout::Layout::Table) == BATTEN_LAYOUT_TABLE &&
              static_cast<uint32_t>(layout::Layout::Vector) == BATTEN_LAYOUT_VECTOR &&
              static_cast<uint32_t>(layout::Layout::Panels) == BATTEN_LAYOUT_PANELS &&
              static_cast<uint32_t>(layout::Layout::DotPanels) == BATTEN_LAYOUT_DOT_PANELS);
static_assert(static_cast<uint32_t>(layout::Elem::F32) == BATTEN_ELEM_F32 &&
              static_cast<uint32_t>(layout::Elem::F16) == BATTEN_ELEM_F16 &&
              static_cast<uint32_t>(layout::Elem::BF16) == BATTEN_ELEM_BF16 &&
              static_cast<uint32_t>(layout::Elem::I8) == BATTEN_ELEM_I8);

static std::vector<uint8_t> packHead(batten_pack_index pack, const std::vector<layout::PackEntry> &entries,
                                     const layout::PackLayout &placed) {
  std::vector<uint8_t> head(static_cast<size_t>(placed.dataOffset), 0);
  auto put = [&](int64_t offset, const void *data, size_t bytes) { std::memcpy(head.data() + offset, data, bytes); };
  auto u64 = [](int64_t value) { return static_cast<uint64_t>(value); };
  const batten_section_t sections[] = {
      {BATTEN_SECTION_STRINGS, 1, u64(placed.stringsOffset), u64(placed.stringsBytes), 0},
      {BATTEN_SECTION_PACK, sizeof(batten_pack_t), u64(placed.packOffset), 1, 0},
      {BATTEN_SECTION_TENSORS, sizeof(batten_tensor_t), u64(placed.tensorsOffset), entries.size(), 0},
      {BATTEN_SECTION_DATA, 1, u64(placed.dataOffset), u64(placed.dataBytes), 0},
  };
  batten_file_header_t header = formatHeader(BATTEN_FILE_PACK);
  header.fileBytes = u64(placed.fileBytes);
  header.sectionCount = std::size(sections);
  put(0, &header, sizeof(header));
  put(sizeof(header), sections, sizeof(sections));
  batten_pack_t record = {pack, BATTEN_ALIGNMENT, u64(placed.dataOffset), u64(placed.dataBytes)};
  put(placed.packOffset, &record, sizeof(record));
  int64_t stringAt = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const layout::PackEntry &entry = entries[i];
    put(placed.stringsOffset + stringAt, entry.name.data(), entry.name.size());
    batten_tensor_t tensor = {};
    tensor.name = {static_cast<uint32_t>(stringAt), static_cast<uint32_t>(entry.name.size())};
    tensor.layout = static_cast<uint32_t>(entry.layout);
    tensor.elem = static_cast<uint32_t>(entry.elem);
    tensor.rows = static_cast<uint32_t>(entry.rows);
    tensor.cols = static_cast<uint32_t>(entry.cols);
    tensor.offset = u64(placed.offset[i]);
    tensor.bytes = u64(placed.bytes[i]);
    put(placed.tensorsOffset + static_cast<int64_t>(i * sizeof(tensor)), &tensor, sizeof(tensor));
    stringAt += static_cast<int64_t>(entry.name.size());
  }
  sealHeader(head);
  return head;
}

llvm::Expected<WrittenFile> writePack(BundleSink &sink, batten_pack_index pack,
                                      const std::vector<layout::PackEntry> &entries, const layout::PackLayout &placed,
                                      layout::TensorSource &source, PackProgress progress) {
  llvm::StringRef path = pack == BATTEN_PACK_COMMON ? kCommonPackPath : kPanelsPackPath;
  llvm::Expected<std::unique_ptr<BundleFile>> file = sink.create(path, static_cast<uint64_t>(placed.fileBytes));
  if (!file)
    return file.takeError();
  std::vector<uint8_t> head = packHead(pack, entries, placed);
  std::string error;
  if (!(*file)->write(head.data(), head.size(), error))
    return makeError(error);
  (*file)->endHead();
  uint64_t done = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!layout::packEntry(entries[i], source, **file, error))
      return makeError(error);
    done += static_cast<uint64_t>(placed.bytes[i]);
    progress(done, static_cast<uint64_t>(placed.dataBytes));
  }
  llvm::Expected<WrittenFile> written = (*file)->close();
  if (written && written->bytes != static_cast<uint64_t>(placed.fileBytes))
    return makeError(path + ": " + llvm::Twine(written->bytes) + " bytes written, " + llvm::Twine(placed.fileBytes) +
                     " were laid out");
  return written;
}

} // namespace batten
