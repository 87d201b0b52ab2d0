// The reader on its own (headers, section tables, strings), SHA-256, partitions, CPU quotas: logic without a bundle.
#include "BundleBuilder.h"
#include "OsLinux.h"
#include "Partition.h"
#include "Reader.h"
#include "Sha256.h"
#include "Cpu.h"
#include "Pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

namespace batten::test {
namespace {

using namespace rt;

// ---- reader ----

FileBytes smallFile() {
  FileWriter writer(BATTEN_FILE_MANIFEST);
  writer.add(BATTEN_SECTION_STRINGS, 1, "h\xc3\xa9llo", 6);
  const batten_bucket_t buckets[] = {{1, 2, 3, 0}, {4, 5, 6, 0}};
  writer.add(BATTEN_SECTION_BUCKETS, sizeof(batten_bucket_t), buckets, 2);
  return writer.finish();
}

batten_error_t readerError(const FileBytes &file, uint32_t kind = BATTEN_FILE_MANIFEST) {
  batten_error_t error;
  clearError(error);
  FileView view;
  (void)view.open(file.data(), file.size(), kind, Report(error, textOf("f")));
  return error;
}

template <typename T> FileBytes with(size_t offset, T value) {
  FileBytes file = smallFile();
  std::memcpy(file.data() + offset, &value, sizeof value);
  return file;
}

TEST(ReaderTest, ReadsRecordsAndText) {
  const FileBytes file = smallFile();
  batten_error_t error;
  FileView view;
  const Report report(error, textOf("f"));
  ASSERT_EQ(view.open(file.data(), file.size(), BATTEN_FILE_MANIFEST, report), BATTEN_OK);
  EXPECT_EQ(view.checkDigest(file.size(), false, report), BATTEN_OK);
  EXPECT_EQ(view.records<batten_bucket_t>(BATTEN_SECTION_BUCKETS).count, 2u);
  EXPECT_EQ(view.records<batten_bucket_t>(BATTEN_SECTION_BUCKETS).at(1).seqs, 5u);
  EXPECT_EQ(view.records<batten_lane_t>(BATTEN_SECTION_LANES).count, 0u);
  Text text;
  EXPECT_TRUE(view.text({0, 6}, &text));
  EXPECT_TRUE(view.text({6, 0}, &text));
  EXPECT_FALSE(view.text({0, 7}, &text));
  EXPECT_FALSE(view.text({7, 0}, &text));
  EXPECT_FALSE(view.text({UINT32_MAX, 2}, &text));
  EXPECT_FALSE(view.text({1, 1}, &text)); // half a character
  EXPECT_FALSE(view.text({2, 1}, &text));
  EXPECT_TRUE(view.text({1, 2}, &text));
}

TEST(ReaderTest, RefusesHeaders) {
  using H = batten_file_header_t;
  EXPECT_EQ(readerError(smallFile()).status, BATTEN_OK);
  for (size_t bytes : {0, 1, 7, 8, 9, 127, 128, 191}) {
    FileBytes file = smallFile();
    file.resize(bytes);
    EXPECT_EQ(readerError(file).status, BATTEN_CORRUPT) << bytes;
  }
  EXPECT_EQ(readerError(with<uint8_t>(3, 'X')).status, BATTEN_CORRUPT);
  EXPECT_EQ(readerError(smallFile(), BATTEN_FILE_PLAN).found, uint64_t{BATTEN_FILE_MANIFEST});
  const batten_error_t major = readerError(with<uint16_t>(offsetof(H, major), 2));
  EXPECT_EQ(major.status, BATTEN_VERSION);
  EXPECT_EQ(major.found, 2u);
  EXPECT_EQ(major.limit, 1u);
  const batten_error_t feature = readerError(with<uint64_t>(offsetof(H, neededFeatures), 4));
  EXPECT_EQ(feature.status, BATTEN_VERSION);
  EXPECT_EQ(feature.found, 4u);
  EXPECT_EQ(readerError(with<uint64_t>(offsetof(H, fileBytes), 1)).limit, 1u);
  EXPECT_EQ(readerError(with<uint32_t>(offsetof(H, headerBytes), 64)).found, 64u);
  EXPECT_EQ(readerError(with<uint32_t>(offsetof(H, sectionCount), 257)).limit, 256u);
  EXPECT_EQ(readerError(with<uint32_t>(offsetof(H, sectionCount), 200)).status, BATTEN_CORRUPT);
  EXPECT_EQ(readerError(with<uint8_t>(offsetof(H, reserved) + 50, 1)).status, BATTEN_CORRUPT);
}

TEST(ReaderTest, RefusesSectionTables) {
  using S = batten_section_t;
  constexpr size_t kStrings = 128, kBuckets = 160;
  struct Bend {
    FileBytes file;
    const char *section;
  };
  const Bend bends[] = {
      {with<uint64_t>(kBuckets + offsetof(S, offset), 200), "BUCKETS"},              // unaligned
      {with<uint64_t>(kBuckets + offsetof(S, offset), 192), "BUCKETS"},              // on the strings
      {with<uint64_t>(kStrings + offsetof(S, offset), 128), "STRINGS"},              // on the table
      {with<uint64_t>(kBuckets + offsetof(S, offset), UINT64_MAX - 63), "BUCKETS"},  // past, and wraps
      {with<uint64_t>(kBuckets + offsetof(S, count), 3), "BUCKETS"},                 // a record too many
      {with<uint64_t>(kBuckets + offsetof(S, count), uint64_t{1} << 61), "BUCKETS"}, // size wraps
      {with<uint32_t>(kBuckets + offsetof(S, recordBytes), 0), "BUCKETS"},
      {with<uint32_t>(kBuckets + offsetof(S, recordBytes), 12), "BUCKETS"},          // shorter than a record
      {with<uint32_t>(kStrings + offsetof(S, recordBytes), 2), "STRINGS"},           // strings are bytes
      {with<uint32_t>(kBuckets + offsetof(S, kind), BATTEN_SECTION_STEPS), "STEPS"}, // not of this file
      {with<uint32_t>(kBuckets + offsetof(S, kind), BATTEN_SECTION_STRINGS), "STRINGS"},
      {with<uint64_t>(kBuckets + offsetof(S, reserved), 1), "BUCKETS"},
      {with<uint8_t>(200, 1), "BUCKETS"}, // between the sections
  };
  for (const Bend &bend : bends) {
    const batten_error_t error = readerError(bend.file);
    EXPECT_EQ(error.status, BATTEN_CORRUPT);
    EXPECT_STREQ(error.section, bend.section) << error.message;
  }
  FileBytes longer = smallFile();
  longer.resize(longer.size() + 64);
  const uint64_t bytes = longer.size();
  std::memcpy(longer.data() + offsetof(batten_file_header_t, fileBytes), &bytes, 8);
  EXPECT_EQ(readerError(longer).status, BATTEN_CORRUPT);
  EXPECT_EQ(readerError(with<uint32_t>(kBuckets + offsetof(S, kind), 63)).status, BATTEN_OK); // unknown: ignored
  EXPECT_EQ(readerError(with<uint32_t>(kBuckets + offsetof(S, kind), 5000)).status, BATTEN_OK);
}

TEST(ReaderTest, SectionTwice) {
  FileWriter writer(BATTEN_FILE_MANIFEST);
  writer.add(BATTEN_SECTION_STRINGS, 1, "a", 1);
  writer.add(BATTEN_SECTION_STRINGS, 1, "b", 1);
  EXPECT_EQ(readerError(writer.finish()).status, BATTEN_CORRUPT);
}

TEST(ReaderTest, RecordsMayBeLongerAndAtAnyStride) {
  FileWriter writer(BATTEN_FILE_MANIFEST);
  uint8_t records[2 * 21] = {};
  const batten_bucket_t bucket = {7, 8, 9, 0};
  std::memcpy(records + 21, &bucket, sizeof bucket);
  writer.add(BATTEN_SECTION_BUCKETS, 21, records, 2);
  const FileBytes file = writer.finish();
  batten_error_t error;
  FileView view;
  ASSERT_EQ(view.open(file.data(), file.size(), BATTEN_FILE_MANIFEST, Report(error, textOf("f"))), BATTEN_OK)
      << error.message;
  EXPECT_EQ(view.records<batten_bucket_t>(BATTEN_SECTION_BUCKETS).at(1).markers, 9u);
}

TEST(ReaderTest, RefusesBadUtf8) {
  for (const char *bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff"}) {
    FileWriter writer(BATTEN_FILE_MANIFEST);
    writer.add(BATTEN_SECTION_STRINGS, 1, bad, std::strlen(bad));
    const FileBytes file = writer.finish();
    batten_error_t error;
    FileView view;
    ASSERT_EQ(view.open(file.data(), file.size(), BATTEN_FILE_MANIFEST, Report(error, textOf("f"))), BATTEN_OK);
    Text text;
    EXPECT_FALSE(view.text({0, static_cast<uint32_t>(std::strlen(bad))}, &text));
  }
  FileWriter writer(BATTEN_FILE_MANIFEST);
  const char good[] = "a\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
  writer.add(BATTEN_SECTION_STRINGS, 1, good, sizeof good);
  const FileBytes file = writer.finish();
  batten_error_t error;
  FileView view;
  ASSERT_EQ(view.open(file.data(), file.size(), BATTEN_FILE_MANIFEST, Report(error, textOf("f"))), BATTEN_OK);
  Text text;
  EXPECT_TRUE(view.text({0, sizeof good - 1}, &text));
  EXPECT_FALSE(view.text({0, sizeof good}, &text)); // NUL
}

TEST(ReaderTest, MessagesAreCutNotOverrun) {
  batten_error_t error;
  const std::string longName(600, 'n'), longText(600, 't');
  (void)Report(error, textOf(longName.c_str()))
      .fail(BATTEN_CORRUPT, "A_SECTION_NAME_THAT_IS_LONGER_THAN_THE_FIELD", 1, 2, 3, "%s", longText.c_str());
  EXPECT_EQ(std::strlen(error.where), sizeof error.where - 1);
  EXPECT_EQ(std::strlen(error.section), sizeof error.section - 1);
  EXPECT_EQ(std::strlen(error.message), sizeof error.message - 1);
}

TEST(ReaderTest, TensorSizes) {
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_TABLE, BATTEN_ELEM_F32, 3, 20), 320u); // (2*20 + 32) * 4 = 288
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_VECTOR, BATTEN_ELEM_F32, 1, 17), 128u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_PANELS, BATTEN_ELEM_F16, 33, 3), 64u * 3 * 2);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_TABLE, BATTEN_ELEM_F32, 262144, 8960), uint64_t{262144} * 8960 * 4);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_TABLE, BATTEN_ELEM_F32, UINT32_MAX, UINT32_MAX), 0u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_VECTOR, BATTEN_ELEM_F32, 2, 16), 0u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_BF16, 33, 3), 2u * 2 * 128);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_I8, 33, 5), 2u * (2 + 2) * 128);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_I8, 32, 4 * 96 + 1), (97u + 4) * 128);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_F32, 33, 5), 0u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_F16, 33, 5), 0u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_DOT_PANELS, BATTEN_ELEM_I8, UINT32_MAX, UINT32_MAX), 0u);
  EXPECT_EQ(tensorBytes(BATTEN_LAYOUT_TABLE, 0, 2, 16), 0u);
  EXPECT_EQ(tensorBytes(0, BATTEN_ELEM_F32, 2, 16), 0u);
  EXPECT_EQ(rowStrideBytes(384, BATTEN_ELEM_F32), 1536u);
  EXPECT_EQ(rowStrideBytes(1024, BATTEN_ELEM_F32), 4160u);
  EXPECT_EQ(rowStrideBytes(2, BATTEN_ELEM_F32), 64u);
  EXPECT_EQ(rowStrideBytes(50, BATTEN_ELEM_I8), 64u);
}

