// Every refusal of the header with file, tensors and numbers; every legal oddity opens; values are exact at any address.
#include "compiler/spec/Safetensors.h"
#include "tests/SafetensorsWriter.h"
#include "tests/ErrorText.h"

#include <sys/resource.h>

using namespace batten;
using namespace batten::test;

namespace {

std::string refusal(const std::string &bytes) {
  TempDir dir;
  std::string path = dir.write("model.safetensors", bytes);
  std::string text = errorText(SafetensorsFile::open(path));
  EXPECT_NE(text, "(no error)");
  EXPECT_NE(text.find("model.safetensors"), std::string::npos) << text;
  return text;
}

std::string entry(const std::string &name, const std::string &shape, uint64_t begin, uint64_t end,
                  const std::string &dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

} // namespace

TEST(SafetensorsTest, R1_MetadataOnlyOpens) {
  TempDir dir;
  std::string path = dir.write("m.safetensors", rawSafetensors(R"({"__metadata__":{"key":"value"}})", ""));
  llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->metadata().at("key"), "value");
  EXPECT_EQ(errorText(SafetensorsFile::open(dir.write("e.safetensors", rawSafetensors("{}", "")))), "(no error)");
}

TEST(SafetensorsTest, R1_ZeroSizeTensorsAnywhereOpen) {
  for (const char *shape : {"[0]", "[2,0]", "[0,4611686018427387904,4]"})
    for (uint64_t at : {0, 8, 12}) {
      TempDir dir;
      std::string header =
          "{" + entry("x", shape, at, at) + "," + entry("b", "[2]", 0, 8) + "," + entry("a", "[1]", 8, 12) + "}";
      llvm::Expected<SafetensorsFile> file =
          SafetensorsFile::open(dir.write("model.safetensors", rawSafetensors(header, std::string(12, 'v'))));
      ASSERT_TRUE(static_cast<bool>(file)) << shape << " at " << at << ": " << llvm::toString(file.takeError());
      EXPECT_EQ(file->find("x")->elements, 0);
      EXPECT_EQ(file->find("b")->elements, 2);
      EXPECT_EQ(file->find("nothing"), nullptr);
    }
}

TEST(SafetensorsTest, R1_HeaderOrderIsFree) {
  TempDir dir;
  SafetensorsWriter writer;
  writer.addF32("z", {2}, {1, 2}).addF32("m", {1}, {3}).addF32("a", {2, 1}, {4, 5}).add("s", "F32", {}, "abcd");
  for (bool reversed : {false, true}) {
    llvm::Expected<SafetensorsFile> file =
        SafetensorsFile::open(dir.write("model.safetensors", writer.bytes(0, reversed)));
    ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
    ASSERT_EQ(file->tensors().size(), 4u);
    EXPECT_EQ(file->tensors()[0].name, "a");
    float value[2];
    llvm::cantFail(file->read(*file->find("a"), 0, 8, reinterpret_cast<uint8_t *>(value)));
    EXPECT_EQ(value[0], 4.0f);
    llvm::cantFail(file->read(*file->find("a"), 4, 4, reinterpret_cast<uint8_t *>(value)));
    EXPECT_EQ(value[0], 5.0f);
    EXPECT_EQ(file->find("s")->elements, 1);
  }
}

TEST(SafetensorsTest, R3_AnyHeaderLengthModulo8GivesTheSameValues) {
  SafetensorsWriter writer;
  writer.add("pad", "U8", {3}, "abc").addF32("w", {3}, {0.1f, -2.5f, 1e-40f});
  for (size_t blanks = 0; blanks < 8; ++blanks) {
    TempDir dir;
    llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(dir.write("model.safetensors", writer.bytes(blanks)));
    ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
    std::vector<uint8_t> raw(13);
    llvm::cantFail(file->read(*file->find("w"), 0, 12, raw.data() + 1));
    float value[3];
    std::memcpy(value, raw.data() + 1, 12);
    EXPECT_EQ(value[0], 0.1f);
    EXPECT_EQ(value[1], -2.5f);
    EXPECT_EQ(value[2], 1e-40f);
    EXPECT_EQ(file->find("pad")->offset, 8 + writer.header().size() + blanks);
  }
}

TEST(SafetensorsTest, R2_RefusesHeaderLengthBeyondFile) {
  std::string header = "{" + entry("a", "[1]", 0, 4) + "}";
  size_t fileBytes = 8 + header.size() + 4;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (uint64_t length :
       {UINT64_MAX, uint64_t(1) << 63, uint64_t(INT64_MAX), uint64_t(1) << 30, uint64_t(fileBytes - 7)})
    expectParts(refusal(rawSafetensors(header, "abcd", &length)),
                {"header length " + std::to_string(length), "file size " + std::to_string(fileBytes)});
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KB more resident memory";
}

TEST(SafetensorsTest, R2_RefusesHeaderLengthBeyondLimit) {
  TempDir dir;
  std::string path = dir.path("model.safetensors");
  uint64_t length = kMostHeaderBytes + 1;
  dir.write("model.safetensors", rawSafetensors("{", "", &length));
  std::filesystem::resize_file(path, length + 100); // sparse
  expectParts(errorText(SafetensorsFile::open(path)), {path, "header length 16777217", "at most 16777216"});
}

TEST(SafetensorsTest, R2_RefusesFilesTooShortForALength) {
  for (size_t bytes : {0, 1, 7})
    expectParts(refusal(std::string(bytes, '\0')), {std::to_string(bytes) + " bytes"});
  expectParts(refusal(std::string(8, '\0')), {"0 bytes does not start with '{'"});
}

