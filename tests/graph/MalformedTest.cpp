// Each malformed golden that is refused before any pass: the error's last line holds all that malformed.json wants named.
// Faults that only weights against tensors show (resolve-weights, packer) are tested where the whole way is.
#include "tests/graph/GraphTestSupport.h"

using namespace batten;
using namespace batten::test;

using MalformedTest = GraphTest;

namespace {

struct Fault {
  const char *directory;
  std::vector<std::string> parts;
};

const Fault kFaults[] = {
    {"truncated-data", {"model.safetensors", "needs 13080 bytes", "has 12080"}},
    {"header-length-huge", {"model.safetensors", "header length 9223372036854775807", "file size 13080"}},
    {"overlapping-offsets",
     {"model.safetensors", "encoder.layer.0.attention.output.dense.weight", "embeddings.position_embeddings.weight",
      "[128, 1152)", "overlap"}},
    {"duplicate-tensor", {"model.safetensors", "encoder.layer.0.attention.self.query.weight", "duplicate"}},
    {"duplicate-config-key", {"config.json", "hidden_size", "duplicate"}},
    {"config-not-json", {"config.json", "line 1"}},
    {"config-no-hidden-size", {"config.json", "hidden_size"}},
    {"heads-do-not-divide", {"config.json", "hidden_size 16", "num_attention_heads 3"}},
    {"negative-layers", {"config.json", "num_hidden_layers", "-1"}},
    {"index-outside",
     {"model.safetensors.index.json", "embeddings.word_embeddings.weight", "../base/model.safetensors"}},
    {"missing-shard", {"model-00002-of-00002.safetensors", "11 tensors"}},
    {"empty-file", {"model.safetensors", "0 bytes"}},
    {"header-not-utf8", {"model.safetensors", "not UTF-8", "(byte 417)"}},
    {"offset-gap", {"model.safetensors", "bytes [9680, 9744)", "gap"}},
    {"no-weights", {"malformed/no-weights", "model.safetensors", "model.safetensors.index.json"}},
    {"unknown-activation", {"config.json", "hidden_act", "mish", "known: gelu"}},
    {"decoder", {"config.json", "is_decoder"}},
};

} // namespace

TEST_F(MalformedTest, R58_LastLinesNameWhatAGoodErrorNames) {
  for (const Fault &fault : kFaults) {
    std::string text = refusal(goldenPath(std::string("malformed/") + fault.directory));
    EXPECT_NE(text, "(no error)") << fault.directory;
    for (const std::string &part : fault.parts)
      EXPECT_NE(lastLine(text).find(part), std::string::npos) << fault.directory << " lacks '" << part << "': " << text;
  }
}

TEST_F(MalformedTest, R58_TheOthersImportForLaterChecks) {
  for (const char *directory : {"base", "integer-weight", "config-shape-mismatch", "missing-tensor", "nan-weight"}) {
    ImportedModel model = import(goldenPath(std::string("malformed/") + directory));
    EXPECT_TRUE(model.module) << directory;
  }
}