// ---- SHA-256 ----

std::string hex(const uint8_t *digest) {
  std::string text;
  for (int i = 0; i < 32; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", digest[i]);
    text += byte;
  }
  return text;
}

class Sha256Test : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    if (GetParam() && !CpuInfo::detect().hasSha)
      GTEST_SKIP() << "this CPU has no SHA instructions";
  }
};

TEST_P(Sha256Test, StandardVectors) {
  const std::pair<std::string, const char *> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
       "u",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto &[text, wanted] : vectors) {
    uint8_t digest[32];
    sha256(text.data(), text.size(), GetParam(), digest);
    EXPECT_EQ(hex(digest), wanted) << text.size();
  }
}

TEST_P(Sha256Test, AnySplitGivesTheSameDigest) {
  std::vector<uint8_t> data(300);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * 37);
  for (size_t length : {55, 56, 57, 63, 64, 65, 119, 120, 128, 300}) {
    uint8_t whole[32], portable[32];
    sha256(data.data(), length, GetParam(), whole);
    sha256(data.data(), length, false, portable);
    EXPECT_EQ(hex(whole), hex(portable)) << length;
    for (size_t cut = 0; cut <= length; cut += 13) {
      Sha256 hash(GetParam());
      hash.update(data.data(), cut);
      hash.update(data.data() + cut, length - cut);
      uint8_t digest[32];
      hash.finish(digest);
      EXPECT_EQ(hex(digest), hex(whole)) << length << " cut at " << cut;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PortableAndAccelerated, Sha256Test, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Accelerated" : "Portable"; });

// ---- partition ----

/// Shares must be contiguous, in order and cover [0, units).
template <typename Cut> void expectCovers(uint32_t units, uint32_t workers, Cut cut) {
  uint32_t before = 0;
  EXPECT_EQ(cut(0u), 0u);
  for (uint32_t w = 1; w <= workers; ++w) {
    EXPECT_GE(cut(w), before);
    before = cut(w);
  }
  EXPECT_EQ(before, units);
}

TEST(PartitionTest, EveryDomainIsCoveredOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const uint32_t workers = 1 + random() % 9, rows = random() % 700;
    auto upTo = [&](uint32_t most) { return static_cast<uint32_t>(1 + random() % most); };
    const WorkShape shape{BATTEN_DOMAIN_PANELS, 0, upTo(40), upTo(200), upTo(16)};
    expectCovers(static_cast<uint32_t>(ceilDiv(rows, shape.slabRows)) * shape.panels, workers,
                 [&](uint32_t w) { return cutPanels(rows, shape, w, workers); });
    expectCovers(rows, workers, [&](uint32_t w) { return cutRows(rows, w, workers); });
    expectCovers(1, workers, [&](uint32_t w) { return cutOne(w); });
    const uint32_t seqs = random() % 20;
    std::vector<uint32_t> tasks{0};
    std::vector<uint64_t> cost{0};
    for (uint32_t s = 0; s < seqs; ++s) {
      const uint64_t length = random() % 3 ? random() % 100 : random() % 5000;
      tasks.push_back(tasks.back() + static_cast<uint32_t>(ceilDiv(length, 64)));
      cost.push_back(cost.back() + length * length);
    }
    expectCovers(shape.heads * tasks.back(), workers,
                 [&](uint32_t w) { return cutTasks(tasks.data(), cost.data(), seqs, shape.heads, w, workers); });
  }
}

TEST(PartitionTest, LargestSequencesDoNotOverflow) {
  const uint32_t tasks[] = {0, 1u << 25, (1u << 25) + 1};
  const uint64_t length = INT32_MAX, cost[] = {0, length * length, length * length + 1};
  expectCovers(12 * ((1u << 25) + 1), 64, [&](uint32_t w) { return cutTasks(tasks, cost, 2, 12, w, 64); });
}

TEST(PartitionTest, TasksAreCutByCostNotByCount) {
  // One sequence of 640 keys and 64 of 10: by count of tasks (10 and 64 a head) a half would be 37 tasks, all short ones on
  // one side. By cost nearly all is in the long sequence, so the cut lies inside it.
  std::vector<uint32_t> tasks{0};
  std::vector<uint64_t> cost{0};
  for (int s = 0; s < 65; ++s) {
    const uint64_t length = s == 0 ? 640 : 10;
    tasks.push_back(tasks.back() + static_cast<uint32_t>(ceilDiv(length, 64)));
    cost.push_back(cost.back() + length * length);
  }
  const uint32_t cut = cutTasks(tasks.data(), cost.data(), 65, 4, 1, 2);
  EXPECT_GE(cut, 18u);
  EXPECT_LE(cut, 22u); // of the long sequence's 40 units
}

TEST(PartitionTest, TasksOfAWindowAreCutByCount) {
  // As many tasks in one long sequence as in 10 short ones. Each sees its window only, so that the cut lies between them.
  std::vector<uint32_t> tasks{0};
  std::vector<uint64_t> cost{0};
  for (int s = 0; s < 11; ++s) {
    const uint64_t length = s == 0 ? 640 : 64;
    tasks.push_back(tasks.back() + static_cast<uint32_t>(ceilDiv(length, 64)));
    cost.push_back(cost.back() + length * length);
  }
  batten_kernel_batch_t batch = {};
  batch.rows[BATTEN_ROWS_SEQS] = 11;
  batch.taskStart = tasks.data();
  WorkShape shape{BATTEN_DOMAIN_TASKS, BATTEN_ROWS_TOKENS, 0, 0, 4, true};
  for (uint32_t worker : {0u, 1u}) {
    const UnitRange units = partition(shape, batch, cost.data(), worker, 2);
    EXPECT_EQ(units.first, worker * 40);
    EXPECT_EQ(units.last, worker * 40 + 40);
  }
  shape.windowed = false;
  EXPECT_LT(partition(shape, batch, cost.data(), 0, 2).last, 40u);
  batch.rows[BATTEN_ROWS_SEQS] = 0;
  shape.windowed = true;
  EXPECT_EQ(partition(shape, batch, cost.data(), 0, 2).last, 0u);
}

TEST(PartitionTest, SharesOfOneStepAreBalanced) {
  const WorkShape shape{BATTEN_DOMAIN_PANELS, 0, 36, 168, 0};
  for (uint32_t workers : {2u, 3u, 4u})
    for (uint32_t w = 0; w < workers; ++w) {
      const uint32_t share = cutPanels(128, shape, w + 1, workers) - cutPanels(128, shape, w, workers);
      EXPECT_EQ(share, 36 / workers);
    }
}

// ---- CPU quotas ----

class QuotaTest : public ::testing::Test {
protected:
  void put(const std::string &path, const std::string &text) {
    const std::filesystem::path full = root_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  uint32_t quota() const { return os::quotaCpus(root_.path().c_str()); }
  TempDir root_;
};

TEST_F(QuotaTest, VersionTwo) {
  put("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(quota(), 0u); // no file
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0u);
  put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
  put("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2u);
  put("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(quota(), 1u);
}

TEST_F(QuotaTest, AParentsQuotaBindsItsChildren) {
  put("proc/self/cgroup", "0::/kube/pod/box\n");
  put("sys/fs/cgroup/kube/pod/box/cpu.max", "800000 100000\n");
  put("sys/fs/cgroup/kube/pod/cpu.max", "300000 100000\n");
  put("sys/fs/cgroup/kube/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 3u);
}

TEST_F(QuotaTest, VersionOne) {
  put("proc/self/cgroup", "12:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:cpuset:/docker/x\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0u);
  put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota(), 3u);
}

TEST_F(QuotaTest, VersionOneSeenFromInsideTheContainer) {
  put("proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n"); // the path is the host's, the mount shows the group as its root
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 4u);
}

TEST_F(QuotaTest, HybridTakesTheSmaller) {
  put("proc/self/cgroup", "4:cpu:/a\n0::/b\n");
  put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n");
  put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/unified/b/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(QuotaTest, NonsenseIsNoQuota) {
  for (const char *text : {"", "\n", "0::", "::::", "0::/\n0::/", "x", "4:cpu", "4:cpu:"}) {
    put("proc/self/cgroup", text);
    EXPECT_EQ(quota(), 0u) << text;
  }
  put("proc/self/cgroup", "0::/\n");
  for (const char *text : {"", "200000", "200000 0", "99999999999999999999999 1", "-5 100000", "abc def"}) {
    put("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota(), 0u) << text;
  }
  put("proc/self/cgroup", std::string(20000, 'x') + "\n0::/");
  EXPECT_EQ(quota(), 0u);
}

TEST(DefaultThreadsTest, SmallerOfMaskAndQuota) {
  EXPECT_EQ(os::defaultThreads(12, 2), 2u);
  EXPECT_EQ(os::defaultThreads(2, 12), 2u);
  EXPECT_EQ(os::defaultThreads(12, 0), 12u);
  EXPECT_EQ(os::defaultThreads(0, 0), 1u);
  EXPECT_GE(batten_default_threads(), 1u);
  EXPECT_LE(batten_default_threads(), os::allowedCpus());
}

} // namespace
} // namespace batten::test
