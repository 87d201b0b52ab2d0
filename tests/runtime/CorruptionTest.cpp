// Damaged bundles: cut, bits flipped, mutated at random. Raw damage has to be refused; damage under right digests has to be
// refused or to open, and then everything can be inspected. Nothing crashes, hangs, reads outside (a sanitizer sees that) or
// allocates more than the bundle is large.
//
// BATTEN_SEED and BATTEN_MUTATIONS change the random part.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

// The linker sends the runtime's allocations here (--wrap).
namespace {
std::atomic<uint64_t> allocatedBytes{0};
}
extern "C" {
void *__real_calloc(size_t, size_t);
void *__real_aligned_alloc(size_t, size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_calloc(size_t count, size_t size) {
  allocatedBytes += count * size;
  return __real_calloc(count, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  allocatedBytes += size;
  return __real_aligned_alloc(alignment, size);
}
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  allocatedBytes += length;
  return __real_mmap(address, length, protection, flags, fd, offset);
}
}

namespace batten::test {
namespace {

uint64_t environmentNumber(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

class CorruptionTest : public ::testing::Test {
protected:
  CorruptionTest() : intact_(serialize(modelSpec({{8, 4, 0}, {32, 8, 4}}))), sealer_(intact_), blobs_(intact_) {
    for (const auto &[path, bytes] : intact_)
      totalBytes_ += bytes.size();
    for (size_t i = 0; i < sealer_.fileCount(); ++i)
      data_.push_back(blobs_.data(sealer_.path(i)));
    manifest_ = blobs_.data("manifest.bin");
  }
  uint8_t *data(size_t file) { return file == Sealer::kManifest ? manifest_ : data_[file]; }
  const std::string path(size_t file) const { return file == Sealer::kManifest ? "manifest.bin" : sealer_.path(file); }
  void seal(size_t changed) {
    sealer_.seal(changed, [this](size_t file) { return data(file); });
  }
  /// All bytes as they were.
  void restore() {
    for (size_t i = 0; i < sealer_.fileCount(); ++i)
      std::memcpy(data_[i], intact_.at(sealer_.path(i)).data(), sealer_.bytes(i));
    std::memcpy(manifest_, intact_.at("manifest.bin").data(), sealer_.bytes(Sealer::kManifest));
  }
  void restore(size_t file) { std::memcpy(data(file), intact_.at(path(file)).data(), sealer_.bytes(file)); }

  /// Opens what is in the blobs. True where it opened; then all of it has been inspected. Fails the test where an error is
  /// empty or something was allocated that the bundle's size doesn't explain.
  bool open(batten_verify_level_t level) {
    batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
    options.level = level;
    batten_bundle_t *bundle = nullptr;
    allocatedBytes = 0;
    const batten_status_t status =
        batten_bundle_open_blobs(blobs_.list().data(), blobs_.list().size(), &options, &bundle, &error_);
    // The full level reads each file through a block; tables are a fixed part and a few times the records.
    EXPECT_LE(allocatedBytes.load(), 4 * totalBytes_ + 65536) << error_.message;
    if (status != BATTEN_OK) {
      EXPECT_TRUE(status == BATTEN_CORRUPT || status == BATTEN_VERSION || status == BATTEN_UNSUPPORTED ||
                  status == BATTEN_IO)
          << error_.message;
      EXPECT_NE(error_.where[0], '\0');
      EXPECT_NE(error_.message[0], '\0');
      return false;
    }
    sum_ += inspectAll(bundle);
    batten_bundle_release(bundle);
    return true;
  }

  Files intact_;
  Sealer sealer_;
  Blobs blobs_;
  std::vector<uint8_t *> data_;
  uint8_t *manifest_ = nullptr;
  uint64_t totalBytes_ = 0, sum_ = 0;
  batten_error_t error_;
};

TEST_F(CorruptionTest, IntactOpens) {
  EXPECT_TRUE(open(BATTEN_VERIFY_FULL)) << error_.message;
  for (size_t i = 0; i < sealer_.fileCount(); ++i) {
    seal(i);
    EXPECT_TRUE(open(BATTEN_VERIFY_FULL)) << error_.message;
    EXPECT_EQ(std::memcmp(data(i), intact_.at(path(i)).data(), sealer_.bytes(i)),
              0); // sealing what is right changes nothing
  }
}

TEST_F(CorruptionTest, EveryCutIsRefused) {
  for (const auto &[name, bytes] : intact_) {
    std::vector<size_t> cuts{0, 1, 7, 8, 9, 127, 128, bytes.size() - 1};
    for (size_t at = 4096; at < bytes.size(); at += 4096)
      cuts.push_back(at);
    for (const size_t cut : cuts) {
      // The bytes end where the allocation ends, so that a sanitizer sees the first byte that is read too far.
      std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (cut + 63) / 64 * 64 + 64), &std::free);
      uint8_t *start = static_cast<uint8_t *>(memory.get());
      std::memcpy(start, bytes.data(), cut);
      std::vector<batten_blob_t> list = blobs_.list();
      for (batten_blob_t &blob : list)
        if (name == blob.path)
          blob.data = start, blob.bytes = cut;
      batten_bundle_t *bundle = nullptr;
      const batten_status_t status = batten_bundle_open_blobs(list.data(), list.size(), nullptr, &bundle, &error_);
      EXPECT_EQ(status, BATTEN_CORRUPT) << name << " cut at " << cut << ": " << error_.message;
      EXPECT_STREQ(error_.where, name.c_str());
      EXPECT_EQ(error_.found, cut) << error_.message;
    }
  }
}

TEST_F(CorruptionTest, CutFilesOnDiskAreRefused) {
  TempDir root;
  for (const auto &[name, bytes] : intact_)
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{4096}}) {
      if (cut >= bytes.size())
        continue;
      Files files = intact_;
      files[name].resize(cut);
      writeFiles(files, root / "m.batten");
      batten_error_t error;
      EXPECT_FALSE(openDirectory(root / "m.batten", &error));
      EXPECT_EQ(error.status, BATTEN_CORRUPT) << name << " cut at " << cut << ": " << error.message;
      EXPECT_STREQ(error.where, name.c_str());
    }
}

