// Bundles as files: byte-identical compiles (R48), a killed compile (R47), eight compilers and a reader on one path (R47),
// a real bundle cut and mixed up (R50), peak memory of a compile (R39).
#include "tests/golden/RandomModel.h"
#include "tests/golden/Running.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace batten;
using namespace batten::test;
namespace fs = std::filesystem;

extern char **environ;

namespace {

/// Every file below a directory, by relative path.
std::map<std::string, std::string> readTree(const std::string &root) {
  std::map<std::string, std::string> out;
  for (const auto &entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file())
      out[fs::relative(entry.path(), root).string()] = readFile(entry.path().string());
  return out;
}

pid_t startCompile(const std::string &input, const std::string &output) {
  std::string program = BATTEN_COMPILE_PROGRAM, quiet = "--quiet", flag = "-o", command = "compile";
  std::string in = input, out = output;
  char *argv[] = {program.data(), command.data(), in.data(), flag.data(), out.data(), quiet.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int waitFor(pid_t pid, rusage *usage = nullptr) {
  int status = 0;
  EXPECT_EQ(wait4(pid, &status, 0, usage), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

batten_status_t openBundle(const std::string &path, batten_error_t &error, batten_verify_level_t level) {
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.level = level;
  batten_bundle_t *bundle = nullptr;
  batten_status_t status = batten_bundle_open(path.c_str(), &options, &bundle, &error);
  batten_bundle_release(bundle);
  return status;
}

/// Visible entries of a directory.
std::vector<std::string> listing(const std::string &path) {
  std::vector<std::string> out;
  for (const auto &entry : fs::directory_iterator(path))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(BundleTest, R48_CompilesFromOtherPlacesTimesAndThreadCountsAreIdentical) {
  TempDir dir;
  fs::copy(goldenPath("sentence-mean-normalize"), dir.path("copy of the model"), fs::copy_options::recursive);
  CompileRequest request;
  request.input = goldenPath("sentence-mean-normalize");
  request.output = dir.path("a.batten");
  request.threads = 1;
  ASSERT_TRUE(bool(compile(request)));
  std::string here = fs::current_path();
  fs::current_path(dir.path());
  request.input = "copy of the model";
  request.output = "b.batten";
  request.threads = 2;
  auto second = compile(request);
  fs::current_path(here);
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  // Another process has other addresses, hence another order of anything that is keyed by pointers.
  ASSERT_EQ(waitFor(startCompile(dir.path("copy of the model"), dir.path("c.batten"))), 0);
  auto a = readTree(dir.path("a.batten")), b = readTree(dir.path("b.batten")), c = readTree(dir.path("c.batten"));
  ASSERT_GE(a.size(), 6u);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(a == c);
}

TEST(BundleTest, R47_AKilledCompileLeavesTheOldBundleOrNone) {
  TempDir dir;
  RandomBert small;
  small.layers = 1;
  std::string model = small.write(dir, "model");
  RandomBert other = small;
  other.seed = 2;
  std::string newer = other.write(dir, "newer");
  auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(waitFor(startCompile(model, dir.path("x.batten"))), 0);
  auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  auto old = readTree(dir.path("x.batten"));
  ASSERT_EQ(waitFor(startCompile(newer, dir.path("y.batten"))), 0);
  auto replaced = readTree(dir.path("y.batten"));
  ASSERT_FALSE(old == replaced);

  std::mt19937_64 random(47);
  int killed = 0;
  for (int round = 0; round < 10; ++round) {
    bool fresh = round % 2; // a path where nothing was
    std::string output = dir.path(fresh ? "fresh.batten" : "x.batten");
    pid_t pid = startCompile(newer, output);
    usleep(static_cast<useconds_t>(random() % static_cast<uint64_t>(took)));
    kill(pid, SIGKILL);
    killed += waitFor(pid) == -SIGKILL;
    batten_error_t error{};
    if (!fs::exists(output)) {
      EXPECT_TRUE(fresh) << "the old bundle is gone";
      continue;
    }
    EXPECT_EQ(openBundle(output, error, BATTEN_VERIFY_FULL), BATTEN_OK) << error.message;
    auto now = readTree(output);
    EXPECT_TRUE(now == old || now == replaced);
    if (fresh)
      fs::remove_all(output);
    else if (now == replaced)
      std::swap(old, replaced), std::swap(model, newer);
  }
  std::printf("%d of 10 compiles were killed before they ended\n", killed);
  EXPECT_GT(killed, 0);
  // The next compile succeeds and leaves nothing of the killed ones behind.
  ASSERT_EQ(waitFor(startCompile(model, dir.path("x.batten"))), 0);
  ASSERT_EQ(waitFor(startCompile(model, dir.path("fresh.batten"))), 0);
  EXPECT_EQ(listing(dir.path()), (std::vector<std::string>{"fresh.batten", "model", "newer", "x.batten", "y.batten"}));
}

TEST(BundleTest, R47_EightCompilersToOnePathAndAReaderNeverSeeHalfABundle) {
  TempDir dir;
  RandomBert model;
  model.layers = 1;
  std::vector<std::string> models;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    model.seed = seed;
    models.push_back(model.write(dir, "model" + std::to_string(seed)));
  }
  std::string output = dir.path("x.batten");
  ASSERT_EQ(waitFor(startCompile(models[0], output)), 0);
  std::atomic<bool> stop{false};
  std::atomic<int> opens{0};
  std::string failure;
  std::thread reader([&] {
    while (!stop) {
      batten_error_t error{};
      if (openBundle(output, error, BATTEN_VERIFY_FULL) != BATTEN_OK && failure.empty())
        failure = error.message;
      ++opens;
    }
  });
  std::vector<pid_t> pids;
  for (const std::string &path : models)
    pids.push_back(startCompile(path, output));
  for (pid_t pid : pids)
    EXPECT_EQ(waitFor(pid), 0);
  stop = true;
  reader.join();
  EXPECT_EQ(failure, "");
  EXPECT_GT(opens.load(), 10);
  std::vector<std::string> left = listing(dir.path());
  EXPECT_EQ(left.size(), 9u) << "something temporary is left: " << testing::PrintToString(left);
}

TEST(BundleTest, R50_ARealBundleCutAnywhereIsRefused) {
  TempDir dir;
  CompileRequest request;
  request.input = goldenPath("bert");
  request.output = dir.path("x.batten");
  request.targets = {runnableTargets().front()};
  ASSERT_TRUE(bool(compile(request)));
  batten_error_t error{};
  ASSERT_EQ(openBundle(request.output, error, BATTEN_VERIFY_FULL), BATTEN_OK) << error.message;
  int cuts = 0;
  for (const auto &[name, bytes] : readTree(request.output)) {
    std::vector<size_t> sizes = {0, 1, 7, 8, 9};
    for (size_t at = 4096; at < bytes.size(); at += 4096)
      sizes.push_back(at);
    for (size_t size : sizes) {
      dir.write("x.batten/" + name, std::string_view(bytes).substr(0, size));
      batten_status_t status = openBundle(request.output, error, BATTEN_VERIFY_STRUCTURE);
      EXPECT_TRUE(status == BATTEN_CORRUPT) << name << " cut at " << size << ": " << batten_status_name(status);
      EXPECT_NE(std::string(error.message).find(name), std::string::npos) << error.message;
      ++cuts;
    }
    dir.write("x.batten/" + name, bytes);
  }
  EXPECT_GT(cuts, 30);
  EXPECT_EQ(openBundle(request.output, error, BATTEN_VERIFY_FULL), BATTEN_OK) << error.message;
}

TEST(BundleTest, R45_FilesOfTwoBundlesDoNotMix) {
  TempDir dir;
  RandomBert model;
  model.layers = 1;
  std::map<std::string, std::string> trees[2];
  for (int i = 0; i < 2; ++i) {
    model.seed = i + 1;
    CompileRequest request;
    request.input = model.write(dir, "model");
    request.output = dir.path(i ? "b.batten" : "a.batten");
    ASSERT_TRUE(bool(compile(request)));
    trees[i] = readTree(request.output);
  }
  batten_error_t error{};
  int mixed = 0;
  for (const auto &[name, bytes] : trees[1]) {
    if (trees[0][name] == bytes)
      continue; // code doesn't depend on weights
    dir.write("a.batten/" + name, bytes);
    EXPECT_EQ(openBundle(dir.path("a.batten"), error, BATTEN_VERIFY_FULL), BATTEN_CORRUPT) << name;
    dir.write("a.batten/" + name, trees[0][name]);
    ++mixed;
  }
  EXPECT_GE(mixed, 4); // manifest, two packs, plans
}

TEST(BundleTest, R39_CompilingTakesLittleMoreMemoryThanThePack) {
  TempDir dir;
  RandomBert model;
  model.hidden = 768, model.heads = 12, model.inner = 3072, model.layers = 8, model.vocab = 20000;
  std::string path = dir.path("model");
  // Written by a child: a process starts with its parent's peak, which would otherwise hold the whole model.
  pid_t writer = fork();
  if (writer == 0) {
    model.write(dir, "model");
    _exit(0);
  }
  ASSERT_EQ(waitFor(writer), 0);
  rusage usage{};
  ASSERT_EQ(waitFor(startCompile(path, dir.path("x.batten")), &usage), 0);
  uint64_t packs = 0;
  for (const auto &entry : fs::directory_iterator(dir.path("x.batten/packs")))
    packs += fs::file_size(entry.path());
  uint64_t peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  std::printf("packs %lu MB, peak memory of the compile %lu MB\n", packs >> 20, peak >> 20);
  EXPECT_LT(peak, packs + (300ull << 20));
}

} // namespace
