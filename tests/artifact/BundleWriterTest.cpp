// A bundle directory appears as a whole or not at all: replaced atomically, by many at once, after a kill, without rights
// or room; nothing is left behind and nothing that is no bundle is replaced.
#include "compiler/artifact/BundleWriter.h"
#include "tests/ErrorText.h"

#include "batten/format.h"

#include "llvm/ADT/StringExtras.h"

#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace batten;
using namespace batten::test;

namespace {

llvm::Error put(BundleSink &sink, const std::string &path, const std::string &bytes) {
  return writeBundleFile(sink, path, llvm::arrayRefFromStringRef(bytes)).takeError();
}

/// Writes a bundle of three files that all say `text`, and a manifest with the magic.
llvm::Error writeBundle(const std::string &output, const std::string &text) {
  llvm::Expected<std::unique_ptr<BundleWriter>> writer = BundleWriter::begin(output);
  if (!writer)
    return writer.takeError();
  for (const char *path : {"packs/common.pack", "plans/x86-64-v3/embed-1x1x0.plan", "images/x86-64-v3.img"})
    if (llvm::Error error = put(**writer, path, text))
      return error;
  if (llvm::Error error = put(**writer, "manifest.bin", std::string(BATTEN_MAGIC) + text))
    return error;
  return (*writer)->commit();
}

/// What all four files of an open bundle say; "" where one is missing, "torn" where they differ.
std::string readBundle(int directory) {
  std::string common;
  for (const char *path :
       {"manifest.bin", "packs/common.pack", "plans/x86-64-v3/embed-1x1x0.plan", "images/x86-64-v3.img"}) {
    int fd = ::openat(directory, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return "";
    char buffer[64];
    ssize_t got = ::read(fd, buffer, sizeof(buffer));
    ::close(fd);
    std::string text(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (text.rfind(BATTEN_MAGIC, 0) == 0)
      text = text.substr(8);
    if (!common.empty() && text != common)
      return "torn";
    common = text;
  }
  return common;
}

std::string readBundle(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::string text = fd < 0 ? "" : readBundle(fd);
  ::close(fd);
  return text;
}

std::vector<std::string> listing(const std::string &path) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

/// Runs body in a child process; gives its wait status.
template <typename Body> int inChild(Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST(BundleWriterTest, R47_AppearsAsAWholeAndReplacesTheOldOne) {
  TempDir dir;
  std::string output = dir.path("m.batten");
  {
    auto writer = BundleWriter::begin(output);
    ASSERT_TRUE(static_cast<bool>(writer)) << llvm::toString(writer.takeError());
    EXPECT_EQ(errorText(put(**writer, "packs/common.pack", "x")), "(no error)");
    EXPECT_FALSE(std::filesystem::exists(output));
    EXPECT_EQ(readFile((*writer)->stagingPath() + "/packs/common.pack"), "x");
  } // not committed
  EXPECT_EQ(listing(dir.path()), Names{});
  EXPECT_EQ(errorText(writeBundle(output, "one")), "(no error)");
  EXPECT_EQ(readBundle(output), "one");
  EXPECT_EQ(errorText(writeBundle(output + "/", "two")), "(no error)");
  EXPECT_EQ(readBundle(output), "two");
  EXPECT_EQ(listing(dir.path()), Names{"m.batten"});
  EXPECT_EQ(listing(output), (Names{"images", "manifest.bin", "packs", "plans"}));
}

TEST(BundleWriterTest, ModesDoNotFollowTheUmask) {
  TempDir dir;
  for (mode_t mask : {0, 0077, 0777}) {
    std::string output = dir.path("m" + std::to_string(mask) + ".batten");
    mode_t old = ::umask(mask);
    std::string text = errorText(writeBundle(output, "x"));
    ::umask(old);
    ASSERT_EQ(text, "(no error)");
    for (const auto &entry : std::filesystem::recursive_directory_iterator(output))
      EXPECT_EQ(static_cast<int>(entry.status().permissions()), entry.is_directory() ? 0755 : 0644) << entry.path();
    EXPECT_EQ(static_cast<int>(std::filesystem::status(output).permissions()), 0755);
  }
}

TEST(BundleWriterTest, RefusesToReplaceWhatIsNoBundle) {
  TempDir dir;
  dir.write("data/precious.txt", "keep");
  dir.write("fake/manifest.bin", "not a bundle at all");
  dir.write("file", "keep");
  std::filesystem::create_directory(dir.path("empty"));
  for (const char *name : {"data", "fake", "file", "empty"}) {
    std::string text = errorText(writeBundle(dir.path(name), "x"));
    expectParts(text, {dir.path(name), "no bundle", "not replaced"});
  }
  EXPECT_EQ(readFile(dir.path("data/precious.txt")), "keep");
  EXPECT_EQ(listing(dir.path()), (Names{"data", "empty", "fake", "file"}));
  // Something appears there while the bundle is being written.
  auto writer = BundleWriter::begin(dir.path("late"));
  ASSERT_TRUE(static_cast<bool>(writer));
  dir.write("late/precious.txt", "keep");
  expectParts(errorText((*writer)->commit()), {"late", "no bundle"});
  EXPECT_EQ(readFile(dir.path("late/precious.txt")), "keep");
}

TEST(BundleWriterTest, PathsThatCannotBeAreRefused) {
  TempDir dir;
  dir.write("file", "x");
  expectParts(errorText(writeBundle(dir.path("gone/m.batten"), "x")), {"gone", "No such file"});
  expectParts(errorText(writeBundle(dir.path("file/m.batten"), "x")), {"Not a directory"});
  for (const char *path : {"", "/", ".", ".."})
    EXPECT_NE(errorText(writeBundle(path, "x")), "(no error)") << path;
  std::filesystem::create_symlink("nowhere", dir.path("dangling"));
  expectParts(errorText(writeBundle(dir.path("dangling"), "x")), {"link"});
  auto writer = BundleWriter::begin(dir.path("m.batten"));
  ASSERT_TRUE(static_cast<bool>(writer));
  for (const char *path : {"../x", "/x", "a//x", "a/../x", "", "a/", "packs/.."})
    EXPECT_NE(errorText(put(**writer, path, "x")), "(no error)") << path;
}

TEST(BundleWriterTest, ALinkNamesTheBundleThatIsReplaced) {
  TempDir dir;
  ASSERT_EQ(errorText(writeBundle(dir.path("v1.batten"), "one")), "(no error)");
  std::filesystem::create_symlink("v1.batten", dir.path("current"));
  EXPECT_EQ(errorText(writeBundle(dir.path("current"), "two")), "(no error)");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path("current")));
  EXPECT_EQ(readBundle(dir.path("v1.batten")), "two");
}

TEST(BundleWriterTest, R47_AKilledWriterLeavesTheOldBundleAndIsCleanedUpAfter) {
  TempDir dir;
  std::string output = dir.path("m.batten");
  ASSERT_EQ(errorText(writeBundle(output, "old")), "(no error)");
  int status = inChild([&] {
    auto writer = BundleWriter::begin(output);
    if (writer)
      llvm::consumeError(put(**writer, "packs/common.pack", "half"));
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(readBundle(output), "old");
  EXPECT_EQ(listing(dir.path()).size(), 2u);
  EXPECT_EQ(errorText(writeBundle(output, "new")), "(no error)");
  EXPECT_EQ(readBundle(output), "new");
  EXPECT_EQ(listing(dir.path()), Names{"m.batten"});
}

TEST(BundleWriterTest, ALivingWriterIsNotCleanedUp) {
  TempDir dir;
  auto slow = BundleWriter::begin(dir.path("slow.batten"));
  ASSERT_TRUE(static_cast<bool>(slow));
  ASSERT_EQ(errorText(put(**slow, "manifest.bin", BATTEN_MAGIC)), "(no error)");
  ASSERT_EQ(errorText(writeBundle(dir.path("fast.batten"), "x")), "(no error)");
  EXPECT_EQ(errorText(put(**slow, "packs/common.pack", "y")), "(no error)");
  EXPECT_EQ(errorText((*slow)->commit()), "(no error)");
  EXPECT_EQ(listing(dir.path()), (Names{"fast.batten", "slow.batten"}));
  EXPECT_EQ(readFile(dir.path("slow.batten/packs/common.pack")), "y");
}

TEST(BundleWriterTest, OnlyStagingDirectoriesAreCleanedUp) {
  TempDir dir;
  for (const char *name : {".batten-tmp-0123456789abcde", ".batten-tmp-0123456789abcdeg", ".batten-tmp-"})
    dir.write(std::string(name) + "/keep", "x");
  dir.write(".batten-tmp-0123456789abcdef", "a file");
  dir.write(".batten-tmp-0123456789abcde0/sub/deeper/gone", "x");
  ASSERT_EQ(errorText(writeBundle(dir.path("m.batten"), "x")), "(no error)");
  EXPECT_EQ(listing(dir.path()), (Names{".batten-tmp-", ".batten-tmp-0123456789abcde", ".batten-tmp-0123456789abcdef",
                                        ".batten-tmp-0123456789abcdeg", "m.batten"}));
}

TEST(BundleWriterTest, R47_EightWritersAndAReaderNeverSeeHalfABundle) {
  TempDir dir;
  std::string output = dir.path("m.batten");
  ASSERT_EQ(errorText(writeBundle(output, "start")), "(no error)");
  std::vector<pid_t> children;
  for (int writer = 0; writer < 8; ++writer) {
    pid_t child = ::fork();
    if (child == 0) {
      for (int round = 0; round < 12; ++round)
        if (llvm::Error error = writeBundle(output, "writer " + std::to_string(writer))) {
          std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
          ::_exit(1);
        }
      ::_exit(0);
    }
    children.push_back(child);
  }
  int whole = 0, gone = 0;
  size_t left = children.size();
  while (left > 0) {
    int fd = ::open(output.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(fd, 0) << "there is always a bundle";
    std::string text = readBundle(fd);
    // A directory that is being removed has files missing, but never another bundle's; a new open sees a whole one.
    EXPECT_NE(text, "torn");
    (text.empty() ? gone : whole) += 1;
    ::close(fd);
    int status = 0;
    while (left > 0 && ::waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      --left;
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_EQ(readBundle(output).rfind("writer ", 0), 0u);
  ASSERT_EQ(errorText(writeBundle(output, "last")), "(no error)");
  EXPECT_EQ(listing(dir.path()), Names{"m.batten"});
}

TEST(BundleWriterTest, AReaderWithASharedLockKeepsTheOldBundle) {
  TempDir dir;
  std::string output = dir.path("m.batten");
  ASSERT_EQ(errorText(writeBundle(output, "old")), "(no error)");
  int fd = ::open(output.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_SH), 0);
  ASSERT_EQ(errorText(writeBundle(output, "new")), "(no error)");
  EXPECT_EQ(readBundle(fd), "old");
  EXPECT_EQ(readBundle(output), "new");
  ::close(fd);
  ASSERT_EQ(errorText(writeBundle(output, "newer")), "(no error)");
  EXPECT_EQ(listing(dir.path()), Names{"m.batten"});
}

TEST(BundleWriterTest, NoRoomIsAnErrorThatLeavesNothing) {
  TempDir dir;
  std::string output = dir.path("m.batten");
  ASSERT_EQ(errorText(writeBundle(output, "old")), "(no error)");
  int status = inChild([&] { // a limit on file sizes stands in for a full disk: the write fails in the same place
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string text;
    {
      auto writer = BundleWriter::begin(output);
      if (!writer)
        ::_exit(2);
      text = errorText(put(**writer, "packs/common.pack", std::string(6 << 20, 'x')));
    }
    bool named = text.find("m.batten/packs/common.pack: cannot write") != std::string::npos;
    ::_exit(named ? 0 : 3);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(readBundle(output), "old");
  EXPECT_EQ(listing(dir.path()), Names{"m.batten"});
}

TEST(BundleWriterTest, NoRightsAreAnError) {
  TempDir dir;
  std::filesystem::create_directory(dir.path("closed"));
  std::filesystem::permissions(dir.path("closed"), std::filesystem::perms(0555));
  int status = inChild([&] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
      ::_exit(2);
    std::string text = errorText(writeBundle(dir.path("closed/m.batten"), "x"));
    ::_exit(text.find("closed") != std::string::npos && text.find("ermission denied") != std::string::npos ? 0 : 3);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(MemoryBundleTest, HoldsTheSameBytesAndDigests) {
  TempDir dir;
  auto writer = BundleWriter::begin(dir.path("m.batten"));
  ASSERT_TRUE(static_cast<bool>(writer));
  MemoryBundle memory;
  std::string big(9 << 20, 'b');
  for (size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<char>(i * 2654435761u >> 24);
  for (const std::string &bytes : {std::string(), std::string("small"), big}) {
    WrittenFile files[2];
    BundleSink *sinks[2] = {writer->get(), &memory};
    for (int i = 0; i < 2; ++i) {
      std::unique_ptr<BundleFile> file = llvm::cantFail(sinks[i]->create("packs/common.pack", 0));
      std::string error;
      for (size_t at = 0; at < bytes.size(); at += 300000) {
        size_t count = std::min<size_t>(300000, bytes.size() - at);
        ASSERT_TRUE(file->write(reinterpret_cast<const uint8_t *>(bytes.data()) + at, count, error)) << error;
        if (at == 0)
          file->endHead();
      }
      files[i] = llvm::cantFail(file->close());
    }
    EXPECT_EQ(files[0].digest, files[1].digest);
    EXPECT_EQ(files[0].digest, llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)));
    EXPECT_EQ(files[0].headDigest, files[1].headDigest);
    EXPECT_EQ(files[0].bytes, bytes.size());
    EXPECT_EQ(readFile((*writer)->stagingPath() + "/packs/common.pack"), bytes);
  }
  auto blobs = memory.take();
  ASSERT_EQ(blobs.size(), 1u) << "a file of the same path is replaced";
  EXPECT_EQ(std::string(blobs[0]->bytes.begin(), blobs[0]->bytes.end()), big);
}
