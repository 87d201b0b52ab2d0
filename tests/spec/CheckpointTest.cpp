// Finding the files of a checkpoint: single, sharded, module directories, strays, links, and indexes that lie.
#include "compiler/spec/Checkpoint.h"
#include "tests/SafetensorsWriter.h"
#include "tests/ErrorText.h"

using namespace batten;
using namespace batten::test;

namespace {

std::string tensors(std::initializer_list<const char *> names) {
  SafetensorsWriter writer;
  for (const char *name : names)
    writer.addF32(name, {1, 2}, {1, 2});
  return writer.bytes();
}

std::string indexOf(const std::string &map) { return "{\"metadata\":{\"total_size\":1},\"weight_map\":" + map + "}"; }

constexpr const char *kIndexName = "model.safetensors.index.json";

} // namespace

TEST(CheckpointTest, OpensASingleFileByDirectoryOrByName) {
  TempDir dir;
  std::string file = dir.write("model.safetensors", tensors({"b", "a"}));
  for (const std::string &path : {dir.path(), dir.path() + "/", file}) {
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(static_cast<bool>(checkpoint)) << llvm::toString(checkpoint.takeError());
    ASSERT_EQ((*checkpoint)->tensors().size(), 2u);
    EXPECT_EQ((*checkpoint)->tensors()[0].stored->name, "a");
    EXPECT_EQ((*checkpoint)->pathOf((*checkpoint)->tensors()[0]), file);
    EXPECT_TRUE((*checkpoint)->notes().empty());
    EXPECT_EQ((*checkpoint)->lookup("", "c"), nullptr);
    EXPECT_EQ((*checkpoint)->lookup("2_Dense", "a"), nullptr);
  }
}

TEST(CheckpointTest, R7_IndexWinsAndStraysAreReported) {
  TempDir dir;
  dir.write("s1.safetensors", tensors({"a", "extra"}));
  dir.write("s2.safetensors", tensors({"b", "a"}));
  dir.write("model.safetensors", tensors({"a", "b", "c"}));
  dir.write(kIndexName, indexOf(R"({"a":"s1.safetensors","b":"s2.safetensors"})"));
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint)) << llvm::toString(checkpoint.takeError());
  ASSERT_EQ((*checkpoint)->tensors().size(), 2u);
  EXPECT_EQ((*checkpoint)->lookup("", "a")->file, "s1.safetensors");
  EXPECT_EQ((*checkpoint)->lookup("", "b")->file, "s2.safetensors");
  EXPECT_EQ((*checkpoint)->lookup("", "c"), nullptr);
  std::string notes;
  for (const std::string &note : (*checkpoint)->notes())
    notes += note + "\n";
  expectParts(notes, {"model.safetensors: not part of the checkpoint", "s1.safetensors: tensor \"extra\"",
                      "s2.safetensors: tensor \"a\""});
  EXPECT_EQ((*checkpoint)->notes().size(), 3u);
}

TEST(CheckpointTest, R7_ListsEveryMissingOrBrokenShard) {
  TempDir dir;
  dir.write("s1.safetensors", tensors({"a"}));
  dir.write("s3.safetensors", "");
  dir.write(kIndexName,
            indexOf(R"({"a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors","d":"s3.safetensors"})"));
  std::string text = errorText(Checkpoint::open(dir.path()));
  expectParts(text, {"s3.safetensors: 0 bytes"});
  expectParts(lastLine(text), {"s2.safetensors: no such file", "2 tensors", kIndexName});
}

TEST(CheckpointTest, R7_AStaleIndexIsNamedAsTheCause) {
  TempDir dir;
  dir.write("s1.safetensors", tensors({"a"}));
  dir.write(kIndexName, indexOf(R"({"a":"s1.safetensors","b":"s1.safetensors","c":"s1.safetensors"})"));
  expectParts(lastLine(errorText(Checkpoint::open(dir.path()))),
              {kIndexName, "stale index", "s1.safetensors lacks 2 of the 3 tensors", "\"b\", \"c\""});
}

