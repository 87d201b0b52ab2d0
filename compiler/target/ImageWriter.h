// A relocatable object to an image: an ELF shared object with one R+X segment and a symbol table, so that perf, gdb and
// objdump read it with no further step. Position independent with nothing left to relocate: the runtime maps the segment
// and jumps to file offsets. Refuses whatever would need a loader.
//
//   offset  what
//   0       ELF header, two program headers (PT_LOAD R+X, PT_GNU_STACK)
//   4096    .text, then .rodata, each 64-byte aligned; virtual addresses are file offsets
//   ..      .symtab, .strtab, .shstrtab, section headers
#ifndef BATTEN_COMPILER_TARGET_IMAGEWRITER_H
#define BATTEN_COMPILER_TARGET_IMAGEWRITER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace batten {

/// A function of an image.
struct ImageFunction {
  std::string name;
  uint64_t offset = 0; ///< in the image
  uint64_t bytes = 0;
  uint64_t frameBytes = 0; ///< of its stack frame, from .stack_sizes
};

/// An image and what is known of it.
struct Image {
  std::vector<uint8_t> bytes;
  std::vector<ImageFunction> functions; ///< ascending offsets
  uint64_t codeOffset = 0;
  uint64_t codeBytes = 0; ///< .text and .rodata
  uint64_t textBytes = 0; ///< .text alone, at codeOffset

  const ImageFunction *find(llvm::StringRef name) const;
};

/// Lays out an x86-64 object. The same object gives the same bytes.
///
/// Errors: writable, thread-local or zero-filled sections; undefined symbols; relocations other than R_X86_64_PC32,
///         PLT32 and PC64 to something in the image; distances that don't fit.
llvm::Expected<Image> writeImage(llvm::ArrayRef<uint8_t> object);

} // namespace batten

#endif // BATTEN_COMPILER_TARGET_IMAGEWRITER_H
