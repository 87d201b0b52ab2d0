// See the header.
#include "compiler/artifact/ImageFile.h"
#include "compiler/artifact/Manifest.h"
#include "compiler/spec/Text.h"

#include <cstring>

namespace batten {

llvm::Expected<WrittenFile> writeImage(BundleSink &sink, llvm::StringRef target, llvm::ArrayRef<uint8_t> elf,
                                       uint64_t codeOffset, uint64_t codeBytes) {
  const char kIdent[6] = {'\x7F', 'E', 'L', 'F', 2, 1}; // 64-bit, little endian
  std::string path = imagePath(target);
  if (elf.size() < 64 || std::memcmp(elf.data(), kIdent, sizeof(kIdent)) != 0)
    return makeError(path + ": " + llvm::Twine(elf.size()) + " bytes that are no 64-bit little-endian ELF file");
  if (codeOffset % 4096 != 0 || codeBytes == 0 || codeOffset > elf.size() || codeBytes > elf.size() - codeOffset)
    return makeError(path + ": code of " + llvm::Twine(codeBytes) + " bytes at " + llvm::Twine(codeOffset) +
                     " is not page-aligned, empty or outside the " + llvm::Twine(elf.size()) + " bytes of the image");
  return writeBundleFile(sink, path, elf);
}

} // namespace batten