TEST(SafetensorsTest, R2_RefusesTextAfterTheObject) {
  expectParts(refusal(rawSafetensors(R"({},"__metadata__":{"key":"value"})", "")), {"invalid JSON", "(byte 10)"});
  expectParts(refusal(rawSafetensors("[]", "")), {"does not start with '{'"});
  expectParts(refusal(rawSafetensors(" {}", "")), {"does not start with '{'"});
  expectParts(refusal(rawSafetensors("{\"a\":", "")), {"invalid JSON"});
}

TEST(SafetensorsTest, R2_RefusesRepeatedNames) {
  expectParts(
      refusal(rawSafetensors("{" + entry("key00", "[1]", 0, 4) + "," + entry("key00", "[1]", 4, 8) + "}", "12345678")),
      {"duplicate", "\"key00\""});
  expectParts(
      refusal(rawSafetensors("{" + entry("key00", "[1]", 0, 4) + "," + entry("key00", "[1]", 0, 4) + "}", "1234")),
      {"duplicate", "\"key00\""});
}

TEST(SafetensorsTest, R2_RefusesGapsWithBothNeighbours) {
  expectParts(
      refusal(rawSafetensors("{" + entry("b", "[1]", 8, 12) + "," + entry("a", "[1]", 0, 4) + "}", "123456789012")),
      {"[4, 8)", "\"a\" [0, 4)", "\"b\" [8, 12)", "gap"});
  expectParts(refusal(rawSafetensors("{" + entry("a", "[1]", 4, 8) + "}", "12345678")),
              {"[0, 4)", "the start", "\"a\""});
}

TEST(SafetensorsTest, R2_RefusesOverlapsWithBothNames) {
  expectParts(refusal(rawSafetensors("{" + entry("a", "[1]", 0, 4) + "," + entry("b", "[1]", 2, 6) + "}", "123456")),
              {"\"a\" [0, 4)", "\"b\" [2, 6)", "overlap"});
  expectParts(refusal(rawSafetensors("{" + entry("a", "[2]", 0, 8) + "," + entry("z", "[0]", 4, 4) + "}", "12345678")),
              {"\"a\"", "\"z\"", "overlap"});
}

TEST(SafetensorsTest, R2_RefusesBytesAfterTheLastTensorAndCutFiles) {
  std::string header = "{" + entry("a", "[1]", 0, 4) + "," + entry("b", "[1]", 4, 8) + "}";
  std::string head = std::to_string(8 + header.size() + 8);
  expectParts(refusal(rawSafetensors(header, "123456789012")),
              {"4 bytes after the last tensor \"b\"", head + " bytes",
               "the file has " + std::to_string(8 + header.size() + 12)});
  expectParts(
      refusal(rawSafetensors(header, "12345")),
      {"the header needs " + head + " bytes", "the file has " + std::to_string(8 + header.size() + 5), "\"b\" [4, 8)"});
  expectParts(refusal(rawSafetensors("{}", "1")), {"1 bytes after the last tensor"});
}

TEST(SafetensorsTest, R2_RefusesByteCountsThatDisagreeWithTheShape) {
  expectParts(refusal(rawSafetensors("{" + entry("big", "[1000,1000]", 0, 4) + "}", "1234")),
              {"\"big\"", "[1000, 1000]", "4000000 bytes", "give 4"});
  expectParts(refusal(rawSafetensors("{" + entry("h", "[3]", 0, 4, "F16") + "}", "1234")), {"6 bytes", "give 4"});
  expectParts(refusal(rawSafetensors("{" + entry("h", "[3]", 0, 2, "F4") + "}", "12")), {"no whole number of bytes"});
}

TEST(SafetensorsTest, R2_SE01_RefusesSizesThatOverflow) {
  for (const char *shape : {"[4611686018427387904,4]", "[4294967296,4294967296]", "[8589934592,2147483648]",
                            "[9223372036854775807]", "[2305843009213693952]"})
    expectParts(refusal(rawSafetensors(std::string("{") + entry("w", shape, 0, 0) + "}", "")), {"\"w\"", "overflows"});
}

TEST(SafetensorsTest, R53_RefusesEntriesOfTheWrongForm) {
  for (const char *bad : {R"({"a":3})", R"({"a":[]})", R"({"a":{}})", R"({"a":{"dtype":"F32","shape":[1]}})",
                          R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})",
                          R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
                          R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
                          R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
                          R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
                          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
                          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
                          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})",
                          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e40]}})",
                          R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})"})
    expectParts(refusal(rawSafetensors(bad, "1234")), {"tensor \"a\""});
  expectParts(refusal(rawSafetensors(R"({"__metadata__":3})", "")), {"__metadata__"});
  expectParts(refusal(rawSafetensors(R"({"__metadata__":{"a":1}})", "")), {"__metadata__"});
}

TEST(SafetensorsTest, RefusesWhatIsNoFile) {
  TempDir dir;
  expectParts(errorText(SafetensorsFile::open(dir.path())), {"a directory"});
  expectParts(errorText(SafetensorsFile::open(dir.path("none"))), {"none", "No such file"});
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  expectParts(errorText(SafetensorsFile::open(dir.path("pipe"))), {"not a regular file"});
}

TEST(SafetensorsTest, AFileThatShrinksIsAnError) {
  TempDir dir;
  std::string path = dir.write("model.safetensors", SafetensorsWriter().addF32("w", {2}, {1, 2}).bytes());
  llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 6);
  uint8_t out[8];
  expectParts(errorText(file->read(*file->find("w"), 0, 8, out)), {path, "8 bytes wanted", "2 found"});
}
