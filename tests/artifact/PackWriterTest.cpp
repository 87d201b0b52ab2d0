// Packs as bytes: head, records, values, digests; streamed in little memory; faults of weights named with their file.
#include "compiler/artifact/CheckpointSource.h"
#include "compiler/artifact/PackWriter.h"
#include "tests/ErrorText.h"
#include "tests/SafetensorsWriter.h"

#include <sys/resource.h>

using namespace batten;
using namespace batten::test;

namespace {

layout::PackEntry entry(const std::string &tensor, layout::Layout layout, int64_t rows, int64_t cols) {
  layout::PackEntry e;
  e.name = "packed." + tensor;
  e.layout = layout;
  e.rows = e.expr.rows = rows;
  e.cols = e.expr.cols = cols;
  e.expr.tensor = tensor;
  return e;
}

template <typename T> T recordAt(const std::vector<uint8_t> &bytes, uint64_t offset) {
  T record;
  EXPECT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(&record, bytes.data() + offset, sizeof(T));
  return record;
}

std::unique_ptr<Checkpoint> open(const std::string &path) { return llvm::cantFail(Checkpoint::open(path)); }

/// Swallows bytes.
class NullSink : public BundleSink {
  class File : public BundleFile {
  public:
    using BundleFile::BundleFile;
    llvm::Error put(const uint8_t *, size_t bytes) override {
      EXPECT_TRUE(bytes >= (1u << 20) || !std::exchange(last, true)) << "only the last block may be small";
      return llvm::Error::success();
    }
    llvm::Error finish() override { return llvm::Error::success(); }
    bool last = false;
  };

public:
  llvm::Expected<std::unique_ptr<BundleFile>> create(llvm::StringRef path, uint64_t) override {
    return std::make_unique<File>(path.str());
  }
};

void noProgress(uint64_t, uint64_t) {}

} // namespace

TEST(PackWriterTest, WritesWhatFormatHDraws) {
  TempDir dir;
  dir.write("model.safetensors", SafetensorsWriter()
                                     .addF32("a", {2, 3}, {1, 2, 3, 4, 5, 6})
                                     .add("b", "BF16", {2}, std::string("\x80\x3f\x00\xc0", 4))
                                     .bytes(5));
  std::unique_ptr<Checkpoint> checkpoint = open(dir.path());
  CheckpointSource source(*checkpoint);
  std::vector<layout::PackEntry> entries = {entry("b", layout::Layout::Vector, 1, 2),
                                            entry("a", layout::Layout::Table, 2, 3)};
  layout::PackLayout placed;
  std::string error;
  ASSERT_TRUE(layout::layoutPack(entries, placed, error)) << error;
  MemoryBundle memory;
  std::vector<uint64_t> progress;
  llvm::Expected<WrittenFile> written =
      writePack(memory, BATTEN_PACK_COMMON, entries, placed, source, [&](uint64_t done, uint64_t total) {
        progress.push_back(done);
        EXPECT_EQ(total, 192u);
      });
  ASSERT_TRUE(static_cast<bool>(written)) << llvm::toString(written.takeError());
  EXPECT_EQ(progress, (std::vector<uint64_t>{64, 192}));
  std::vector<std::unique_ptr<MemoryBundle::Blob>> blobs = memory.take();
  ASSERT_EQ(blobs.size(), 1u);
  const std::vector<uint8_t> &bytes = blobs[0]->bytes;
  EXPECT_EQ(blobs[0]->path, "packs/common.pack");
  EXPECT_EQ(bytes.size(), 4096u + 192);
  EXPECT_EQ(written->bytes, bytes.size());
  EXPECT_EQ(written->headBytes, 4096u);
  EXPECT_EQ(written->digest, llvm::SHA256::hash(bytes));
  EXPECT_EQ(written->headDigest, llvm::SHA256::hash(llvm::ArrayRef(bytes).take_front(4096)));

  auto header = recordAt<batten_file_header_t>(bytes, 0);
  EXPECT_EQ(std::memcmp(header.magic, BATTEN_MAGIC, 8), 0);
  EXPECT_EQ(header.kind, unsigned(BATTEN_FILE_PACK));
  EXPECT_EQ(header.fileBytes, bytes.size());
  ASSERT_EQ(header.sectionCount, 4u);
  std::vector<uint8_t> head(bytes.begin(), bytes.begin() + 4096);
  std::memset(head.data() + offsetof(batten_file_header_t, digest), 0, 32);
  EXPECT_EQ(std::memcmp(llvm::SHA256::hash(head).data(), header.digest, 32), 0);

  const uint32_t kinds[] = {BATTEN_SECTION_STRINGS, BATTEN_SECTION_PACK, BATTEN_SECTION_TENSORS, BATTEN_SECTION_DATA};
  batten_section_t sections[4];
  for (uint64_t i = 0; i < 4; ++i) {
    sections[i] = recordAt<batten_section_t>(bytes, 128 + 32 * i);
    EXPECT_EQ(sections[i].kind, kinds[i]);
    EXPECT_EQ(sections[i].offset % 64, 0u);
  }
  auto pack = recordAt<batten_pack_t>(bytes, sections[1].offset);
  EXPECT_EQ(pack.pack, unsigned(BATTEN_PACK_COMMON));
  EXPECT_EQ(pack.alignment, 64u);
  EXPECT_EQ(pack.dataOffset, 4096u);
  EXPECT_EQ(pack.dataBytes, 192u);
  auto tensor = recordAt<batten_tensor_t>(bytes, sections[2].offset + 40);
  EXPECT_EQ(std::string(bytes.begin() + sections[0].offset + tensor.name.offset,
                        bytes.begin() + sections[0].offset + tensor.name.offset + tensor.name.bytes),
            "packed.a");
  EXPECT_EQ(tensor.rows, 2u);
  EXPECT_EQ(tensor.cols, 3u);
  EXPECT_EQ(tensor.offset, 4096u + 64);
  EXPECT_EQ(tensor.bytes, 128u);
  EXPECT_EQ(recordAt<float>(bytes, 4096), 1.0f);
  EXPECT_EQ(recordAt<float>(bytes, 4100), -2.0f);
  EXPECT_EQ(recordAt<float>(bytes, 4104), 0.0f);
  for (uint64_t i = 0; i < 6; ++i)
    EXPECT_EQ(recordAt<float>(bytes, tensor.offset + 4 * i), static_cast<float>(i + 1));
  EXPECT_EQ(recordAt<float>(bytes, tensor.offset + 24), 0.0f);
}

