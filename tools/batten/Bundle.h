// Owners of the runtime's objects, its errors as Failure, and the options that every command on a bundle takes.
#ifndef BATTEN_TOOLS_BATTEN_BUNDLE_H
#define BATTEN_TOOLS_BATTEN_BUNDLE_H

#include "tools/common/Output.h"

#include <batten/batten.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App; // CLI11's header costs seconds in every file that includes it
}

namespace batten::tools {

struct BundleRelease {
  void operator()(batten_bundle_t *bundle) const { batten_bundle_release(bundle); }
};
struct PoolRelease {
  void operator()(batten_pool_t *pool) const { batten_pool_release(pool); }
};
struct ExecutorDestroy {
  void operator()(batten_executor_t *executor) const { batten_executor_destroy(executor); }
};
using BundlePtr = std::unique_ptr<batten_bundle_t, BundleRelease>;
using PoolPtr = std::unique_ptr<batten_pool_t, PoolRelease>;
using ExecutorPtr = std::unique_ptr<batten_executor_t, ExecutorDestroy>;

/// Errors: Failure "where: message" for any status but BATTEN_OK.
void check(batten_status_t status, const batten_error_t &error, const std::string &where);
/// For calls that fail only on an index that we took from the bundle itself.
void checkIndex(batten_status_t status);

std::string toString(batten_text_t text);
/// "tokens", "seqs", "markers" or "one".
const char *rowKindName(uint32_t rowKind);
/// "f32" ..
std::string elemName(uint32_t elem);

/// What opens a bundle: NAME.batten and the options that it is opened with.
struct BundleOptions {
  std::string path, digest, target;
  bool allowWritableByOthers = false;
  /// Adds them to a command.
  void addTo(CLI::App *command);
  /// Errors: Failure; wrong usage where the path is missing or the digest isn't 64 hexadecimal digits.
  BundlePtr open(bool mapImage = false) const;
  /// Opens it without its code, also where no target of it runs on this machine: to ask and to verify only.
  BundlePtr openToInspect(batten_verify_level_t level) const;

private:
  BundlePtr open(batten_bundle_options_t options) const;
};

/// Facts of a lane, gathered once.
struct Lane {
  uint32_t index;
  std::string name;
  batten_lane_info_t info;
  std::vector<batten_bucket_info_t> buckets;
  struct Output {
    std::string name;
    uint32_t rowKind, width, elem;
  };
  std::vector<Output> outputs;
};
Lane readLane(const batten_bundle_t *bundle, uint32_t index);
/// The lane of that name, lane 0 for "". Errors: Failure that lists the lanes.
Lane findLane(const batten_bundle_t *bundle, const std::string &bundlePath, const std::string &name);

/// A pool of that many threads, NULL for one; 0 takes the default. An executor on it.
struct Engine {
  PoolPtr pool;
  ExecutorPtr executor;
  uint32_t threads;
  Engine(batten_bundle_t *bundle, const std::string &bundlePath, uint32_t threads);
};
/// Adds --threads, checked to be 1 to 1024; *threads stays 0 where it isn't given.
void addThreads(CLI::App *command, uint32_t *threads);
/// The index of the target in use, and its facts.
batten_target_info_t targetInUse(const batten_bundle_t *bundle);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_BUNDLE_H
