// See the header.
#include "compiler/artifact/SectionFile.h"
#include "compiler/layout/RowStride.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/SHA256.h"

namespace batten {

batten_string_t SectionFile::string(llvm::StringRef text) {
  auto [at, isNew] = seen.try_emplace(text, static_cast<uint32_t>(strings.size()));
  if (isNew)
    strings.insert(strings.end(), text.begin(), text.end());
  return {at->second, static_cast<uint32_t>(text.size())};
}

batten_file_header_t formatHeader(uint32_t fileKind) {
  batten_file_header_t header = {};
  std::memcpy(header.magic, BATTEN_MAGIC, sizeof(header.magic));
  header.kind = fileKind;
  header.major = BATTEN_FORMAT_MAJOR;
  header.minor = BATTEN_FORMAT_MINOR;
  header.headerBytes = sizeof(header);
  return header;
}

void sealHeader(std::vector<uint8_t> &bytes) {
  auto digest = llvm::SHA256::hash(bytes);
  std::memcpy(bytes.data() + offsetof(batten_file_header_t, digest), digest.data(), digest.size());
}

std::vector<uint8_t> SectionFile::finish(uint32_t fileKind) const {
  std::vector<const Section *> all;
  Section stringSection{BATTEN_SECTION_STRINGS, 1, strings.size(), strings};
  all.push_back(&stringSection);
  for (const Section &section : sections)
    all.push_back(&section);
  std::vector<batten_section_t> table;
  uint64_t end = sizeof(batten_file_header_t) + all.size() * sizeof(batten_section_t);
  for (const Section *section : all) {
    auto offset = static_cast<uint64_t>(layout::roundUp(static_cast<int64_t>(end), layout::kAlignment));
    table.push_back({section->kind, section->recordBytes, offset, section->count, 0});
    end = offset + section->bytes.size();
  }
  std::vector<uint8_t> bytes(end, 0);
  batten_file_header_t header = formatHeader(fileKind);
  header.fileBytes = end;
  header.sectionCount = static_cast<uint32_t>(table.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), table.data(), table.size() * sizeof(batten_section_t));
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i]->bytes.empty())
      std::memcpy(bytes.data() + table[i].offset, all[i]->bytes.data(), all[i]->bytes.size());
  sealHeader(bytes);
  return bytes;
}

} // namespace batten
