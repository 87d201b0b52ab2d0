// Fills the caller's error struct. Every refusal of the runtime passes through here, so that each has a status, a place,
// numbers and one line of text. Allocates nothing; texts that are too long are cut.
#ifndef BATTEN_RT_REPORT_H
#define BATTEN_RT_REPORT_H

#include "Support.h"

namespace batten::rt {

/// Sets *error to "nothing failed".
void clearError(batten_error_t &error) noexcept;
/// Copies text into a field of size bytes, cut to fit and terminated.
void copyText(char *field, size_t size, Text text) noexcept;

/// Reports failures of one file, or of one call. Holds no text of its own: the file's name must outlive it.
class Report {
public:
  /// where is the file within the bundle, or "" for a call.
  Report(batten_error_t &error, Text where) noexcept : error_(error), where_(where) {}

  /// Fills the error and returns status. section is a section's name or ""; index is the record at fault. The message is
  /// "<where>: <section>[<index>]: <text>", the parts that are empty left out.
  [[nodiscard, gnu::format(printf, 7, 8), gnu::cold]] Status
  fail(Status status, const char *section, u64 index, u64 found, u64 limit, const char *format, ...) const noexcept;
  /// A failed call to the operating system.
  [[nodiscard, gnu::cold]] Status failOs(Status status, int osError, const char *doing) const noexcept;
  [[nodiscard, gnu::cold]] Status outOfMemory(u64 bytes) const noexcept;

  [[nodiscard]] batten_error_t &error() const noexcept { return error_; }
  [[nodiscard]] Text where() const noexcept { return where_; }

private:
  batten_error_t &error_;
  Text where_;
};

} // namespace batten::rt

#endif // BATTEN_RT_REPORT_H
