// Where a bundle's files go: a directory that replaces the old bundle as a whole (BundleWriter), or memory (MemoryBundle).
// Files are written front to back, once; size and digest are taken on the way.
#ifndef BATTEN_COMPILER_ARTIFACT_BUNDLESINK_H
#define BATTEN_COMPILER_ARTIFACT_BUNDLESINK_H

#include "compiler/layout/WeightPacker.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SHA256.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace batten {

using Digest = std::array<uint8_t, 32>;

/// A digest as 64 lower-case hexadecimal digits.
std::string digestText(const Digest &digest);

/// A file of a bundle, as the manifest's FILES records it.
struct WrittenFile {
  std::string path; ///< below the bundle
  uint64_t bytes = 0;
  uint64_t headBytes = 0; ///< packs: bytes before DATA; else 0
  Digest digest = {};
  Digest headDigest = {}; ///< packs: of the head; else zeros
};

/// A file that is being written. Bytes are collected into large blocks, since the page cache keeps what it was given in
/// pieces of that size and faults on small ones are dear.
class BundleFile : public layout::ByteSink {
public:
  explicit BundleFile(std::string path) { file.path = std::move(path); }
  ~BundleFile() override = default;

  bool write(const uint8_t *data, size_t bytes, std::string &error) override;
  /// Ends the head: what was written so far gets a digest of its own.
  void endHead();
  /// Writes what is left and makes the file lasting. Errors: as write. Nothing may be written afterwards.
  llvm::Expected<WrittenFile> close();

protected:
  /// Takes the next block. Errors: the text names the file.
  virtual llvm::Error put(const uint8_t *data, size_t bytes) = 0;
  virtual llvm::Error finish() = 0;

private:
  static constexpr size_t kBlockBytes = size_t(4) << 20;

  WrittenFile file;
  llvm::SHA256 hash;
  std::vector<uint8_t> block;
};

/// A bundle that is being written.
class BundleSink {
public:
  virtual ~BundleSink() = default;
  /// Begins a file; path is name, folder/name or folder/folder/name. A file of that path is replaced.
  ///
  /// Units: expectedBytes is a hint, 0 where unknown. Errors: the file can't be made.
  virtual llvm::Expected<std::unique_ptr<BundleFile>> create(llvm::StringRef path, uint64_t expectedBytes) = 0;
};

/// Writes a whole file. Errors: as BundleFile.
llvm::Expected<WrittenFile> writeBundleFile(BundleSink &sink, llvm::StringRef path, llvm::ArrayRef<uint8_t> bytes);

/// A bundle in memory.
class MemoryBundle : public BundleSink {
public:
  struct Blob {
    std::string path;
    std::vector<uint8_t> bytes;
  };

  llvm::Expected<std::unique_ptr<BundleFile>> create(llvm::StringRef path, uint64_t expectedBytes) override;
  /// The closed files, in the order in which they were begun.
  std::vector<std::unique_ptr<Blob>> take() { return std::move(blobs); }

private:
  std::vector<std::unique_ptr<Blob>> blobs;
};

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_BUNDLESINK_H
