// See Reader.h.
#include "Reader.h"

#include "Sha256.h"

namespace batten::rt {
namespace {

using ull = unsigned long long;

constexpr u32 kMaxSections = 256;
constexpr u32 kMaxRecordBytes = 4096;

struct SectionKind {
  const char *name;
  u32 recordBytes; // smallest; exact where fixed
  bool fixed;
  u32 file;
};

// By kind; a hole is an unknown kind.
constexpr SectionKind kSections[FileView::kSectionKinds] = {
    {},
    {"STRINGS", 1, true, 0},
    {"PRODUCER", sizeof(batten_producer_t), false, BATTEN_FILE_MANIFEST},
    {"FILES", sizeof(batten_file_t), false, BATTEN_FILE_MANIFEST},
    {"TARGETS", sizeof(batten_target_t), false, BATTEN_FILE_MANIFEST},
    {"STAGES", sizeof(batten_stage_t), false, BATTEN_FILE_MANIFEST},
    {"BUCKETS", sizeof(batten_bucket_t), false, BATTEN_FILE_MANIFEST},
    {"LANES", sizeof(batten_lane_t), false, BATTEN_FILE_MANIFEST},
    {"OUTPUTS", sizeof(batten_output_t), false, BATTEN_FILE_MANIFEST},
    {"PLANS", sizeof(batten_plan_ref_t), false, BATTEN_FILE_MANIFEST},
    {"NOTES", sizeof(batten_note_t), false, BATTEN_FILE_MANIFEST},
    {"WORDS", 4, true, BATTEN_FILE_MANIFEST},
    {"SELF_TESTS", sizeof(batten_self_test_t), false, BATTEN_FILE_MANIFEST},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {"PACK", sizeof(batten_pack_t), false, BATTEN_FILE_PACK},
    {"TENSORS", sizeof(batten_tensor_t), false, BATTEN_FILE_PACK},
    {"DATA", 1, true, BATTEN_FILE_PACK},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {"PLAN", sizeof(batten_plan_t), false, BATTEN_FILE_PLAN},
    {"BUFFERS", sizeof(batten_buffer_t), false, BATTEN_FILE_PLAN},
    {"WEIGHTS", sizeof(batten_weight_t), false, BATTEN_FILE_PLAN},
    {"KERNELS", sizeof(batten_kernel_t), false, BATTEN_FILE_PLAN},
    {"OPERANDS", sizeof(batten_operand_t), false, BATTEN_FILE_PLAN},
    {"STEPS", sizeof(batten_step_t), false, BATTEN_FILE_PLAN},
    {"PLAN_OUTPUTS", sizeof(batten_plan_output_t), false, BATTEN_FILE_PLAN},
};

bool allZero(const u8 *data, u64 bytes) noexcept {
  for (u64 i = 0; i < bytes; ++i)
    if (data[i])
      return false;
  return true;
}

// UTF-8 as RFC 3629 has it, without NUL: no overlong form, no surrogate, nothing above U+10FFFF.
bool isUtf8(const u8 *p, u32 bytes) noexcept {
  for (u32 i = 0; i < bytes;) {
    u32 c = p[i++];
    if (c < 0x80) {
      if (c == 0)
        return false;
      continue;
    }
    u32 more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    if (c < 0xC2 || c > 0xF4 || more > bytes - i)
      return false;
    u32 low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (p[i] < low || p[i] > high)
      return false;
    for (u32 k = 1; k < more; ++k)
      if ((p[i + k] & 0xC0) != 0x80)
        return false;
    i += more;
  }
  return true;
}

} // namespace

const char *sectionName(u32 kind) noexcept {
  return kind < FileView::kSectionKinds && kSections[kind].name ? kSections[kind].name : "";
}

Status FileView::open(const u8 *data, u64 bytes, u32 kind, const Report &report) noexcept {
  static constexpr u8 kNothing[1] = {};
  data_ = data ? data : kNothing;
  bytes_ = bytes;
  std::memset(sections_, 0, sizeof sections_);
  BATTEN_TRY(readHeader(kind, report));
  return readSections(report);
}

Status FileView::readHeader(u32 kind, const Report &report) noexcept {
  if (bytes_ < sizeof header_)
    return report.fail(BATTEN_CORRUPT, "", 0, bytes_, sizeof header_, "%llu bytes long, a header has %zu", ull{bytes_},
                       sizeof header_);
  std::memcpy(&header_, data_, sizeof header_);
  if (std::memcmp(header_.magic, BATTEN_MAGIC, sizeof header_.magic) != 0)
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0, "not a file of a bundle: its first bytes are wrong");
  if (header_.major != BATTEN_FORMAT_MAJOR)
    return report.fail(BATTEN_VERSION, "", 0, header_.major, BATTEN_FORMAT_MAJOR,
                       "format version %u.%u, this runtime reads %u.x", unsigned{header_.major},
                       unsigned{header_.minor}, BATTEN_FORMAT_MAJOR);
  if (u64 unknown = header_.neededFeatures & ~BATTEN_KNOWN_FEATURES)
    return report.fail(BATTEN_VERSION, "", 0, header_.neededFeatures, BATTEN_KNOWN_FEATURES,
                       "needs format features 0x%llx that this runtime (format %u.%u) doesn't know", ull{unknown},
                       BATTEN_FORMAT_MAJOR, BATTEN_FORMAT_MINOR);
  if (header_.kind != kind)
    return report.fail(BATTEN_CORRUPT, "", 0, header_.kind, kind, "file kind %u, %u was expected", header_.kind, kind);
  if (header_.fileBytes != bytes_)
    return report.fail(BATTEN_CORRUPT, "", 0, bytes_, header_.fileBytes, "%llu bytes long, its header says %llu",
                       ull{bytes_}, ull{header_.fileBytes});
  if (header_.headerBytes != sizeof header_)
    return report.fail(BATTEN_CORRUPT, "", 0, header_.headerBytes, sizeof header_,
                       "header of %u bytes, %zu were expected", header_.headerBytes, sizeof header_);
  if (checksReserved() && !allZero(header_.reserved, sizeof header_.reserved))
    return report.fail(BATTEN_CORRUPT, "", 0, 1, 0, "reserved bytes of the header are not 0");
  if (header_.sectionCount > kMaxSections)
    return report.fail(BATTEN_CORRUPT, "", 0, header_.sectionCount, kMaxSections, "%u sections, at most %u are read",
                       header_.sectionCount, kMaxSections);
  return BATTEN_OK;
}

