// The image of a target as a file of the bundle.
#ifndef BATTEN_COMPILER_ARTIFACT_IMAGEFILE_H
#define BATTEN_COMPILER_ARTIFACT_IMAGEFILE_H

#include "compiler/artifact/BundleSink.h"

namespace batten {

/// Writes images/<target>.img. The bytes are an ELF shared object made by compiler/target; its one executable segment is at
/// [codeOffset, codeOffset + codeBytes) of the file.
///
/// Errors: bytes that are no 64-bit little-endian ELF file, a code range that is not page-aligned, empty or outside the
/// file (our own mistakes, refused here so that no bundle holds them); the sink's.
llvm::Expected<WrittenFile> writeImage(BundleSink &sink, llvm::StringRef target, llvm::ArrayRef<uint8_t> elf,
                                       uint64_t codeOffset, uint64_t codeBytes);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_IMAGEFILE_H
