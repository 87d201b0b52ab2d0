// Seeded damage to each kind of file that this room reads: whatever comes of it, it ends in a value or in an error text,
// in bounded time and without a crash. Meant to be run under the sanitizers.
#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/ModelConfig.h"
#include "compiler/spec/SentenceModules.h"
#include "compiler/spec/Spec.h"
#include "tests/SafetensorsWriter.h"
#include "tests/ErrorText.h"

#include <random>

using namespace batten;
using namespace batten::test;

namespace {

/// Pieces that parsers stumble over, spliced in besides random bytes.
constexpr std::string_view kPieces[] = {
    "{",       "}",       "[",    "]",  "\"",   ",",   ":",      "0", "-1", "1e400", "18446744073709551615",
    "\\u0000", "\\ud800", "null", "\n", "\xff", "'''", "\"\"\"", "=", ".",  "#",     "[["};

std::string mutated(std::string text, std::mt19937 &random, size_t from = 0) {
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    size_t span = text.size() - std::min(from, text.size());
    if (span == 0)
      return text;
    size_t at = from + random() % span;
    switch (random() % 6) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 1:
      text[at] = static_cast<char>(random());
      break;
    case 2:
      text.erase(at, 1 + random() % 16);
      break;
    case 3:
      text.insert(at, kPieces[random() % std::size(kPieces)]);
      break;
    case 4:
      text.insert(at, text.substr(from + random() % span, random() % 40));
      break;
    default:
      text.resize(at);
      break;
    }
  }
  return text;
}

template <typename Read> void sweep(const std::string &sound, int rounds, unsigned seed, Read read) {
  ASSERT_EQ(errorText(read(sound)), "(no error)");
  std::mt19937 random(seed);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string text = errorText(read(mutated(sound, random)));
    ASSERT_FALSE(text.empty()) << "round " << i << " of seed " << seed;
    ASSERT_LT(text.size(), 20000u) << "round " << i << " of seed " << seed;
    refused += text != "(no error)";
  }
  EXPECT_GT(refused, rounds / 10);
}

} // namespace

TEST(MutationTest, R53_Safetensors) {
  TempDir dir;
  SafetensorsWriter writer;
  writer.raw(R"("__metadata__":{"format":"pt"})").addF32("embeddings.word", {2, 3}, {1, 2, 3, 4, 5, 6});
  writer.add("empty", "F16", {0, 4}, "").add("ids", "I64", {1}, "12345678").add("b", "BF16", {2}, "abcd");
  sweep(writer.bytes(3), 5000, 1, [&](const std::string &bytes) -> llvm::Expected<int> {
    llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(dir.write("model.safetensors", bytes));
    if (!file)
      return file.takeError();
    for (const StoredTensor &tensor : file->tensors()) { // what opens must be readable to the last byte
      std::vector<uint8_t> out(tensor.bytes);
      if (llvm::Error error = file->read(tensor, 0, out.size(), out.data())) {
        ADD_FAILURE() << llvm::toString(std::move(error));
        return 0;
      }
    }
    return 0;
  });
}

TEST(MutationTest, R53_Index) {
  TempDir dir;
  dir.write("s1.safetensors", SafetensorsWriter().addF32("a", {1}, {1}).bytes());
  dir.write("s2.safetensors", SafetensorsWriter().addF32("b", {1}, {1}).bytes());
  sweep(R"({"metadata":{"total_size":8},"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})", 2500, 2,
        [&](const std::string &text) {
          dir.write("model.safetensors.index.json", text);
          return Checkpoint::open(dir.path());
        });
}

TEST(MutationTest, R53_Config) {
  unsigned seed = 3;
  for (const char *golden : {"bert-sequence-classification", "roberta", "distilbert", "albert"}) {
    std::string sound = readFile(std::string(BATTEN_TEST_DATA "/goldens/") + golden + "/config.json");
    sweep(sound, 6000, seed, [](const std::string &text) { return parseModelConfig(text, "config.json"); });
    seed += 100;
  }
}

TEST(MutationTest, R53_Modules) {
  TempDir dir;
  dir.write("2_Dense/config.json", R"({"in_features":32,"out_features":24})");
  dir.write("1_Pooling/config.json",
            R"({"embedding_dimension":32,"pooling_mode":["mean","cls"],"include_prompt":true})");
  sweep(readFile(BATTEN_TEST_DATA "/goldens/sentence-mean-sqrt-len-dense/modules.json"), 1500, 4,
        [&](const std::string &text) {
          dir.write("modules.json", text);
          return readSentenceModules(dir.path());
        });
  dir.write("modules.json", readFile(BATTEN_TEST_DATA "/goldens/sentence-mean-sqrt-len-dense/modules.json"));
  sweep(readFile(dir.path("1_Pooling/config.json")), 1500, 5, [&](const std::string &text) {
    dir.write("1_Pooling/config.json", text);
    return readSentenceModules(dir.path());
  });
}

TEST(MutationTest, R53_Toml) {
  std::string sound =
      "[model]\ngraph = \"g.mlir\"\ncheckpoint = 'm' # c\n\n[[lane]]\nname = \"embed\"\nid_count = 3\n\n"
      "[stage.text]\nbuckets = [ { tokens = 32, seqs = 8 }, { tokens = 64, seqs = 8, markers = 1 } ]\n\n"
      "[[target]]\ncpu = \"x86-64-v3\"\nmath = \"\"\"\\\n  f32\"\"\"\n";
  sweep(sound, 20000, 6, [](const std::string &text) { return parseSpec(text, "batten.toml"); });
}

TEST(MutationTest, R53_BucketTable) {
  sweep("stage tokens seqs markers\ntext 32 8 0\ntext 128 32 0 # c\nmark 64 8 16\n", 20000, 7,
        [](const std::string &text) { return parseBucketTable(text, "b.txt"); });
}
