// Every malformed golden through the whole compile: refused, the last line names what malformed.json asks for, and the
// output path is untouched, whether it was absent or held a bundle.
#include "compiler/Compile.h"
#include "tests/TempDir.h"
#include "tests/golden/Cases.h"

#include "llvm/Support/JSON.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

std::vector<std::string> malformedDirectories() {
  std::vector<std::string> out;
  auto json = llvm::json::parse(readFile(goldenPath("malformed/malformed.json")));
  if (!json) {
    ADD_FAILURE() << llvm::toString(json.takeError());
    return out;
  }
  for (const llvm::json::Value &fault : *json->getAsObject()->getArray("faults"))
    out.push_back(fault.getAsObject()->getString("directory")->str());
  return out;
}

/// Phrases of `a_good_error_names` that stand in the error as they are; the others describe numbers and are covered by
/// tests of the reader that is at fault.
std::vector<std::string> phrases(const std::string &directory) {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"truncated-data", {"model.safetensors"}},
      {"header-length-huge", {"model.safetensors", "9223372036854775807"}},
      {"overlapping-offsets", {"model.safetensors", "overlap"}},
      {"integer-weight", {"model.safetensors", "encoder.layer.0.attention.self.query.weight", "I32", "F32", "BF16"}},
      {"config-shape-mismatch",
       {"intermediate_size", "encoder.layer.0.intermediate.dense.weight", "[24, 16] wanted", "[20, 16] found"}},
      {"missing-tensor", {"encoder.layer.0.output.dense.weight", "[16, 20]"}},
      {"duplicate-tensor", {"model.safetensors", "encoder.layer.0.attention.self.query.weight", "duplicate"}},
      {"duplicate-config-key", {"config.json", "hidden_size", "duplicate"}},
      {"nan-weight", {"encoder.layer.0.intermediate.dense.weight", "NaN", "row 0, column 7"}},
      {"config-not-json", {"config.json", "line 1"}},
      {"config-no-hidden-size", {"config.json", "hidden_size"}},
      {"heads-do-not-divide", {"config.json", "hidden_size 16", "num_attention_heads 3"}},
      {"negative-layers", {"config.json", "num_hidden_layers", "-1"}},
      {"index-outside",
       {"model.safetensors.index.json", "embeddings.word_embeddings.weight", "../base/model.safetensors"}},
      {"missing-shard", {"model-00002-of-00002.safetensors"}},
      {"empty-file", {"model.safetensors", "0 bytes"}},
      {"header-not-utf8", {"model.safetensors"}},
      {"offset-gap", {"model.safetensors"}},
      {"no-weights", {"no-weights", "model.safetensors", "model.safetensors.index.json"}},
      {"unknown-activation", {"config.json", "hidden_act", "mish", "gelu"}},
      {"decoder", {"config.json", "is_decoder"}},
  };
  auto found = words.find(directory);
  return found == words.end() ? std::vector<std::string>{} : found->second;
}

TEST(MalformedTest, TheSoundBaseCompiles) {
  TempDir dir;
  CompileRequest request;
  request.input = goldenPath("malformed/base");
  request.output = dir.path("base.batten");
  auto summary = compile(request);
  ASSERT_TRUE(bool(summary)) << llvm::toString(summary.takeError());
  EXPECT_TRUE(std::filesystem::exists(dir.path("base.batten/manifest.bin")));
}

TEST(MalformedTest, EveryFaultIsRefusedByItsNameAndLeavesTheOutputUntouched) {
  TempDir dir;
  CompileRequest good;
  good.input = goldenPath("malformed/base");
  good.output = dir.path("old.batten");
  ASSERT_TRUE(bool(compile(good)));
  std::string old = readFile(dir.path("old.batten/manifest.bin"));
  ASSERT_FALSE(old.empty());

  std::vector<std::string> faults = malformedDirectories();
  EXPECT_EQ(faults.size(), 21u);
  for (const std::string &fault : faults) {
    std::vector<std::string> wanted = phrases(fault);
    EXPECT_FALSE(wanted.empty()) << fault << " is new: say what its error names";
    for (std::string output : {"new.batten", "old.batten"}) {
      CompileRequest request;
      request.input = goldenPath("malformed/" + fault);
      request.output = dir.path(output);
      auto summary = compile(request);
      ASSERT_FALSE(bool(summary)) << fault << " was compiled";
      std::string text = llvm::toString(summary.takeError());
      for (const std::string &phrase : wanted)
        EXPECT_NE(lastLine(text).find(phrase), std::string::npos) << fault << ": no \"" << phrase << "\" in: " << text;
    }
    EXPECT_FALSE(std::filesystem::exists(dir.path("new.batten"))) << fault;
    EXPECT_EQ(readFile(dir.path("old.batten/manifest.bin")), old) << fault;
  }
  // Nothing temporary is left beside either.
  int entries = 0;
  for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(dir.path()))
    ++entries;
  EXPECT_LE(entries, 2);
}

} // namespace
