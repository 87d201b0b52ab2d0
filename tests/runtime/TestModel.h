// The tiny encoder of the runtime's tests: a bundle spec over TestKernels.c, plain loops that compute the same, and helpers
// to make batches, open bundles and run them.
#ifndef BATTEN_TESTS_TESTMODEL_H
#define BATTEN_TESTS_TESTMODEL_H

#include "BundleBuilder.h"

#include <memory>
#include <random>

namespace batten::test {

inline constexpr uint32_t kIds = 50, kTypes = 2, kPositions = 200, kWidth = 20, kInner = 40;
#if defined(__x86_64__)
inline constexpr uint32_t kArch = BATTEN_ARCH_X86_64;
#else
inline constexpr uint32_t kArch = BATTEN_ARCH_AARCH64;
#endif

/// Buckets of the spec below.
struct Bucket {
  uint32_t tokens, seqs, markers;
};

/// The model in one target "base" (no features), lanes "embed" (output "embedding", seqs) and "encode" (outputs "hidden",
/// tokens, and "pooled", seqs), both over stage "text".
BundleSpec modelSpec(const std::vector<Bucket> &buckets = {{8, 4, 0}, {32, 8, 0}, {200, 64, 16}});
/// Adds a target with other features on the same image and packs.
void addTarget(BundleSpec &spec, std::string_view name, uint32_t arch, uint64_t features);
/// Where a kernel of TestKernels.c is in the image: offset and bytes.
std::pair<uint64_t, uint64_t> kernelEntry(std::string_view name);
/// The table "words", [kIds, kWidth].
const float *wordTable();
/// Index of the plan of a lane and bucket for target 0.
size_t planOf(const BundleSpec &spec, uint32_t lane, uint32_t bucket);

/// A batch that owns its arrays.
struct Batch {
  std::vector<int32_t> ids, types, cuSeqlens, markers, cuMarkers, seqTypes;
  batten_batch_t view() const;
  uint32_t tokens() const { return static_cast<uint32_t>(ids.size()); }
  uint32_t seqs() const { return static_cast<uint32_t>(cuSeqlens.size()) - 1; }
};
/// Sequences of these lengths with ids and types drawn from seed.
Batch makeBatch(const std::vector<uint32_t> &lengths, uint32_t seed);
/// The sequence s of a batch alone.
Batch sequenceOf(const Batch &batch, uint32_t s);

struct Outputs {
  std::vector<float> hidden; // [tokens, kWidth]
  std::vector<float> pooled; // [seqs, kWidth]
};
/// Plain loops over the checkpoint that modelSpec packs.
Outputs reference(const Batch &batch);

struct BundleDeleter {
  void operator()(batten_bundle_t *bundle) const { batten_bundle_release(bundle); }
};
struct PoolDeleter {
  void operator()(batten_pool_t *pool) const { batten_pool_release(pool); }
};
struct ExecutorDeleter {
  void operator()(batten_executor_t *executor) const { batten_executor_destroy(executor); }
};
using BundlePtr = std::unique_ptr<batten_bundle_t, BundleDeleter>;
using PoolPtr = std::unique_ptr<batten_pool_t, PoolDeleter>;
using ExecutorPtr = std::unique_ptr<batten_executor_t, ExecutorDeleter>;

/// Opens blobs; null where refused, with *error.
BundlePtr openBlobs(const Blobs &blobs, batten_error_t *error = nullptr,
                    const batten_bundle_options_t *options = nullptr);
BundlePtr openDirectory(const std::string &path, batten_error_t *error = nullptr,
                        const batten_bundle_options_t *options = nullptr);
PoolPtr makePool(uint32_t threads, uint32_t spinMicroseconds = UINT32_MAX);
ExecutorPtr makeExecutor(batten_bundle_t *bundle, batten_pool_t *pool = nullptr);

/// Runs lane "encode" and copies its outputs; fails the test where the run fails. bucket UINT32_MAX: any.
Outputs runModel(batten_executor_t *executor, const Batch &batch, uint32_t bucket = UINT32_MAX);
/// True where all bits are the same.
bool sameBits(const std::vector<float> &a, const std::vector<float> &b);

/// True where the allocator and the memory of the process are a sanitizer's.
constexpr bool kSanitized =
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif
/// True under ThreadSanitizer, which doesn't follow a fork of a process with threads.
constexpr bool kThreadSanitized =
#if defined(__SANITIZE_THREAD__)
    true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

/// Calls every batten_bundle_get_* with every index and one past it, and reads all texts and records that come back.
/// Returns a sum of what was read, so that nothing is optimized away.
uint64_t inspectAll(const batten_bundle_t *bundle);

} // namespace batten::test

#endif // BATTEN_TESTS_TESTMODEL_H
