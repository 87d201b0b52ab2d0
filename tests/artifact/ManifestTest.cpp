// The manifest's records against what was put in, and refusal of our own mistakes.
#include "compiler/artifact/ImageFile.h"
#include "compiler/artifact/Manifest.h"
#include "tests/ErrorText.h"

#include <map>

using namespace batten;
using namespace batten::test;

namespace {

Manifest sound() {
  Manifest m;
  m.producerVersion = "0.1.0";
  m.llvmVersion = "22.1";
  auto file = [&](const std::string &path, batten_file_kind kind, uint64_t headBytes = 0) {
    WrittenFile written;
    written.path = path;
    written.bytes = 8192;
    written.headBytes = headBytes;
    written.digest.fill(static_cast<uint8_t>(m.files.size() + 1));
    written.headDigest.fill(headBytes ? 0xAB : 0);
    m.files.push_back({written, kind});
    return static_cast<uint32_t>(m.files.size() - 1);
  };
  uint32_t common = file("packs/common.pack", BATTEN_FILE_PACK, 4096),
           panels = file("packs/panels32.pack", BATTEN_FILE_PACK, 4096);
  uint32_t image = file(imagePath("x86-64-v3"), BATTEN_FILE_IMAGE);
  m.targets.push_back({"x86-64-v3", BATTEN_ARCH_X86_64, BATTEN_ELEM_F32, BATTEN_ELEM_F32, image, common, panels,
                       BATTEN_X86_V3, 4096, 100});
  m.stages.push_back({"other", {{1, 1, 0}}, ""});
  m.stages.push_back({"text", {{32, 8, 0}, {64, 8, 0}}, ""});
  m.lanes.push_back({"embed", 1, {{"embedding", BATTEN_ROWS_SEQS, 24}}, BATTEN_INPUT_TOKEN_TYPES, 100, 2, 0, 512});
  m.lanes.push_back(
      {"encode", 0, {{"hidden", BATTEN_ROWS_TOKENS, 32}, {"pooled", BATTEN_ROWS_SEQS, 32}}, 0, 100, 0, 0, 0});
  for (auto [lane, bucket] : {std::pair(1u, 0u), std::pair(0u, 1u), std::pair(0u, 0u)}) // any order
    m.plans.push_back({lane, bucket, 0,
                       file(planPath("x86-64-v3", m.lanes[lane].name, m.stages[m.lanes[lane].stage].buckets[bucket]),
                            BATTEN_FILE_PLAN)});
  m.notes = {{"family", "bert"}, {"pooling", "mean"}, {"family2", "bert"}};
  m.selfTests.push_back({0, {1, 2, 3}, {0, 1, 3}, std::vector<uint32_t>{0, 0, 1}, {}});
  m.selfTests.push_back({1, {4}, {0, 1}, std::nullopt, {}});
  m.selfTests.push_back({1, {4, 5}, {0, 2}, std::nullopt, {}, {1, 0, 1}, {{0, 3}}, {{2}}});
  return m;
}

/// Sections of a file by kind.
std::map<uint32_t, batten_section_t> sectionsOf(const std::vector<uint8_t> &bytes) {
  batten_file_header_t header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::map<uint32_t, batten_section_t> sections;
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    batten_section_t section;
    std::memcpy(&section, bytes.data() + sizeof(header) + i * sizeof(section), sizeof(section));
    EXPECT_LE(section.offset + section.count * section.recordBytes, bytes.size());
    EXPECT_EQ(section.offset % 64, 0u);
    sections[section.kind] = section;
  }
  return sections;
}

template <typename T> std::vector<T> recordsOf(const std::vector<uint8_t> &bytes, uint32_t kind) {
  batten_section_t section = sectionsOf(bytes)[kind];
  std::vector<T> records(section.count);
  EXPECT_EQ(section.recordBytes, sizeof(T));
  std::memcpy(records.data(), bytes.data() + section.offset, records.size() * sizeof(T));
  return records;
}

} // namespace

