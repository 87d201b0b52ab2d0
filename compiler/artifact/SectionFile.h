// Builds a file of sections as format.h draws it, in memory: for manifests, and for whatever else is small.
#ifndef BATTEN_COMPILER_ARTIFACT_SECTIONFILE_H
#define BATTEN_COMPILER_ARTIFACT_SECTIONFILE_H

#include "batten/format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>
#include <vector>

namespace batten {

class SectionFile {
public:
  /// A string of STRINGS; equal ones are shared.
  batten_string_t string(llvm::StringRef text);

  /// Adds a section of records, in the order of the calls; STRINGS comes first by itself.
  template <typename Record> void section(uint32_t kind, const std::vector<Record> &records) {
    Section section{kind, sizeof(Record), records.size(), std::vector<uint8_t>(records.size() * sizeof(Record))};
    if (!records.empty())
      std::memcpy(section.bytes.data(), records.data(), section.bytes.size());
    sections.push_back(std::move(section));
  }

  /// The file, with its digest.
  std::vector<uint8_t> finish(uint32_t fileKind) const;

private:
  struct Section {
    uint32_t kind, recordBytes;
    uint64_t count;
    std::vector<uint8_t> bytes;
  };

  std::vector<uint8_t> strings;
  llvm::StringMap<uint32_t> seen;
  std::vector<Section> sections;
};

/// A header of this format version, without sizes and digest.
batten_file_header_t formatHeader(uint32_t fileKind);

/// Sets the header's digest to the SHA-256 of these bytes, which begin with the header and have zeros there.
void sealHeader(std::vector<uint8_t> &bytes);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_SECTIONFILE_H
