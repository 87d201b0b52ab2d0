// Where a bundle's files come from: a directory, or blobs in the caller's memory. Sizes are checked against the manifest
// before anything is allocated or mapped.
#ifndef BATTEN_RT_SOURCE_H
#define BATTEN_RT_SOURCE_H

#include "Manifest.h"
#include "OsLinux.h"

namespace batten::rt {

/// A file that is open, or its bytes in memory.
struct SourceFile {
  os::Fd file;
  const u8 *blob = nullptr;
  u64 bytes = 0;
};

class Source {
public:
  [[nodiscard]] Status openDirectory(const char *path, bool allowWritableByOthers, const Report &report) noexcept;
  /// Errors: BAD_ARGUMENT for a blob that isn't aligned, has no path, or comes twice.
  [[nodiscard]] Status openBlobs(const batten_blob_t *blobs, size_t count, const Report &report) noexcept;
  /// Remembers which blob is which file; the caller's array of blobs may go afterwards.
  [[nodiscard]] Status bind(const Manifest &manifest, const Report &report) noexcept;

  [[nodiscard]] Status openManifest(SourceFile &file, const Report &report) const noexcept;
  /// Opens a file of the manifest and checks its size.
  [[nodiscard]] Status open(const Manifest &manifest, u32 file, SourceFile &opened,
                            const Report &report) const noexcept;
  /// True where path has come to name another directory than the one that is open.
  [[nodiscard]] bool isReplaced(const char *path) const noexcept { return os::isReplaced(path, directory_); }
  [[nodiscard]] bool isDirectory() const noexcept { return directory_.isOpen(); }

private:
  [[nodiscard]] const batten_blob_t *findBlob(Text path) const noexcept;

  os::Fd directory_;
  bool allowWritableByOthers_ = false;
  const batten_blob_t *blobs_ = nullptr;
  size_t blobCount_ = 0;
  Array<batten_blob_t> byFile_;
};

/// Reads [offset, offset + bytes) of an open file into memory.
[[nodiscard]] Status readFile(const SourceFile &file, void *data, u64 bytes, u64 offset, const Report &report) noexcept;
/// SHA-256 of a file, read in blocks; each block is also handed to sink(data, bytes), which returns a status.
template <typename Sink>
[[nodiscard]] Status hashFile(const SourceFile &file, bool accelerated, u8 *digest, const Report &report,
                              Sink sink) noexcept {
  constexpr u64 kBlockBytes = u64{256} << 10;
  Bytes block;
  if (!block.create(file.bytes < kBlockBytes ? file.bytes : kBlockBytes))
    return report.outOfMemory(kBlockBytes);
  Sha256 hash(accelerated);
  for (u64 at = 0; at < file.bytes;) {
    const u64 bytes = file.bytes - at < block.bytes() ? file.bytes - at : block.bytes();
    BATTEN_TRY(readFile(file, block.data(), bytes, at, report));
    hash.update(block.data(), bytes);
    BATTEN_TRY(sink(block.data(), bytes));
    at += bytes;
  }
  hash.finish(digest);
  return BATTEN_OK;
}
/// Refuses a file whose digest isn't the manifest's.
[[nodiscard]] Status checkFileDigest(const u8 *found, const batten_file_t &file, const Report &report) noexcept;

} // namespace batten::rt

#endif // BATTEN_RT_SOURCE_H
