// batten.toml and the bucket table: every error with file, line and column; sorting, defaults, the writer.
#include "compiler/spec/Spec.h"
#include "tests/ErrorText.h"

#include <pthread.h>

using namespace batten;
using namespace batten::test;

namespace {

constexpr const char *kSound = R"([model]
graph = "graph.mlir"
checkpoint = "model.safetensors"     # or a directory

[[lane]]
name = "embed"
graph = "@embed"
stage = "text"

[stage.text]
buckets = [ { tokens = 512, seqs = 128, markers = 0 }, { tokens = 32, seqs = 8 }, { tokens = 128, seqs = 32 } ]

[[target]]
cpu = "x86-64-v4"
weights = "f32"
math = "f32"
)";

std::string replaced(const std::string &from, const std::string &to) {
  std::string text = kSound;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string &text) { return errorText(parseSpec(text, "dir/batten.toml")); }

} // namespace

TEST(SpecTest, ReadsTheDesignsExample) {
  llvm::Expected<Spec> spec = parseSpec(kSound, "dir/batten.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  EXPECT_EQ(spec->graph, "dir/graph.mlir");
  EXPECT_EQ(spec->checkpoint, "dir/model.safetensors");
  ASSERT_EQ(spec->lanes.size(), 1u);
  EXPECT_EQ(spec->lanes[0].name, "embed");
  EXPECT_EQ(spec->lanes[0].graph, "embed");
  EXPECT_EQ(spec->lanes[0].stage, "text");
  EXPECT_EQ(spec->lanes[0].place, "dir/batten.toml:5:1");
  ASSERT_EQ(spec->stages.size(), 1u);
  EXPECT_EQ(spec->stages[0].buckets, (std::vector<Bucket>{{32, 8, 0}, {128, 32, 0}, {512, 128, 0}}));
  ASSERT_EQ(spec->targets.size(), 1u);
  EXPECT_EQ(spec->targets[0].cpu, "x86-64-v4");
}

TEST(SpecTest, AbsolutePathsStayAndGraphAndStageHaveDefaults) {
  llvm::Expected<Spec> spec = parseSpec("[model]\ngraph=\"/g.mlir\"\ncheckpoint=\"/m\"\n[[lane]]\nname=\"a\"\n"
                                        "[stage.only]\nbuckets=[{tokens=1,seqs=1}]\n",
                                        "batten.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  EXPECT_EQ(spec->graph, "/g.mlir");
  EXPECT_EQ(spec->lanes[0].graph, "a");
  EXPECT_EQ(spec->lanes[0].stage, "only");
  EXPECT_TRUE(spec->targets.empty());
}

TEST(SpecTest, R60_UnknownKeysHavePlaceAndNearName) {
  EXPECT_EQ(refusal(replaced("buckets =", "bucktes =")),
            "dir/batten.toml:11:1: unknown key \"bucktes\" in [stage.text]; did you mean 'buckets'? (known: buckets)");
  expectParts(refusal(replaced("graph = \"graph", "grpah = \"graph")), {"dir/batten.toml:2:1", "\"grpah\"", "'graph'"});
  expectParts(refusal(replaced("[[target]]", "[[taregt]]")), {"dir/batten.toml:13:", "\"taregt\"", "'target'"});
  expectParts(refusal(replaced("seqs = 8", "sequences = 8")),
              {"dir/batten.toml:11:", "\"sequences\"", "known: tokens, seqs"});
  expectParts(refusal(replaced("cpu =", "gpu =")), {"dir/batten.toml:14:1", "\"gpu\"", "'cpu'"});
  expectParts(refusal(replaced("name =", "zzzzzzzz = 1\nname =")), {"\"zzzzzzzz\" in [[lane]] (known"});
}

TEST(SpecTest, R60_WrongTypesAndMissingTablesHaveTheirPlace) {
  expectParts(refusal(replaced("\"graph.mlir\"", "3")), {"dir/batten.toml:2:9", "a string"});
  expectParts(refusal(replaced("\"graph.mlir\"", "\"\"")), {"dir/batten.toml:2:9"});
  expectParts(refusal(replaced("tokens = 32", "tokens = \"32\"")), {"dir/batten.toml:11:", "an integer wanted"});
  expectParts(refusal(replaced("tokens = 32", "tokens = 32.0")), {"an integer wanted"});
  expectParts(refusal(replaced("[stage.text]\nbuckets", "[stage]\ntext")), {"stage.text", "a table wanted"});
  expectParts(refusal(replaced("[[lane]]", "[lane]")), {"[[lane]]", "dir/batten.toml:5"});
  expectParts(refusal(replaced("[[target]]", "[target]")), {"[[target]]"});
  expectParts(refusal("[model]\ngraph='g'\ncheckpoint='c'\n"), {"no [stage.NAME]"});
  expectParts(refusal("[model]\ngraph='g'\ncheckpoint='c'\n[stage.a]\nbuckets=[{tokens=1,seqs=1}]"), {"no [[lane]]"});
  expectParts(refusal(""), {"no [model]"});
  expectParts(refusal(replaced("checkpoint =", "# ")), {"no \"checkpoint\""});
  expectParts(refusal("[model\n"), {"dir/batten.toml:1:7: "});
  expectParts(refusal("a = 1\na = 2\n"), {"dir/batten.toml:2:"});
}

TEST(SpecTest, StagesAndBucketsAreChecked) {
  expectParts(refusal(replaced("{ tokens = 32, seqs = 8 }", "{ tokens = 128, seqs = 32, markers = 0 }")),
              {"dir/batten.toml:11:", "128 x 32 x 0", "twice", "first at dir/batten.toml:11:"});
  expectParts(refusal(replaced("[ { tokens = 512", "[] # { tokens = 512")),
              {"dir/batten.toml:10:", "\"text\" has no buckets"});
  for (const char *count : {"0", "-1", "1073741825", "9223372036854775807"})
    expectParts(refusal(replaced("tokens = 32", std::string("tokens = ") + count)),
                {"dir/batten.toml:11:", "tokens is " + std::string(count), "within [1, 1073741824]"});
  expectParts(refusal(replaced("markers = 0", "markers = -1")), {"markers is -1", "within [0"});
  expectParts(refusal(replaced("tokens = 32, ", "")), {"a bucket without \"tokens\""});
  expectParts(refusal(replaced("stage = \"text\"", "stage = \"txet\"")),
              {"dir/batten.toml:8:", "no stage \"txet\"", "'text'"});
  expectParts(refusal(std::string(kSound) + "[stage.other]\nbuckets = [{tokens=1,seqs=1}]\n"),
              {"\"other\" is used by no lane"});
  expectParts(refusal(replaced("[stage.text]", "[stage.\"te/xt\"]")), {"stage \"te/xt\"", "dir/batten.toml:10:"});
}

TEST(SpecTest, LanesAndTargetsAreChecked) {
  std::string lane = "[[lane]]\nname = \"embed\"\nstage = \"text\"\n";
  expectParts(refusal(std::string(kSound) + lane), {"lane \"embed\" is there twice", "first at dir/batten.toml:5:1"});
  expectParts(refusal(replaced("name = \"embed\"", "name = \"../x\"")), {"lane \"../x\""});
  expectParts(refusal(replaced("\"@embed\"", "\"embed\"")), {"dir/batten.toml:7:", "a symbol"});
  expectParts(refusal(replaced("math = \"f32\"", "math = \"int8\"")),
              {"dir/batten.toml:16:8", "math \"int8\" is unknown, \"f32\", \"bf16\" or \"i8\" wanted"});
  expectParts(refusal(std::string(kSound) + "[[target]]\ncpu = \"x86-64-v4\"\n"),
              {"target \"x86-64-v4\" is there twice"});
}

TEST(SpecTest, AGateIsReadAndPrinted) {
  llvm::Expected<Spec> spec =
      parseSpec(std::string(kSound) + "[gate]\nbatch = [\"a.safetensors\", \"/b.safetensors\"]\n"
                                      "lane = \"embed\"\nmax_abs = 1e-3\nmin_cosine = 1\nmargin = 0.25\n",
                "dir/batten.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  const GateSpec &gate = spec->gate;
  EXPECT_EQ(gate.batches, (std::vector<std::string>{"dir/a.safetensors", "/b.safetensors"}));
  EXPECT_EQ(gate.lane, "embed");
  EXPECT_EQ(gate.place, "dir/batten.toml:17:1");
  EXPECT_EQ(gate.maxAbs, 1e-3);
  EXPECT_EQ(gate.minCosine, 1);
  EXPECT_EQ(gate.margin, 0.25);
  EXPECT_FALSE(gate.maxMean || gate.maxRel || gate.minArgmax);
  std::string text = printSpec(*spec);
  EXPECT_TRUE(llvm::StringRef(text).ends_with(
      "\n[gate]\nbatch = [\"dir/a.safetensors\", \"/b.safetensors\"]\nlane = \"embed\"\n"
      "max_abs = 0.001\nmin_cosine = 1\nmargin = 0.25\n"))
      << text;
  llvm::Expected<Spec> again = parseSpec(text, "batten.toml");
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(printSpec(*again), text);
}

TEST(SpecTest, AGateWithoutKeysIsStillAGate) {
  llvm::Expected<Spec> spec = parseSpec(std::string(kSound) + "[gate]\n", "b.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  EXPECT_TRUE(spec->gate.isGiven());
  spec = parseSpec(kSound, "b.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  EXPECT_FALSE(spec->gate.isGiven());
}

TEST(SpecTest, GatesAreChecked) {
  auto gate = [](const std::string &text) { return refusal(kSound + ("[gate]\n" + text + "\n")); };
  expectParts(gate("max_apart = 1"), {"dir/batten.toml:18:1: unknown key \"max_apart\" in [gate]", "min_cosine"});
  expectParts(gate("min_cosin = 1"), {"'min_cosine'"});
  expectParts(gate("min_cosine = 1.01"), {"dir/batten.toml:18:14: [gate].min_cosine: a number from 0 to 1 wanted"});
  for (const char *value : {"-1", "nan", "inf", "\"1\"", "true"})
    expectParts(gate(std::string("max_abs = ") + value),
                {"dir/batten.toml:18:11: [gate].max_abs: a number from 0 on wanted"});
  expectParts(gate("batch = 3"), {"dir/batten.toml:18:9: [gate].batch: a path"});
  expectParts(gate("batch = [\"a\", \"\"]"), {"dir/batten.toml:18:15: [gate].batch: a path"});
  expectParts(gate("batch = []"), {"[gate].batch: at least one"});
  expectParts(gate("lane = \"embde\""), {"dir/batten.toml:18:8: no lane \"embde\"", "'embed'"});
  expectParts(refusal("gate = 1\n" + std::string(kSound)), {"dir/batten.toml:1:8: gate: a table wanted"});
}

TEST(SpecTest, OptionsOverrideAGate) {
  GateSpec spec, options;
  spec.batches = {"a"};
  spec.maxAbs = 1;
  spec.minCosine = 0.5;
  options.maxAbs = 2;
  options.minArgmax = 0.9;
  options.batches = {"b", "c"};
  GateSpec merged = spec.overriddenBy(options);
  EXPECT_EQ(merged.batches, options.batches);
  EXPECT_EQ(merged.maxAbs, 2);
  EXPECT_EQ(merged.minCosine, 0.5);
  EXPECT_EQ(merged.minArgmax, 0.9);
  EXPECT_FALSE(merged.maxMean);
}

TEST(SpecTest, AssertedLimitsAreChecked) {
  llvm::Expected<Spec> spec =
      parseSpec(replaced("stage = \"text\"", "stage = \"text\"\nid_count = 30522\nmax_seq_tokens = 512"), "b.toml");
  ASSERT_TRUE(static_cast<bool>(spec)) << llvm::toString(spec.takeError());
  EXPECT_EQ(errorText(checkLimits(spec->lanes[0], 30522, 2, 0, 512)), "(no error)");
  EXPECT_EQ(errorText(checkLimits(spec->lanes[0], 30520, 2, 0, 512)),
            "b.toml:5:1: lane \"embed\" asserts id_count = 30522, the model has 30520 rows of the embedding table");
  expectParts(errorText(checkLimits(spec->lanes[0], 30522, 2, 0, 510)), {"max_seq_tokens = 512", "510"});
  expectParts(refusal(replaced("stage = \"text\"", "stage = \"text\"\ntype_count = -2")), {"type_count is -2"});
}

TEST(SpecTest, SE08_SizeAndDepthAreBoundedBeforeTheParserOnASmallStack) {
  static const std::string texts[] = {
      "a = " + std::string(300, '['),
      "a = " + std::string(100000, '['),
      "a = " + std::string(300, '{'),
      [] {
        std::string s = "a";
        for (int i = 0; i < 10000; ++i)
          s += ".a";
        return s + " = 1";
      }(),
      [] {
        std::string s = "[a";
        for (int i = 0; i < 10000; ++i)
          s += ".a";
        return s + "]";
      }(),
      "a = \"" + std::string(2 << 20, 'x') + "\"",
      std::string(1 << 20, 'x'),
      std::string(1 << 20, '#'),
      "a = '" + std::string(1000, '[') + "\nb = " + std::string(1000, '['),
      "a = \"\\\"" + std::string(1000, '[') + "\nb = " + std::string(1000, '['),
      "a = '''" + std::string(100, '\n') + "'''\nb = " + std::string(1000, '['),
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  pthread_attr_setstacksize(&attributes, 4 << 20);
#else
  pthread_attr_setstacksize(&attributes, 512 << 10);
#endif
  pthread_t thread;
  auto body = [](void *) -> void * {
    for (const std::string &text : texts)
      expectParts(errorText(parseSpec(text, "b.toml")), {"b.toml"});
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  expectParts(errorText(parseSpec(texts[0], "b.toml")), {"b.toml:1:21: nesting beyond 16 levels"});
  expectParts(errorText(parseSpec(texts[10], "b.toml")), {"b.toml:102:21: nesting"});
  expectParts(errorText(parseSpec(texts[3], "b.toml")), {"b.toml:1:", "a dotted key beyond 16 levels"});
  expectParts(errorText(parseSpec(texts[5], "b.toml")), {"at most 1048576"});
}

TEST(SpecTest, R53_NonAsciiIsForStringsAndComments) {
  expectParts(refusal("caf\xc3\xa9 = 1\n"), {"dir/batten.toml:1:4: ", "ASCII"});
  expectParts(refusal(replaced("[model]", "[model]\xc2\xa0")), {"dir/batten.toml:1:8: ", "ASCII"});
  expectParts(refusal("a = \"\"\"\\\n\xc3\xa9\"\"\"\n"), {"dir/batten.toml:1:5: ", "backslash"});
  expectParts(refusal("[ =]\n"), {"dir/batten.toml:1:"});
  EXPECT_EQ(refusal("\xef\xbb\xbf" + replaced("\"graph.mlir\"", "\"mod\xc3\xa8le\" # \xf0\x9f\x90\x8e")), "(no error)");
}

TEST(BucketTableTest, ReadsFourColumns) {
  auto stages = parseBucketTable(
      "# buckets\nstage tokens seqs markers\n\ntext 128 32 0 # c\n text\t32 8 0\r\nmark 64 8 16\n", "b.txt");
  ASSERT_TRUE(static_cast<bool>(stages)) << llvm::toString(stages.takeError());
  ASSERT_EQ(stages->size(), 2u);
  EXPECT_EQ((*stages)[0].name, "text");
  EXPECT_EQ((*stages)[0].buckets, (std::vector<Bucket>{{32, 8, 0}, {128, 32, 0}}));
  EXPECT_EQ((*stages)[1].buckets, (std::vector<Bucket>{{64, 8, 16}}));
}

TEST(BucketTableTest, RefusesWithLineAndColumn) {
  auto refusal = [](const char *text) { return errorText(parseBucketTable(text, "b.txt")); };
  expectParts(refusal("text 1 1 0\ntext 1 1 0\n"), {"b.txt:2:1", "1 x 1 x 0", "twice", "b.txt:1:1"});
  expectParts(refusal("text 32 8\n"), {"b.txt:1:1: 3 columns, four wanted"});
  expectParts(refusal("\n  text 32 x8 0\n"), {"b.txt:2:11: \"x8\" found"});
  expectParts(refusal("text 0 8 0\n"), {"b.txt:1:1: tokens is 0"});
  expectParts(refusal("text 99999999999999999999 8 0\n"), {"b.txt:1:6"});
  expectParts(refusal("te/xt 1 8 0\n"), {"b.txt:1:1: stage \"te/xt\""});
  expectParts(refusal("# none\n"), {"b.txt: no buckets"});
  expectParts(refusal("text 1 1 0\nstage tokens seqs markers\n"), {"b.txt:2:7"});
}

TEST(SpecTest, PrecisionFollowsFromWhatIsWritten) {
  auto chosen = [](const char *weights, const char *math) {
    llvm::Expected<Precision> precision = choosePrecision(weights, math);
    return precision ? precision->weights + "/" + precision->math : llvm::toString(precision.takeError());
  };
  EXPECT_EQ(chosen("", ""), "f32/f32");
  EXPECT_EQ(chosen("bf16", ""), "bf16/f32");
  EXPECT_EQ(chosen("f16", "f32"), "f16/f32");
  EXPECT_EQ(chosen("", "bf16"), "bf16/bf16");
  EXPECT_EQ(chosen("i8", ""), "i8/i8");
  EXPECT_EQ(chosen("", "i8"), "i8/i8");
  EXPECT_EQ(chosen("f32", "i8"), "math \"i8\" does not take weights \"f32\", \"i8\" wanted");
  EXPECT_EQ(chosen("", "f16"), "math \"f16\" is unknown, \"f32\", \"bf16\" or \"i8\" wanted");
  EXPECT_EQ(chosen("i4", ""), "weights \"i4\" is unknown, \"f32\", \"f16\", \"bf16\" or \"i8\" wanted");
}

TEST(SpecTest, DefaultStageHoldsALongestSequence) {
  for (int64_t positions : {0, 16, 512, 2048, 2049, 8192}) {
    StageSpec stage = defaultStage(positions);
    EXPECT_EQ(stage.name, "text");
    EXPECT_EQ(stage.buckets.front(), (Bucket{32, 8, 0}));
    EXPECT_TRUE(std::is_sorted(stage.buckets.begin(), stage.buckets.end()));
    EXPECT_GE(stage.buckets.back().tokens, std::max<int64_t>(positions, 2048));
    EXPECT_EQ(stage.buckets.size(), positions > 2048 ? 5u : 4u);
  }
}

TEST(SpecTest, WhatIsPrintedReadsBackTheSame) {
  Spec spec;
  spec.graph = "graph.mlir";
  spec.checkpoint = "/models/with \"quotes\" and \\ and \x01";
  spec.stages = {defaultStage(512)};
  spec.lanes.push_back({"embed", "embed", "text", {}, {}, {}, {}, ""});
  spec.lanes.push_back({"encode", "encode", "text", {}, {}, {}, {}, ""});
  llvm::Expected<Spec> back = parseSpec(printSpec(spec), "batten.toml");
  ASSERT_TRUE(static_cast<bool>(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(back->graph, spec.graph);
  EXPECT_EQ(back->checkpoint, spec.checkpoint);
  ASSERT_EQ(back->lanes.size(), 2u);
  EXPECT_EQ(back->lanes[1].name, "encode");
  EXPECT_EQ(back->lanes[1].graph, "encode");
  EXPECT_EQ(back->stages[0].buckets, spec.stages[0].buckets);
}