TEST(ManifestTest, RecordsHoldWhatWasPutIn) {
  llvm::Expected<std::vector<uint8_t>> bytes = manifestBytes(sound());
  ASSERT_TRUE(static_cast<bool>(bytes)) << llvm::toString(bytes.takeError());
  uint64_t strings = sectionsOf(*bytes)[BATTEN_SECTION_STRINGS].offset;
  auto text = [&](batten_string_t s) {
    return std::string(bytes->begin() + strings + s.offset, bytes->begin() + strings + s.offset + s.bytes);
  };
  auto files = recordsOf<batten_file_t>(*bytes, BATTEN_SECTION_FILES);
  ASSERT_EQ(files.size(), 6u);
  EXPECT_EQ(text(files[0].path), "packs/common.pack");
  EXPECT_EQ(files[0].headBytes, 4096u);
  EXPECT_EQ(files[0].headDigest[0], 0xAB);
  EXPECT_EQ(files[2].headDigest[0], 0);
  EXPECT_EQ(text(files[3].path), "plans/x86-64-v3/encode-1x1x0.plan");
  EXPECT_EQ(files[5].digest[31], 6);
  auto plans = recordsOf<batten_plan_ref_t>(*bytes, BATTEN_SECTION_PLANS);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].lane, 0u);
  EXPECT_EQ(plans[0].bucket, 1u); // the first of stage text in BUCKETS
  EXPECT_EQ(plans[0].file, 5u);
  EXPECT_EQ(plans[1].bucket, 2u);
  EXPECT_EQ(plans[2].lane, 1u);
  EXPECT_EQ(plans[2].bucket, 0u);
  auto lanes = recordsOf<batten_lane_t>(*bytes, BATTEN_SECTION_LANES);
  EXPECT_EQ(lanes[1].firstOutput, 1u);
  EXPECT_EQ(lanes[1].outputCount, 2u);
  EXPECT_EQ(lanes[0].maxSeqTokens, 512u);
  auto outputs = recordsOf<batten_output_t>(*bytes, BATTEN_SECTION_OUTPUTS);
  EXPECT_EQ(text(outputs[2].name), "pooled");
  auto notes = recordsOf<batten_note_t>(*bytes, BATTEN_SECTION_NOTES);
  EXPECT_EQ(text(notes[1].key) + "=" + text(notes[1].value), "pooling=mean");
  EXPECT_EQ(notes[0].value.offset, notes[2].value.offset) << "equal strings are shared";
  auto tests = recordsOf<batten_self_test_t>(*bytes, BATTEN_SECTION_SELF_TESTS);
  auto words = recordsOf<uint32_t>(*bytes, BATTEN_SECTION_WORDS);
  ASSERT_EQ(tests.size(), 3u);
  EXPECT_EQ(tests[0].tokens, 3u);
  EXPECT_EQ(tests[0].seqs, 2u);
  EXPECT_EQ(words[tests[0].types + 2], 1u);
  EXPECT_EQ(words[tests[0].cuSeqlens + 2], 3u);
  EXPECT_EQ(tests[1].types, UINT32_MAX);
  EXPECT_EQ(words[tests[1].ids], 4u);
  EXPECT_EQ(tests[1].markers, 0u);
  for (uint32_t absent : {tests[1].markerPos, tests[1].cuMarkers, tests[1].seqTypes})
    EXPECT_EQ(absent, UINT32_MAX);
  EXPECT_EQ(tests[2].markers, 3u);
  EXPECT_EQ(words[tests[2].markerPos], 1u);
  EXPECT_EQ(words[tests[2].markerPos + 2], 1u);
  EXPECT_EQ(words[tests[2].cuMarkers + 1], 3u);
  EXPECT_EQ(words[tests[2].seqTypes], 2u);
}

TEST(ManifestTest, DigestCoversTheFileWithoutItself) {
  std::vector<uint8_t> bytes = llvm::cantFail(manifestBytes(sound()));
  batten_file_header_t header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  EXPECT_EQ(header.fileBytes, bytes.size());
  std::memset(bytes.data() + offsetof(batten_file_header_t, digest), 0, 32);
  EXPECT_EQ(std::memcmp(llvm::SHA256::hash(bytes).data(), header.digest, 32), 0);
}

TEST(ManifestTest, R48_SameInputsGiveTheSameBytes) {
  Manifest other = sound();
  std::swap(other.plans[0], other.plans[2]);
  EXPECT_EQ(llvm::cantFail(manifestBytes(sound())), llvm::cantFail(manifestBytes(other)));
}

TEST(ManifestTest, RefusesOurOwnMistakes) {
  auto refusal = [](void (*damage)(Manifest &)) {
    Manifest m = sound();
    damage(m);
    return errorText(manifestBytes(m));
  };
  expectParts(refusal([](Manifest &m) { m.plans.pop_back(); }), {"2 plans, 3 wanted"});
  expectParts(refusal([](Manifest &m) { m.plans[1] = m.plans[2]; }), {"two plans"});
  expectParts(refusal([](Manifest &m) { m.plans[0].file = 0; }), {"out of range"});
  expectParts(refusal([](Manifest &m) { m.plans[0].bucket = 7; }), {"out of range"});
  expectParts(refusal([](Manifest &m) { m.targets[0].image = 99; }), {"x86-64-v3"});
  expectParts(refusal([](Manifest &m) { m.targets[0].panelsPack = m.targets[0].commonPack; }), {"x86-64-v3"});
  expectParts(refusal([](Manifest &m) { m.lanes[0].stage = 2; }), {"\"embed\" has stage 2 of 2"});
  expectParts(refusal([](Manifest &m) { m.selfTests[0].lane = 2; }), {"self-test of lane 2"});
  expectParts(refusal([](Manifest &m) { m.selfTests[0].types->pop_back(); }), {"self-test"});
  expectParts(refusal([](Manifest &m) { m.selfTests[2].cuMarkers->pop_back(); }), {"self-test"});
  expectParts(refusal([](Manifest &m) { m.selfTests[2].cuMarkers.reset(); }), {"self-test"});
  expectParts(refusal([](Manifest &m) { m.selfTests[2].seqTypes->clear(); }), {"self-test"});
}

TEST(ImageFileTest, WritesElfAndRefusesTheRest) {
  std::vector<uint8_t> elf(8192, 0);
  std::memcpy(elf.data(),
              "\x7F"
              "ELF\2\1",
              6);
  MemoryBundle memory;
  llvm::Expected<WrittenFile> written = writeImage(memory, "x86-64-v4", elf, 4096, 4096);
  ASSERT_TRUE(static_cast<bool>(written)) << llvm::toString(written.takeError());
  EXPECT_EQ(written->path, "images/x86-64-v4.img");
  EXPECT_EQ(memory.take().front()->bytes, elf);
  expectParts(errorText(writeImage(memory, "t", elf, 4096, 4097)), {"images/t.img", "4097", "8192"});
  expectParts(errorText(writeImage(memory, "t", elf, 100, 1)), {"page-aligned"});
  expectParts(errorText(writeImage(memory, "t", elf, 4096, 0)), {"empty"});
  elf[4] = 1;
  expectParts(errorText(writeImage(memory, "t", elf, 4096, 10)), {"no 64-bit"});
}