TEST(CheckpointTest, R51_ShardNamesArePlainFileNames) {
  for (const char *name :
       {"../../etc/passwd", "/etc/passwd", "a/../b", "sub/s.safetensors", "a\\u0000b", "", ".", ".."}) {
    TempDir dir;
    dir.write("s1.safetensors", tensors({"a"}));
    dir.write(kIndexName, indexOf(R"({"a":"s1.safetensors","w":")" + std::string(name) + "\"}"));
    expectParts(errorText(Checkpoint::open(dir.path())), {kIndexName, "\"w\"", "no plain file name"});
  }
}

TEST(CheckpointTest, R51_LinksToFilesAreFollowed) {
  TempDir dir;
  dir.write("blobs/0123", tensors({"a"}));
  std::filesystem::create_directory(dir.path("snapshot"));
  std::filesystem::create_symlink("../blobs/0123", dir.path("snapshot/model.safetensors"));
  EXPECT_EQ(errorText(Checkpoint::open(dir.path("snapshot"))), "(no error)");
}

TEST(CheckpointTest, R53_IndexesOfTheWrongFormAreRefused) {
  for (const char *text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})",
                           R"({"weight_map":null})", R"({"weight_map":{"a":"s","a":"s"}})", "{\"weight_map\":"}) {
    TempDir dir;
    dir.write("model.safetensors", tensors({"a"}));
    dir.write(kIndexName, text);
    expectParts(errorText(Checkpoint::open(dir.path())), {kIndexName});
  }
}

TEST(CheckpointTest, R58_NothingToOpenNamesWhatWasTried) {
  TempDir dir;
  dir.write("pytorch_model.bin", "x");
  expectParts(errorText(Checkpoint::open(dir.path())),
              {dir.path(), "model.safetensors", kIndexName, "it has pytorch_model.bin"});
  expectParts(errorText(Checkpoint::open(dir.path("gone"))), {dir.path("gone"), "no such directory"});
  expectParts(errorText(Checkpoint::open(dir.path("gone.safetensors"))), {"gone.safetensors", "No such file"});
}

TEST(CheckpointTest, ModuleDirectoriesHaveFilesOfTheirOwn) {
  TempDir dir;
  dir.write("model.safetensors", tensors({"a"}));
  dir.write("2_Dense/model.safetensors", tensors({"linear.weight", "a"}));
  auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(opened));
  Checkpoint &checkpoint = **opened;
  EXPECT_EQ(errorText(checkpoint.addDirectory("2_Dense")), "(no error)");
  EXPECT_EQ(errorText(checkpoint.addDirectory("2_Dense")), "(no error)");
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.lookup("2_Dense", "a")->dir, "2_Dense");
  EXPECT_EQ(checkpoint.lookup("", "a")->dir, "");
  EXPECT_EQ(checkpoint.pathOf(*checkpoint.lookup("2_Dense", "linear.weight")), dir.path("2_Dense/model.safetensors"));
  for (const char *name : {"", "..", "a/b", "/etc"})
    if (*name)
      expectParts(errorText(checkpoint.addDirectory(name)), {"no plain name"});
  expectParts(errorText(checkpoint.addDirectory("3_Gone")), {"3_Gone", "no such directory"});
}

TEST(CheckpointTest, AnOlderEncoderDirectoryHoldsTheTensors) {
  TempDir dir;
  dir.write("0_Transformer/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(dir.path(), "0_Transformer");
  ASSERT_TRUE(static_cast<bool>(checkpoint)) << llvm::toString(checkpoint.takeError());
  EXPECT_NE((*checkpoint)->lookup("0_Transformer", "a"), nullptr);
  uint8_t out[4];
  EXPECT_EQ(errorText((*checkpoint)->read(*(*checkpoint)->lookup("0_Transformer", "a"), 4, 4, out)), "(no error)");
  EXPECT_EQ(out[3], 0x40); // 2.0f
}