TEST_F(CorruptionTest, EveryBitOfManifestPlansAndImageHeaderIsRefused) {
  for (size_t file = 0; file <= sealer_.fileCount(); ++file) {
    const size_t index = file == sealer_.fileCount() ? Sealer::kManifest : file;
    if (index != Sealer::kManifest && sealer_.record(index).kind == BATTEN_FILE_PACK)
      continue;
    const bool image = index != Sealer::kManifest && sealer_.record(index).kind == BATTEN_FILE_IMAGE;
    for (uint64_t bit = 0; bit < (image ? 128 : sealer_.bytes(index)) * 8; ++bit) {
      data(index)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      ASSERT_FALSE(open(BATTEN_VERIFY_STRUCTURE)) << path(index) << " bit " << bit;
      ASSERT_STREQ(error_.where, path(index).c_str()) << error_.message;
      data(index)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

TEST_F(CorruptionTest, EveryBitOfPackHeadsIsRefusedAndOfDataByTheFullLevel) {
  std::mt19937 random(1);
  for (size_t file = 0; file < 2; ++file) {
    for (uint64_t bit = 0; bit < sealer_.record(file).headBytes * 8; bit += bit < 8192 ? 1 : 61) {
      data(file)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      ASSERT_FALSE(open(BATTEN_VERIFY_STRUCTURE)) << path(file) << " bit " << bit;
      data(file)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
    for (int i = 0; i < 300; ++i) {
      const uint64_t at = random() % sealer_.bytes(file);
      data(file)[at] ^= static_cast<uint8_t>(1 << random() % 8);
      ASSERT_FALSE(open(BATTEN_VERIFY_FULL)) << path(file) << " byte " << at;
      restore(file);
    }
  }
}

TEST_F(CorruptionTest, EveryBitUnderRightDigestsOpensOrIsRefused) {
  uint64_t opened = 0, refused = 0;
  for (const size_t index : {Sealer::kManifest, size_t{3}, size_t{6}}) // manifest, a plan of each lane
    for (uint64_t bit = 0; bit < sealer_.bytes(index) * 8; ++bit) {
      data(index)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      seal(index);
      ++(open(BATTEN_VERIFY_STRUCTURE) ? opened : refused);
      restore(index);
      restore(Sealer::kManifest);
    }
  EXPECT_GT(opened, 100u); // names, flop counts
  EXPECT_GT(refused, opened);
  std::printf("resealed bits: %llu refused, %llu opened\n", static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(opened));
}

/// Changes some bytes as a careless or clever writer would.
void mutate(uint8_t *data, uint64_t bytes, std::mt19937_64 &random) {
  static constexpr uint64_t kValues[] = {0,          1,
                                         2,          3,
                                         31,         63,
                                         64,         65,
                                         127,        128,
                                         255,        4096,
                                         INT32_MAX,  uint64_t{1} << 31,
                                         UINT32_MAX, uint64_t{1} << 32,
                                         INT64_MAX,  uint64_t{1} << 63,
                                         UINT64_MAX, UINT64_MAX - 63};
  for (uint64_t count = 1 + random() % 3; count-- > 0;) {
    // Headers and section tables come first in a file and matter most.
    const uint64_t reach = random() % 4 == 0 && bytes > 512 ? 512 : bytes;
    uint64_t at = random() % reach, width = uint64_t{1} << random() % 4;
    if (random() % 4)
      at -= at % width;
    width = width < bytes - at ? width : bytes - at;
    uint64_t value = 0;
    std::memcpy(&value, data + at, width);
    switch (random() % 6) {
    case 0:
      value ^= uint64_t{1} << random() % 64;
      break;
    case 1:
      value = kValues[random() % (sizeof kValues / sizeof kValues[0])];
      break;
    case 2:
      value += random() % 17 - 8;
      break;
    case 3:
      value = random();
      break;
    case 4:
      value *= 2;
      break;
    default: // another place's bytes
      std::memcpy(&value, data + random() % (bytes - width + 1), width);
      break;
    }
    std::memcpy(data + at, &value, width);
  }
}

TEST_F(CorruptionTest, SeededMutations) {
  const uint64_t seed = environmentNumber("BATTEN_SEED", 20), count = environmentNumber("BATTEN_MUTATIONS", 200000);
  std::printf("seed %llu, %llu mutations\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count));
  std::mt19937_64 random(seed);
  uint64_t opened = 0, refused = 0, rawRefused = 0;
  double slowest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t pick = random() % 16;
    const size_t file = pick < 6    ? Sealer::kManifest
                        : pick < 13 ? 3 + random() % (sealer_.fileCount() - 3)
                                    : random() % 3;
    const bool raw = random() % 4 == 0;
    const bool pack = file < 2;
    // Weights may be anything: packs are changed in their heads.
    mutate(data(file), pack ? sealer_.record(file).headBytes : sealer_.bytes(file), random);
    const bool changed = std::memcmp(data(file), intact_.at(path(file)).data(), sealer_.bytes(file)) != 0;
    if (!raw)
      seal(file);
    const auto start = std::chrono::steady_clock::now();
    const bool isOpen = open(BATTEN_VERIFY_STRUCTURE);
    slowest = std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (raw) {
      ASSERT_EQ(isOpen, !changed) << "mutation " << i << " of " << path(file) << " with seed " << seed;
      ++rawRefused;
    } else {
      ++(isOpen ? opened : refused);
    }
    if (HasFailure())
      FAIL() << "mutation " << i << " of " << path(file) << " with seed " << seed;
    if (raw || file == Sealer::kManifest || file > 2)
      restore(file), restore(Sealer::kManifest);
    else
      restore();
  }
  EXPECT_LT(slowest, 2.0); // a machine's hiccup, not a loop
  std::printf("%llu raw refused; resealed: %llu refused, %llu opened; slowest open %.1f ms; sum %llu\n",
              static_cast<unsigned long long>(rawRefused), static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(opened), slowest * 1e3, static_cast<unsigned long long>(sum_));
  if (count >= 10000) {
    EXPECT_GT(opened, count / 200);
    EXPECT_GT(refused, count / 8);
  }
}

} // namespace
} // namespace batten::test