TEST(PackWriterTest, R39_PeakMemoryStaysSmall) {
  TempDir dir;
  constexpr int64_t kRows = 16384, kCols = 4096; // 256 MiB of zeros, sparse
  std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[16384,4096],\"data_offsets\":[0,268435456]}}";
  std::string path = dir.write("model.safetensors", rawSafetensors(header, ""));
  std::filesystem::resize_file(path, 8 + header.size() + kRows * kCols * 4);
  std::unique_ptr<Checkpoint> checkpoint = open(dir.path());
  CheckpointSource source(*checkpoint);
  std::vector<layout::PackEntry> entries = {entry("w", layout::Layout::Panels, kRows, kCols)};
  layout::PackLayout placed;
  std::string error;
  ASSERT_TRUE(layout::layoutPack(entries, placed, error)) << error;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  NullSink sink;
  llvm::Expected<WrittenFile> written = writePack(sink, BATTEN_PACK_PANELS, entries, placed, source, noProgress);
  ASSERT_TRUE(static_cast<bool>(written)) << llvm::toString(written.takeError());
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(written->bytes, 4096u + kRows * kCols * 4);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KB more resident memory for 256 MiB of weights";
}

TEST(PackWriterTest, R8_R58_FaultsNameFileTensorAndPlace) {
  auto refusal = [](const std::string &directory, const std::string &tensor, int64_t rows, int64_t cols) {
    std::unique_ptr<Checkpoint> checkpoint = open(std::string(BATTEN_TEST_DATA "/goldens/") + directory);
    CheckpointSource source(*checkpoint);
    std::vector<layout::PackEntry> entries = {entry(tensor, layout::Layout::Panels, rows, cols)};
    layout::PackLayout placed;
    std::string error;
    EXPECT_TRUE(layout::layoutPack(entries, placed, error)) << error;
    MemoryBundle memory;
    return errorText(writePack(memory, BATTEN_PACK_PANELS, entries, placed, source, noProgress));
  };
  const std::string up = "encoder.layer.0.intermediate.dense.weight",
                    query = "encoder.layer.0.attention.self.query.weight";
  expectParts(lastLine(refusal("malformed/nan-weight", up, 20, 16)),
              {"model.safetensors", up, "NaN", "row 0, column 7"});
  expectParts(lastLine(refusal("malformed/integer-weight", query, 16, 16)),
              {"model.safetensors", query, "I32", "the types that are read: F32, F16, BF16"});
  expectParts(refusal("malformed/base", up, 24, 16),
              {"model.safetensors", up, "[24, 16] wanted", "320 elements found"});
  expectParts(refusal("malformed/base", "gone", 1, 1), {"malformed/base", "\"gone\" is missing"});
}

TEST(PackWriterTest, R5_PositionIdsNeverChangeThePack) {
  TempDir with, without;
  SafetensorsWriter plain, extra;
  extra.add("embeddings.position_ids", "I64", {1, 2}, std::string(16, '\1'));
  for (SafetensorsWriter *writer : {&plain, &extra})
    writer->addF32("w", {2, 2}, {1, 2, 3, 4});
  with.write("model.safetensors", extra.bytes(3));
  without.write("model.safetensors", plain.bytes());
  std::vector<std::vector<uint8_t>> packs;
  for (const TempDir *dir : {&with, &without}) {
    std::unique_ptr<Checkpoint> checkpoint = open(dir->path());
    CheckpointSource source(*checkpoint);
    std::vector<layout::PackEntry> entries = {entry("w", layout::Layout::Panels, 2, 2)};
    layout::PackLayout placed;
    std::string error;
    ASSERT_TRUE(layout::layoutPack(entries, placed, error));
    MemoryBundle memory;
    ASSERT_TRUE(static_cast<bool>(writePack(memory, BATTEN_PACK_PANELS, entries, placed, source, noProgress)));
    packs.push_back(memory.take().front()->bytes);
  }
  EXPECT_EQ(packs[0], packs[1]);
}
