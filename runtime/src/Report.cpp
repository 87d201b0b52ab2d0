// See Report.h. snprintf is given integers and plain text only, so that no locale changes a message.
#include "Report.h"

#include <cstdarg>
#include <cstdio>

namespace batten::rt {

void clearError(batten_error_t &error) noexcept {
  error.status = BATTEN_OK;
  error.osError = 0;
  error.index = error.sequence = error.found = error.limit = 0;
  error.where[0] = error.section[0] = error.message[0] = '\0';
}

void copyText(char *field, size_t size, Text text) noexcept {
  size_t bytes = text.bytes < size - 1 ? text.bytes : size - 1;
  std::memcpy(field, text.data, bytes);
  field[bytes] = '\0';
}

Status Report::fail(Status status, const char *section, u64 index, u64 found, u64 limit, const char *format,
                    ...) const noexcept {
  clearError(error_);
  error_.status = status;
  error_.index = index;
  error_.found = found;
  error_.limit = limit;
  copyText(error_.where, sizeof error_.where, where_);
  copyText(error_.section, sizeof error_.section, textOf(section));
  size_t used = 0;
  auto advance = [&](int written) {
    used += written < 0 ? 0 : static_cast<size_t>(written);
    used = used < sizeof error_.message - 1 ? used : sizeof error_.message - 1;
  };
  if (where_.bytes)
    advance(std::snprintf(error_.message, sizeof error_.message, "%.*s: ", BATTEN_TEXT(where_)));
  if (section[0])
    advance(std::snprintf(error_.message + used, sizeof error_.message - used, "%s[%llu]: ", section,
                          static_cast<unsigned long long>(index)));
  va_list arguments;
  va_start(arguments, format);
  advance(std::vsnprintf(error_.message + used, sizeof error_.message - used, format, arguments));
  va_end(arguments);
  return status;
}

Status Report::failOs(Status status, int osError, const char *doing) const noexcept {
  // strerror may allocate and is not safe on threads; strerrordesc_np is neither portable nor old. The names of the few
  // codes that users meet are enough, the number is always there.
  struct Name {
    int code;
    const char *text;
  };
  static constexpr Name kNames[] = {{2, "no such file or directory"},
                                    {13, "permission denied"},
                                    {20, "not a directory"},
                                    {12, "out of memory"},
                                    {24, "too many open files"},
                                    {40, "is a symbolic link"},
                                    {1, "not permitted"},
                                    {5, "input/output error"},
                                    {21, "is a directory"}};
  const char *text = "failed";
  for (Name name : kNames)
    text = name.code == osError ? name.text : text;
  Status result = fail(status, "", 0, 0, 0, "%s: %s (errno %d)", doing, text, osError);
  error_.osError = osError;
  return result;
}

Status Report::outOfMemory(u64 bytes) const noexcept {
  return fail(BATTEN_OUT_OF_MEMORY, "", 0, 0, bytes, "%llu bytes of memory can't be had",
              static_cast<unsigned long long>(bytes));
}

} // namespace batten::rt
