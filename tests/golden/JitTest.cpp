// The jit executor against bundles made ahead of time: the same bits, the same plan files, the same refusals; plans made on
// first use; graphs added to an executor that runs.
#include "tests/ErrorText.h"
#include "tests/golden/JitRunning.h"
#include "tests/golden/RandomModel.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <thread>

using namespace batten;
using namespace batten::test;

namespace {

constexpr uint64_t kSeed = 4071;

/// Path to digest of the files of a bundle.
std::map<std::string, std::string> digestsOf(const batten_bundle_t *bundle) {
  std::map<std::string, std::string> digests;
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  for (uint32_t i = 0; i < info.fileCount; ++i) {
    batten_file_info_t file;
    EXPECT_EQ(batten_bundle_get_file(bundle, i, &file), BATTEN_OK);
    digests[std::string(view(file.path))] = std::string(reinterpret_cast<const char *>(file.digest), 32);
  }
  return digests;
}

class JitTest : public testing::Test {
protected:
  std::string buckets(const std::string &rows) { return dir.write("buckets.txt", rows); }

  TempDir dir;
};

TEST_F(JitTest, BitsAndFilesAreThoseOfTheBundleMadeAheadOfTime) {
  std::printf("seed %lu\n", kSeed);
  std::mt19937_64 random(kSeed);
  std::string table = buckets("text 16 4 40\ntext 48 8 60\ntext 200 16 80\ntext 900 40 99\n");
  RandomBert model;
  model.seed = kSeed;
  for (const std::string &input :
       {goldenPath("sentence-mean-sqrt-len-dense"), goldenPath("bert-f16"), goldenPath("xlm-roberta-cross-encoder"),
        goldenPath("laya-tiny-a"), model.write(dir, "model")}) {
    SCOPED_TRACE(input);
    AheadOfTime ahead(input, table);
    std::optional<jit::Executor> jit = makeJit(input, table);
    ASSERT_TRUE(ahead.executor && jit);
    ASSERT_EQ(jit->laneCount(), ahead.bundle->info().laneCount);
    for (uint32_t lane = 0; lane < jit->laneCount(); ++lane) {
      batten_lane_info_t info = jit->lane(lane).value(), other = ahead.bundle->lane(lane).value();
      EXPECT_EQ(view(info.name), view(other.name));
      EXPECT_EQ(std::tuple(info.stage, info.bucketCount, info.outputCount, info.readsTypes, info.idCount,
                           info.typeCount, info.maxSeqTokens),
                std::tuple(other.stage, other.bucketCount, other.outputCount, other.readsTypes, other.idCount,
                           other.typeCount, other.maxSeqTokens));
      for (uint32_t bucket = 0; bucket < info.bucketCount; ++bucket)
        for (int round = 0; round < 8; ++round) {
          PackedBatch batch = randomBatch(random, info, jit->bucket(lane, bucket).value());
          Answer want = ask(*ahead.executor, lane, info.outputCount, batch);
          EXPECT_EQ(want.outputs.size(), info.outputCount);
          EXPECT_TRUE(ask(*jit, lane, info.outputCount, batch) == want)
              << "lane " << view(info.name) << ", bucket " << bucket << ", " << batch.tokens() << " tokens";
        }
      for (uint32_t bucket = 0; bucket < info.bucketCount; ++bucket)
        EXPECT_EQ(jit->prepare(lane, bucket), BATTEN_OK);
    }
    // Packs, code and plans are the same byte for byte.
    std::map<std::string, std::string> files = digestsOf(ahead.bundle->get()), made;
    for (const jit::WarmPlan &plan : jit->warm())
      made.merge(digestsOf(plan.bundle->get()));
    EXPECT_EQ(made, files);
  }
}

TEST_F(JitTest, PlansAreMadeOnFirstUse) {
  std::string table = buckets("text 16 4 0\ntext 48 8 0\ntext 200 16 0\n");
  std::optional<jit::Executor> jit = makeJit(goldenPath("sentence-mean-normalize"), table);
  ASSERT_TRUE(jit);
  ASSERT_EQ(jit->laneCount(), 2u);
  EXPECT_EQ(warmOf(*jit), Warm{});
  batten_memory_t none = jit->memory();
  EXPECT_GT(none.weightsMapped, 0u);
  EXPECT_EQ(none.arena + none.scratch + none.batchTables + none.planTables + none.imageMapped, 0u);
  EXPECT_EQ(ask(*jit, 0, 1, oneSequence(20)).bucket, 1u);
  EXPECT_EQ(warmOf(*jit), (Warm{{0, 1}}));
  batten_memory_t one = jit->memory();
  EXPECT_EQ(ask(*jit, 0, 1, oneSequence(17)).bucket, 1u);
  EXPECT_EQ(warmOf(*jit), (Warm{{0, 1}}));
  EXPECT_EQ(jit->prepare(1, 2), BATTEN_OK);
  EXPECT_EQ(warmOf(*jit), (Warm{{0, 1}, {1, 2}}));
  Result<Fit> fit = jit->check(viewOfBatch(oneSequence(3)));
  ASSERT_TRUE(bool(fit));
  EXPECT_EQ(fit->bucket, 0u);
  EXPECT_EQ(fit->slack.tokens, 13u);
  EXPECT_EQ(warmOf(*jit), (Warm{{0, 0}, {0, 1}, {1, 2}}));
  batten_memory_t three = jit->memory();
  EXPECT_EQ(three.weightsMapped, none.weightsMapped); // weights don't double
  EXPECT_GT(three.arena, one.arena);
  // A plan is there to be inspected, as number 0 of lane 0.
  for (const jit::WarmPlan &plan : jit->warm()) {
    EXPECT_GT(plan.bundle->plan(0, 0).value().stepCount, 0u);
    EXPECT_FALSE(plan.bundle->plan(0, 1));
  }
}

bool sameError(const Error &a, const Error &b) {
  return a.status == b.status && a.index == b.index && a.sequence == b.sequence && a.found == b.found &&
         a.limit == b.limit && !std::strcmp(a.where, b.where) && !std::strcmp(a.section, b.section) &&
         !std::strcmp(a.message, b.message);
}

TEST_F(JitTest, RefusalsAreTheRuntimes) {
  std::string input = goldenPath("sentence-mean-normalize");
  std::string table = buckets("text 16 4 0\ntext 48 2 0\n");
  AheadOfTime ahead(input, table);
  std::optional<jit::Executor> jit = makeJit(input, table);
  ASSERT_TRUE(ahead.executor && jit);
  PackedBatch good = oneSequence(5), tokens = oneSequence(49), seqs, falling = good, id = good, markers = good,
              sizes = good, both;
  seqs.cu.assign(7, 0);
  falling.cu = {0, 4, 3, 5};
  id.ids[2] = 1 << 20;
  both.append(oneSequence(20), 0); // 20 tokens want the second bucket, three sequences the first
  both.cu.resize(4, 20);
  markers.markers = {0};
  markers.cuMarkers = {0, 1};
  sizes.types = {0, 1};
  struct Case {
    const char *name;
    const PackedBatch &batch;
    uint32_t lane, outputs;
    batten_status_t status;
  } cases[] = {{"tokens", tokens, 0, 1, BATTEN_NO_BUCKET},
               {"seqs", seqs, 0, 1, BATTEN_NO_BUCKET},
               {"markers", markers, 0, 1, BATTEN_NO_BUCKET},
               {"both", both, 1, 0, BATTEN_NO_BUCKET},
               {"falling", falling, 0, 1, BATTEN_BAD_BATCH},
               {"id", id, 1, 0, BATTEN_BAD_BATCH},
               {"lane", good, 2, 1, BATTEN_BAD_ARGUMENT},
               {"outputs", good, 0, 2, BATTEN_BAD_ARGUMENT},
               {"falling outputs", falling, 0, 2, BATTEN_BAD_ARGUMENT},
               {"sizes", sizes, 5, 1, BATTEN_BAD_BATCH}};
  for (const Case &c : cases) {
    std::vector<Output> outputs(c.outputs);
    Result<uint32_t> want = ahead.executor->run(viewOfBatch(c.batch), outputs, c.lane),
                     got = jit->run(viewOfBatch(c.batch), outputs, c.lane);
    ASSERT_TRUE(!want && !got) << c.name;
    EXPECT_EQ(got.error().status, c.status) << c.name;
    EXPECT_TRUE(sameError(got.error(), want.error()))
        << c.name << ": " << got.error().message << "\nwanted: " << want.error().message;
    Result<Fit> checked = jit->check(viewOfBatch(c.batch), c.lane);
    EXPECT_EQ(bool(checked), c.status == BATTEN_BAD_ARGUMENT && c.lane == 0 && &c.batch == &good) << c.name;
  }
  for (uint32_t bucket : {1u, 2u}) {
    Error want, got;
    batten_status_t status = ahead.executor->runInBucket(bucket, viewOfBatch(tokens), {}, 0, &want);
    EXPECT_EQ(status, bucket == 1 ? BATTEN_NO_BUCKET : BATTEN_BAD_ARGUMENT);
    EXPECT_EQ(jit->runInBucket(bucket, viewOfBatch(tokens), {}, 0, &got), status);
    EXPECT_TRUE(sameError(got, want)) << got.message << "\nwanted: " << want.message;
  }
  for (auto [lane, bucket] : {std::pair(2u, 0u), std::pair(0u, 2u)}) {
    Error want, got;
    EXPECT_EQ(ahead.executor->prepare(lane, bucket, &want), BATTEN_BAD_ARGUMENT);
    EXPECT_EQ(jit->prepare(lane, bucket, &got), BATTEN_BAD_ARGUMENT);
    EXPECT_TRUE(sameError(got, want)) << got.message << "\nwanted: " << want.message;
  }
  Result<uint32_t> want = ahead.bundle->findLane("embde"), got = jit->findLane("embde");
  ASSERT_TRUE(!want && !got);
  EXPECT_TRUE(sameError(got.error(), want.error())) << got.error().message << "\nwanted: " << want.error().message;
  // Nothing of this has hurt it.
  EXPECT_TRUE(ask(*jit, 0, 1, good) == ask(*ahead.executor, 0, 1, good));
}

/// A bucket of more rows than kernels count: its plan is refused, and the executor goes on.
TEST_F(JitTest, AnImpossibleBucketIsRefusedWhenItIsUsed) {
  std::optional<jit::Executor> jit =
      makeJit(goldenPath("sentence-mean-normalize"), buckets("text 16 4 0\ntext 1073741824 1073741824 0\n"));
  ASSERT_TRUE(jit);
  Error error;
  EXPECT_EQ(jit->prepare(0, 1, &error), BATTEN_UNSUPPORTED);
  expectParts(error.message, {"work units in bucket [1073741824, 1073741824, 0], at most 4294967295 are possible"});
  EXPECT_EQ(warmOf(*jit), Warm{});
  EXPECT_EQ(ask(*jit, 0, 1, oneSequence(5)).bucket, 0u);
}

TEST_F(JitTest, ProfilesAndTracesEachPlan) {
  jit::Options options;
  options.input = goldenPath("sentence-mean-normalize");
  auto pool = Pool::create(2);
  ASSERT_TRUE(bool(pool));
  options.pool = &*pool;
  options.profile = true;
  options.bucketsFile = buckets("text 16 4 0\ntext 48 8 0\n");
  auto jit = jit::Executor::create(options);
  ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
  EXPECT_EQ(jit->stepTime(0, 0, 0).value().runs, 0u);
  Answer first = ask(*jit, 0, 1, oneSequence(7));
  (void)ask(*jit, 0, 1, oneSequence(30)); // another plan's first use leaves the times of this one
  (void)ask(*jit, 0, 1, oneSequence(7));
  EXPECT_EQ(jit->stepTime(0, 0, 0).value().runs, 2u);
  EXPECT_GT(jit->stepTime(0, 0, 0).value().nanoseconds, 0u);
  EXPECT_FALSE(jit->stepTime(0, 0, 1000));
  EXPECT_FALSE(jit->stepTime(0, 2, 0));
  ASSERT_EQ(jit->setProfile(false), BATTEN_OK);
  (void)ask(*jit, 0, 1, oneSequence(7));
  EXPECT_EQ(jit->stepTime(0, 0, 0).value().runs, 0u);

  // The trace sees every step, also of a plan made later; what is called from inside of a run is told BUSY.
  uint32_t steps = 0;
  std::vector<batten_status_t> statuses;
  std::string refused;
  auto trace = [&](uint32_t, uint32_t, const Output &output) noexcept {
    EXPECT_GT(output.rows, 0u);
    if (++steps > 1)
      return;
    const std::vector<int32_t> cu = {0};
    const Batch empty{.tokenIds = {}, .cuSeqlens = cu};
    statuses = {jit->run(empty, {}).error().status,
                jit->check(empty).error().status,
                jit->runInBucket(0, empty, {}),
                jit->prepare(0, 0),
                jit->setProfile(true),
                jit->stopTrace()};
    refused = errorText(jit->addGraph({.lane = "x", .file = "x", .stage = "text"}));
  };
  ASSERT_EQ(jit->setTrace(trace), BATTEN_OK);
  EXPECT_TRUE(ask(*jit, 0, 1, oneSequence(7)) == first);
  EXPECT_EQ(statuses, std::vector<batten_status_t>(6, BATTEN_BUSY));
  EXPECT_EQ(refused, "the executor is running on another thread");
  EXPECT_EQ(steps, jit->warm().front().bundle->plan(0, 0).value().stepCount);
  steps = 1;
  (void)ask(*jit, 1, jit->lane(1).value().outputCount, oneSequence(7));
  EXPECT_GT(steps, 1u);
  ASSERT_EQ(jit->stopTrace(), BATTEN_OK);
  steps = 0;
  (void)ask(*jit, 0, 1, oneSequence(7));
  EXPECT_EQ(steps, 0u);
}

TEST_F(JitTest, MadeForTheBestTargetThatRuns) {
  for (const std::string &name : knownTargets()) {
    if (name.find('+') != std::string::npos)
      continue;
    jit::Options options;
    options.input = goldenPath("sentence-max");
    options.target = name;
    auto jit = jit::Executor::create(options);
    bool runs = llvm::is_contained(runnableTargets(), name);
    EXPECT_EQ(bool(jit), runs);
    if (!runs)
      expectParts(llvm::toString(jit.takeError()), {"target '" + name + "' needs ", "avx"});
  }
  jit::Options options;
  options.input = goldenPath("sentence-max");
  options.target = "x86-64-v9";
  expectParts(errorText(jit::Executor::create(options)), {"unknown target 'x86-64-v9'"});
  options.target = "";
  auto jit = jit::Executor::create(options);
  ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
  ASSERT_EQ(jit->prepare(0, 0), BATTEN_OK);
  EXPECT_EQ(view(jit->warm().front().bundle->target(0).value().name), runnableTargets().back());
  options.input = dir.path("nothing");
  EXPECT_FALSE(bool(jit::Executor::create(options)));
}

TEST_F(JitTest, TwoExecutorsAtOnce) {
  std::string inputs[2] = {goldenPath("sentence-mean-normalize"), goldenPath("bert-f16")};
  std::vector<Answer> answers[2], again[2];
  auto work = [](const std::string &input, std::vector<Answer> &out) {
    jit::Options options;
    options.input = input;
    auto jit = jit::Executor::create(options);
    if (!jit)
      return llvm::consumeError(jit.takeError());
    for (uint32_t tokens : {5u, 60u, 31u, 64u})
      for (uint32_t lane = 0; lane < jit->laneCount(); ++lane)
        out.push_back(ask(*jit, lane, jit->lane(lane).value().outputCount, oneSequence(std::min(tokens, 32u))));
  };
  {
    std::thread first(work, inputs[0], std::ref(answers[0])), second(work, inputs[1], std::ref(answers[1]));
    first.join();
    second.join();
  }
  for (int i = 0; i < 2; ++i) {
    work(inputs[i], again[i]);
    EXPECT_FALSE(answers[i].empty());
    EXPECT_TRUE(answers[i] == again[i]);
  }
}

} // namespace
