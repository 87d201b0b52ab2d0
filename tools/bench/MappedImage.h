// Maps a kernel image as the runtime does: from a memory file, the code segment read and execute, nothing else. For the
// kernel benchmark and the kernel tests; the product's own is in runtime/src.
#ifndef BATTEN_TOOLS_BENCH_MAPPEDIMAGE_H
#define BATTEN_TOOLS_BENCH_MAPPEDIMAGE_H

#include "batten/kernel.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace batten {

/// An image's code in memory. Empty where the system refuses.
class MappedImage {
public:
  MappedImage(const std::vector<uint8_t> &bytes, uint64_t codeOffset, uint64_t codeBytes)
      : offset(codeOffset), length(codeBytes) {
    int file = memfd_create("batten-kernels", MFD_CLOEXEC);
    if (file < 0)
      return;
    if (write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
      void *address = mmap(nullptr, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, static_cast<off_t>(codeOffset));
      code = address == MAP_FAILED ? nullptr : static_cast<uint8_t *>(address);
    }
    close(file);
  }
  ~MappedImage() {
    if (code)
      munmap(code, length);
  }
  MappedImage(const MappedImage &) = delete;
  MappedImage &operator=(const MappedImage &) = delete;

  explicit operator bool() const { return code != nullptr; }

  /// The function at that offset of the image's file.
  batten_kernel_fn *entry(uint64_t fileOffset) const {
    return reinterpret_cast<batten_kernel_fn *>(code + (fileOffset - offset));
  }

private:
  uint8_t *code = nullptr;
  uint64_t offset, length;
};

} // namespace batten

#endif // BATTEN_TOOLS_BENCH_MAPPEDIMAGE_H
