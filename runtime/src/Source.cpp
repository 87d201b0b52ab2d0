// See Source.h.
#include "Source.h"

namespace batten::rt {
namespace {

using ull = unsigned long long;
constexpr const char *kManifestPath = "manifest.bin";

} // namespace

Status Source::openDirectory(const char *path, bool allowWritableByOthers, const Report &report) noexcept {
  allowWritableByOthers_ = allowWritableByOthers;
  return os::openDirectory(path, allowWritableByOthers, directory_, report);
}

Status Source::openBlobs(const batten_blob_t *blobs, size_t count, const Report &report) noexcept {
  for (size_t i = 0; i < count; ++i) {
    if (!blobs[i].path || (!blobs[i].data && blobs[i].bytes))
      return report.fail(BATTEN_BAD_ARGUMENT, "", i, 0, 0, "blob %zu has no path or no data", i);
    if (reinterpret_cast<u64>(blobs[i].data) % BATTEN_ALIGNMENT != 0)
      return report.fail(BATTEN_BAD_ARGUMENT, "", i, reinterpret_cast<u64>(blobs[i].data) % BATTEN_ALIGNMENT, 0,
                         "blob \"%.100s\" is not aligned to %u bytes", blobs[i].path, BATTEN_ALIGNMENT);
    for (size_t k = 0; k < i; ++k)
      if (std::strcmp(blobs[i].path, blobs[k].path) == 0)
        return report.fail(BATTEN_BAD_ARGUMENT, "", i, k, 0, "blob \"%.100s\" is given twice", blobs[i].path);
  }
  blobs_ = blobs;
  blobCount_ = count;
  return BATTEN_OK;
}

Status Source::bind(const Manifest &manifest, const Report &report) noexcept {
  if (isDirectory())
    return BATTEN_OK;
  if (!byFile_.create(manifest.files.count))
    return report.outOfMemory(manifest.files.count * sizeof(batten_blob_t));
  for (u64 i = 0; i < manifest.files.count; ++i)
    if (const batten_blob_t *blob = findBlob(manifest.text(manifest.files.at(i).path)))
      byFile_[i] = {"", blob->data, blob->bytes};
  blobs_ = nullptr;
  blobCount_ = 0;
  return BATTEN_OK;
}

const batten_blob_t *Source::findBlob(Text path) const noexcept {
  for (size_t i = 0; i < blobCount_; ++i)
    if (textOf(blobs_[i].path).equals(path))
      return blobs_ + i;
  return nullptr;
}

Status Source::openManifest(SourceFile &file, const Report &report) const noexcept {
  if (isDirectory())
    return os::Opener(directory_.get(), allowWritableByOthers_)
        .open(textOf(kManifestPath), file.file, &file.bytes, report);
  const batten_blob_t *blob = findBlob(textOf(kManifestPath));
  if (!blob)
    return report.fail(BATTEN_IO, "", 0, 0, 0, "no such blob");
  file.blob = static_cast<const u8 *>(blob->data);
  file.bytes = blob->bytes;
  return BATTEN_OK;
}

Status Source::open(const Manifest &manifest, u32 index, SourceFile &opened, const Report &report) const noexcept {
  const batten_file_t file = manifest.files.at(index);
  if (isDirectory()) {
    os::Opener opener(directory_.get(), allowWritableByOthers_);
    BATTEN_TRY(opener.open(manifest.text(file.path), opened.file, &opened.bytes, report));
  } else {
    opened.blob = static_cast<const u8 *>(byFile_[index].data);
    opened.bytes = byFile_[index].bytes;
    if (!opened.blob)
      return report.fail(BATTEN_IO, "", index, 0, file.bytes, "no such blob");
  }
  if (opened.bytes != file.bytes)
    return report.fail(BATTEN_CORRUPT, "", 0, opened.bytes, file.bytes, "%llu bytes long, the manifest says %llu",
                       ull{opened.bytes}, ull{file.bytes});
  return BATTEN_OK;
}

Status readFile(const SourceFile &file, void *data, u64 bytes, u64 offset, const Report &report) noexcept {
  if (!file.blob)
    return os::readAt(file.file, data, bytes, offset, report);
  std::memcpy(data, file.blob + offset, bytes);
  return BATTEN_OK;
}

Status checkFileDigest(const u8 *found, const batten_file_t &file, const Report &report) noexcept {
  if (std::memcmp(found, file.digest, sizeof file.digest) != 0)
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0,
                       "its bytes differ from the digest in the manifest: damaged or mixed up");
  return BATTEN_OK;
}

} // namespace batten::rt
