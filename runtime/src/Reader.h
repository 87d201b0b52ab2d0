// Header and section table of a file in the format of format.h. Takes any byte string: it opens, and then every section
// lies in the file and every record can be read, or it is refused. Knows nothing of what the records mean.
#ifndef BATTEN_RT_READER_H
#define BATTEN_RT_READER_H

#include "Report.h"

namespace batten::rt {

/// Name of a section as in format.h ("BUFFERS"); "" for kinds that this version doesn't know.
[[nodiscard]] const char *sectionName(u32 kind) noexcept;

/// Records of one section. They may be longer than T: a newer writer's fields are skipped. at copies, so that nothing
/// depends on the records' alignment.
template <typename T> struct Records {
  const u8 *base = nullptr;
  u64 count = 0;
  u32 stride = 0;

  [[nodiscard]] T at(u64 i) const noexcept {
    T record;
    std::memcpy(&record, base + i * stride, sizeof(T));
    return record;
  }
};

class FileView {
public:
  /// Checks header, section table, gaps and alignment. bytes is the real size of the file, data all of it.
  /// Errors: CORRUPT; VERSION for another major version or a needed feature that this reader doesn't know.
  [[nodiscard]] Status open(const u8 *data, u64 bytes, u32 kind, const Report &report) noexcept;
  /// Compares header.digest with [0, coveredBytes), the digest field taken as zeros.
  [[nodiscard]] Status checkDigest(u64 coveredBytes, bool accelerated, const Report &report) const noexcept;

  /// Records of a section; none where the section isn't there. STRINGS and DATA are bytes.
  template <typename T> [[nodiscard]] Records<T> records(u32 kind) const noexcept {
    const batten_section_t &section = sections_[kind];
    return {data_ + section.offset, section.count, section.recordBytes};
  }
  /// The string, or false where it leaves STRINGS or is no UTF-8.
  [[nodiscard]] bool text(batten_string_t string, Text *text) const noexcept;
  /// A string that a verifier has already seen.
  [[nodiscard]] Text verifiedText(batten_string_t string) const noexcept;

  [[nodiscard]] const batten_file_header_t &header() const noexcept { return header_; }
  [[nodiscard]] const batten_section_t &section(u32 kind) const noexcept { return sections_[kind]; }
  [[nodiscard]] const u8 *data() const noexcept { return data_; }
  [[nodiscard]] u64 bytes() const noexcept { return bytes_; }
  /// True where the file's minor version is one whose reserved fields this reader knows to be 0.
  [[nodiscard]] bool checksReserved() const noexcept { return header_.minor <= BATTEN_FORMAT_MINOR; }

  static constexpr u32 kSectionKinds = 64;

private:
  [[nodiscard]] Status readHeader(u32 kind, const Report &report) noexcept;
  [[nodiscard]] Status readSections(const Report &report) noexcept;

  const u8 *data_ = nullptr;
  u64 bytes_ = 0;
  batten_file_header_t header_ = {};
  batten_section_t sections_[kSectionKinds] = {}; // by kind; count 0 where absent
};

} // namespace batten::rt

#endif // BATTEN_RT_READER_H
