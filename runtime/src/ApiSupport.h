// Between the C API and the classes behind its opaque types. batten.h is included with default visibility: its functions are
// the only symbols that a shared library shows.
#ifndef BATTEN_RT_APISUPPORT_H
#define BATTEN_RT_APISUPPORT_H

#pragma GCC visibility push(default)
#include "batten/batten.h"
#pragma GCC visibility pop

#include "Executor.h"

namespace batten::rt {

/// The caller's error struct, or a local one where the caller gave none; cleared.
class ErrorSlot {
public:
  explicit ErrorSlot(batten_error_t *error) noexcept : error_(error ? *error : own_) { clearError(error_); }
  [[nodiscard]] batten_error_t &get() noexcept { return error_; }
  [[nodiscard, gnu::cold]] Status badArgument(const char *what) noexcept {
    return Report(error_, {}).fail(BATTEN_BAD_ARGUMENT, "", 0, 0, 0, "%s", what);
  }

private:
  batten_error_t own_;
  batten_error_t &error_;
};

/// True where the struct that the caller compiled with has every field of this one; the first version has all.
template <typename T> [[nodiscard]] bool hasFields(const T *options) noexcept {
  return options->structBytes >= sizeof(T);
}

} // namespace batten::rt

struct batten_bundle : batten::rt::Bundle {};
struct batten_pool : batten::rt::Pool {};
struct batten_executor : batten::rt::Executor {};

#endif // BATTEN_RT_APISUPPORT_H
