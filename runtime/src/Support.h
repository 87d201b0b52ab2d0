// Small things that every file of the runtime uses: fixed-width names, checked arithmetic, range checks that subtract,
// an array that may fail to allocate. No container that grows, throws or hides an allocation.
#ifndef BATTEN_RT_SUPPORT_H
#define BATTEN_RT_SUPPORT_H

#include "batten/batten.h"
#include "batten/format.h"
#include "batten/kernel.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

/// Returns the status of a failed call from the enclosing function.
#define BATTEN_TRY(call)                                                                                               \
  do {                                                                                                                 \
    if (::batten_status_t tryStatus = (call); tryStatus != BATTEN_OK)                                                  \
      return tryStatus;                                                                                                \
  } while (false)

namespace batten::rt {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Status = batten_status_t;

/// True where a * b fits 64 bits; *result is the product then.
[[nodiscard]] inline bool checkedMul(u64 a, u64 b, u64 *result) noexcept {
  return !__builtin_mul_overflow(a, b, result);
}
/// True where a + b fits 64 bits; *result is the sum then.
[[nodiscard]] inline bool checkedAdd(u64 a, u64 b, u64 *result) noexcept {
  return !__builtin_add_overflow(a, b, result);
}
/// True where [offset, offset + bytes) lies in [0, total).
[[nodiscard]] inline bool inRange(u64 offset, u64 bytes, u64 total) noexcept {
  return offset <= total && bytes <= total - offset;
}
/// value rounded up to a multiple of unit, a power of two. The caller knows that it doesn't overflow.
[[nodiscard]] inline constexpr u64 roundUp(u64 value, u64 unit) noexcept { return (value + unit - 1) & ~(unit - 1); }
[[nodiscard]] inline constexpr u64 ceilDiv(u64 value, u64 unit) noexcept { return value / unit + (value % unit != 0); }
/// Bytes of an element, 0 for an unknown one.
/// Whether a weight of this layout is in the pack of panels.
[[nodiscard]] inline constexpr bool isPanels(u32 layout) noexcept {
  return layout == BATTEN_LAYOUT_PANELS || layout == BATTEN_LAYOUT_DOT_PANELS;
}

[[nodiscard]] inline constexpr u64 elemBytes(u32 elem) noexcept {
  return elem == BATTEN_ELEM_F32 ? 4 : elem == BATTEN_ELEM_F16 || elem == BATTEN_ELEM_BF16 ? 2 : elem == BATTEN_ELEM_I8;
}
/// The one row stride of the product: whole cache lines that hold the width rounded up to 16 elements, and one line more
/// where rows would otherwise alias in the cache (a multiple of 4096 bytes).
[[nodiscard]] inline constexpr u64 rowStrideBytes(u32 width, u32 elem) noexcept {
  u64 bytes = roundUp(roundUp(u64{width}, BATTEN_LANES) * elemBytes(elem), BATTEN_ALIGNMENT);
  return bytes % 4096 == 0 ? bytes + BATTEN_ALIGNMENT : bytes;
}

/// A piece of text that someone else owns; not terminated.
struct Text {
  const char *data = "";
  u32 bytes = 0;

  [[nodiscard]] bool equals(Text other) const noexcept {
    return bytes == other.bytes && std::memcmp(data, other.data, bytes) == 0;
  }
  /// Negative, 0 or positive as memcmp orders the bytes; a prefix comes first.
  [[nodiscard]] int compare(Text other) const noexcept {
    int order = std::memcmp(data, other.data, bytes < other.bytes ? bytes : other.bytes);
    return order != 0 ? order : bytes < other.bytes ? -1 : bytes > other.bytes;
  }
  [[nodiscard]] batten_text_t toC() const noexcept { return {data, bytes}; }
};
[[nodiscard]] inline Text textOf(const char *string) noexcept {
  return {string, static_cast<u32>(std::strlen(string))};
}
/// Precision and data of a text for printf's "%.*s", cut to what a message can use.
#define BATTEN_TEXT(text) static_cast<int>((text).bytes < 200 ? (text).bytes : 200), (text).data

/// A zeroed array of plain data with one allocation; move-only.
template <typename T> class Array {
public:
  Array() = default;
  ~Array() { std::free(data_); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  Array(Array &&other) noexcept : data_(other.data_), count_(other.count_) { other.data_ = nullptr, other.count_ = 0; }
  Array &operator=(Array &&other) noexcept {
    T *data = data_;
    u64 count = count_;
    data_ = other.data_, count_ = other.count_;
    other.data_ = data, other.count_ = count;
    return *this;
  }

  /// False where memory is short.
  [[nodiscard]] bool create(u64 count) noexcept {
    std::free(data_);
    data_ = static_cast<T *>(std::calloc(count ? count : 1, sizeof(T)));
    count_ = data_ ? count : 0;
    return data_ != nullptr;
  }
  [[nodiscard]] T *data() noexcept { return data_; }
  [[nodiscard]] const T *data() const noexcept { return data_; }
  [[nodiscard]] u64 count() const noexcept { return count_; }
  T &operator[](u64 i) noexcept { return data_[i]; }
  const T &operator[](u64 i) const noexcept { return data_[i]; }

private:
  T *data_ = nullptr;
  u64 count_ = 0;
};

/// Bytes at a 64-byte boundary, so that sections of a file read into them are aligned.
class Bytes {
public:
  Bytes() = default;
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;

  [[nodiscard]] bool create(u64 bytes) noexcept {
    std::free(data_);
    data_ =
        bytes > (u64{1} << 62) ? nullptr : static_cast<u8 *>(std::aligned_alloc(64, roundUp(bytes ? bytes : 1, 64)));
    bytes_ = data_ ? bytes : 0;
    return data_ != nullptr;
  }
  [[nodiscard]] u8 *data() noexcept { return data_; }
  [[nodiscard]] const u8 *data() const noexcept { return data_; }
  [[nodiscard]] u64 bytes() const noexcept { return bytes_; }
  /// Gives the memory to the caller, who frees it with std::free.
  [[nodiscard]] u8 *take() noexcept {
    u8 *data = data_;
    data_ = nullptr, bytes_ = 0;
    return data;
  }

private:
  u8 *data_ = nullptr;
  u64 bytes_ = 0;
};

/// Makes a T in memory of malloc; nullptr where memory is short. destroy undoes it.
template <typename T> [[nodiscard]] T *create() noexcept {
  void *memory =
      std::aligned_alloc(alignof(T) < 64 ? 64 : alignof(T), roundUp(sizeof(T), alignof(T) < 64 ? 64 : alignof(T)));
  return memory ? new (memory) T() : nullptr;
}
template <typename T> void destroy(T *object) noexcept {
  if (!object)
    return;
  object->~T();
  std::free(object);
}

/// Sorts in place (heap sort: no allocation, no bad case). less(a, b) is a strict weak order.
template <typename T, typename Less> void sortInPlace(T *items, u64 count, Less less) noexcept {
  auto sift = [&](u64 root, u64 end) {
    for (u64 child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && less(items[child], items[child + 1]))
        ++child;
      if (!less(items[root], items[child]))
        return;
      T held = items[root];
      items[root] = items[child], items[child] = held;
    }
  };
  for (u64 i = count / 2; i-- > 0;)
    sift(i, count);
  for (u64 end = count; end > 1;) {
    --end;
    T held = items[0];
    items[0] = items[end], items[end] = held;
    sift(0, end);
  }
}

} // namespace batten::rt

#endif // BATTEN_RT_SUPPORT_H
