// See the header.
#include "compiler/artifact/BundleSink.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace batten {

std::string digestText(const Digest &digest) { return llvm::toHex(digest, /*LowerCase=*/true); }

bool BundleFile::write(const uint8_t *data, size_t bytes, std::string &error) {
  hash.update(llvm::ArrayRef<uint8_t>(data, bytes));
  file.bytes += bytes;
  llvm::Error failed = llvm::Error::success();
  if (block.empty() && bytes >= kBlockBytes) {
    failed = put(data, bytes);
  } else {
    block.insert(block.end(), data, data + bytes);
    if (block.size() >= kBlockBytes) {
      failed = put(block.data(), block.size());
      block.clear();
    }
  }
  if (!failed)
    return true;
  error = llvm::toString(std::move(failed));
  return false;
}

void BundleFile::endHead() {
  file.headBytes = file.bytes;
  file.headDigest = hash.result();
}

llvm::Expected<WrittenFile> BundleFile::close() {
  if (!block.empty())
    if (llvm::Error error = put(block.data(), block.size()))
      return std::move(error);
  block = {};
  if (llvm::Error error = finish())
    return std::move(error);
  file.digest = hash.final();
  return file;
}

llvm::Expected<WrittenFile> writeBundleFile(BundleSink &sink, llvm::StringRef path, llvm::ArrayRef<uint8_t> bytes) {
  llvm::Expected<std::unique_ptr<BundleFile>> file = sink.create(path, bytes.size());
  if (!file)
    return file.takeError();
  std::string error;
  if (!(*file)->write(bytes.data(), bytes.size(), error))
    return makeError(error);
  return (*file)->close();
}

namespace {

class MemoryFile : public BundleFile {
public:
  explicit MemoryFile(MemoryBundle::Blob &blob) : BundleFile(blob.path), blob(blob) {}

private:
  llvm::Error put(const uint8_t *data, size_t bytes) override {
    blob.bytes.insert(blob.bytes.end(), data, data + bytes);
    return llvm::Error::success();
  }
  llvm::Error finish() override { return llvm::Error::success(); }

  MemoryBundle::Blob &blob;
};

} // namespace

llvm::Expected<std::unique_ptr<BundleFile>> MemoryBundle::create(llvm::StringRef path, uint64_t expectedBytes) {
  auto it = llvm::find_if(blobs, [&](const auto &blob) { return blob->path == path; });
  if (it == blobs.end())
    it = blobs.insert(it, std::make_unique<Blob>(Blob{path.str(), {}}));
  (*it)->bytes.clear();
  (*it)->bytes.reserve(expectedBytes);
  return std::make_unique<MemoryFile>(**it);
}

} // namespace batten