Status FileView::readSections(const Report &report) noexcept {
  u64 end = sizeof header_ + u64{header_.sectionCount} * sizeof(batten_section_t);
  if (end > bytes_)
    return report.fail(BATTEN_CORRUPT, "", 0, bytes_, end, "ends inside its section table");
  for (u32 i = 0; i < header_.sectionCount; ++i) {
    batten_section_t section;
    std::memcpy(&section, data_ + sizeof header_ + u64{i} * sizeof section, sizeof section);
    const bool known = section.kind < kSectionKinds && kSections[section.kind].name;
    const char *name = known ? kSections[section.kind].name : "unknown section";
    if (section.offset % BATTEN_ALIGNMENT != 0)
      return report.fail(BATTEN_CORRUPT, name, 0, section.offset, BATTEN_ALIGNMENT, "offset %llu is no multiple of %u",
                         ull{section.offset}, BATTEN_ALIGNMENT);
    if (section.offset < end || section.offset > bytes_)
      return report.fail(BATTEN_CORRUPT, name, 0, section.offset, end,
                         "offset %llu overlaps what comes before (up to %llu) or passes the file's %llu bytes",
                         ull{section.offset}, ull{end}, ull{bytes_});
    if (checksReserved() && (section.reserved != 0 || !allZero(data_ + end, section.offset - end)))
      return report.fail(BATTEN_CORRUPT, name, 0, 1, 0, "bytes before it, or its reserved field, are not 0");
    u64 bytes;
    if (section.recordBytes == 0 || section.recordBytes > kMaxRecordBytes ||
        !checkedMul(section.count, section.recordBytes, &bytes) || !inRange(section.offset, bytes, bytes_))
      return report.fail(BATTEN_CORRUPT, name, 0, section.count, bytes_,
                         "%llu records of %u bytes at %llu pass the file's %llu bytes", ull{section.count},
                         section.recordBytes, ull{section.offset}, ull{bytes_});
    end = section.offset + bytes;
    if (!known)
      continue;
    const SectionKind &expected = kSections[section.kind];
    if (expected.file != 0 && expected.file != header_.kind)
      return report.fail(BATTEN_CORRUPT, name, 0, header_.kind, expected.file, "does not belong in a file of kind %u",
                         header_.kind);
    if (section.recordBytes < expected.recordBytes || (expected.fixed && section.recordBytes != expected.recordBytes))
      return report.fail(BATTEN_CORRUPT, name, 0, section.recordBytes, expected.recordBytes,
                         "records of %u bytes, %u were expected", section.recordBytes, expected.recordBytes);
    if (sections_[section.kind].offset != 0)
      return report.fail(BATTEN_CORRUPT, name, 0, 2, 1, "is there twice");
    if (section.count > UINT32_MAX && section.kind != BATTEN_SECTION_DATA)
      return report.fail(BATTEN_CORRUPT, name, 0, section.count, UINT32_MAX, "%llu records are too many",
                         ull{section.count});
    sections_[section.kind] = section;
  }
  if (bytes_ - end >= BATTEN_ALIGNMENT || !allZero(data_ + end, bytes_ - end))
    return report.fail(BATTEN_CORRUPT, "", 0, bytes_, end, "%llu bytes follow its last section", ull{bytes_ - end});
  return BATTEN_OK;
}

Status FileView::checkDigest(u64 coveredBytes, bool accelerated, const Report &report) const noexcept {
  constexpr u64 kDigestOffset = offsetof(batten_file_header_t, digest);
  static constexpr u8 kZeros[Sha256::kDigestBytes] = {};
  u8 digest[Sha256::kDigestBytes];
  Sha256 hash(accelerated);
  hash.update(data_, kDigestOffset);
  hash.update(kZeros, sizeof kZeros);
  hash.update(data_ + kDigestOffset + sizeof kZeros, coveredBytes - kDigestOffset - sizeof kZeros);
  hash.finish(digest);
  if (std::memcmp(digest, header_.digest, sizeof digest) != 0)
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0, "its bytes differ from the digest in its header: it is damaged");
  return BATTEN_OK;
}

bool FileView::text(batten_string_t string, Text *text) const noexcept {
  const batten_section_t &strings = sections_[BATTEN_SECTION_STRINGS];
  if (!inRange(string.offset, string.bytes, strings.count))
    return false;
  const u8 *data = data_ + strings.offset + string.offset;
  *text = {reinterpret_cast<const char *>(data), string.bytes};
  return isUtf8(data, string.bytes);
}

Text FileView::verifiedText(batten_string_t string) const noexcept {
  return {reinterpret_cast<const char *>(data_ + sections_[BATTEN_SECTION_STRINGS].offset + string.offset),
          string.bytes};
}

} // namespace batten::rt
