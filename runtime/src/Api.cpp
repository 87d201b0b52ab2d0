// The C API: versions, opening, pools, executors, runs. Checks arguments, then calls the classes. What a bundle tells about
// itself is in ApiInfo.cpp.
#include "ApiSupport.h"

#include <cerrno>

using namespace batten::rt;

// An enum of the caller as a number: C lets any value in, which C++ may not read as the enum.
template <typename T> static u32 valueOf(const T &value) noexcept {
  u32 number;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

extern "C" {

const char *batten_version(void) { return "0.1.0 (format 1.0, kernel ABI 1)"; }
uint32_t batten_format_major(void) { return BATTEN_FORMAT_MAJOR; }
uint32_t batten_format_minor(void) { return BATTEN_FORMAT_MINOR; }
uint32_t batten_kernel_abi(void) { return BATTEN_KERNEL_ABI_VERSION; }

const char *batten_status_name(batten_status_t status) {
  static constexpr const char *kNames[] = {"ok",      "bad batch", "no bucket",     "busy", "unsupported", "corrupt",
                                           "version", "device",    "out of memory", "io",   "bad argument"};
  const u32 index = valueOf(status);
  return index < sizeof kNames / sizeof kNames[0] ? kNames[index] : "unknown status";
}

void batten_sha256(const void *data, size_t bytes, uint8_t *digest) {
  sha256(data, bytes, CpuInfo::detect().hasSha, digest);
}

/* ---- bundle ---- */

static batten_status_t checkBundleOptions(const batten_bundle_options_t *options, ErrorSlot &slot) {
  if (!options)
    return BATTEN_OK;
  if (!hasFields(options))
    return slot.badArgument("options of batten_bundle_open: structBytes is not set, use BATTEN_BUNDLE_OPTIONS_INIT");
  if (valueOf(options->level) > BATTEN_VERIFY_FULL || valueOf(options->load) > BATTEN_LOAD_READ)
    return slot.badArgument("options of batten_bundle_open: unknown level or load");
  return BATTEN_OK;
}

static batten_status_t finishOpen(batten_bundle_t *opened, batten_status_t status, batten_bundle_t **bundle) {
  if (status == BATTEN_OK)
    *bundle = opened;
  else
    destroy(opened);
  return status;
}

static constexpr int kMostReplacements = 100;

batten_status_t batten_bundle_open(const char *path, const batten_bundle_options_t *options, batten_bundle_t **bundle,
                                   batten_error_t *error) {
  static constexpr batten_bundle_options_t kDefaults = BATTEN_BUNDLE_OPTIONS_INIT;
  ErrorSlot slot(error);
  if (bundle)
    *bundle = nullptr;
  if (!path || !bundle)
    return slot.badArgument("batten_bundle_open: path or bundle is NULL");
  BATTEN_TRY(checkBundleOptions(options, slot));
  const batten_bundle_options_t &chosen = options ? *options : kDefaults;
  const Report report(slot.get(), textOf(path));
  // A compiler may replace the bundle and remove the old one between two files: then the new one is opened. Each retry is
  // another replacement, so the bound is never met by a path that is left alone.
  for (int tries = 0;; ++tries) {
    batten_bundle_t *opened = create<batten_bundle_t>();
    if (!opened)
      return report.outOfMemory(sizeof(batten_bundle_t));
    batten_status_t status = opened->source.openDirectory(path, chosen.allowWritableByOthers, report);
    if (status == BATTEN_OK)
      status = opened->open(chosen, slot.get());
    const bool replaced = status == BATTEN_IO && slot.get().osError == ENOENT && opened->source.isReplaced(path);
    if (!replaced || tries == kMostReplacements)
      return finishOpen(opened, status, bundle);
    destroy(opened);
  }
}

batten_status_t batten_bundle_open_blobs(const batten_blob_t *blobs, size_t blobCount,
                                         const batten_bundle_options_t *options, batten_bundle_t **bundle,
                                         batten_error_t *error) {
  ErrorSlot slot(error);
  if (bundle)
    *bundle = nullptr;
  if ((!blobs && blobCount) || !bundle)
    return slot.badArgument("batten_bundle_open_blobs: blobs or bundle is NULL");
  BATTEN_TRY(checkBundleOptions(options, slot));
  batten_bundle_options_t chosen = BATTEN_BUNDLE_OPTIONS_INIT;
  chosen = options ? *options : chosen;
  chosen.load = BATTEN_LOAD_MAP;
  if (chosen.mapImage)
    return slot.badArgument("batten_bundle_open_blobs: mapImage needs a bundle of files");
  batten_bundle_t *opened = create<batten_bundle_t>();
  const Report report(slot.get(), {});
  if (!opened)
    return report.outOfMemory(sizeof(batten_bundle_t));
  batten_status_t status = opened->source.openBlobs(blobs, blobCount, report);
  if (status == BATTEN_OK)
    status = opened->open(chosen, slot.get());
  return finishOpen(opened, status, bundle);
}

void batten_bundle_retain(batten_bundle_t *bundle) {
  if (bundle)
    bundle->retain();
}

void batten_bundle_release(batten_bundle_t *bundle) {
  if (bundle && bundle->release())
    destroy(bundle);
}

batten_status_t batten_bundle_verify_full(const batten_bundle_t *bundle, batten_error_t *error) {
  ErrorSlot slot(error);
  return bundle ? bundle->verifyFull(slot.get()) : slot.badArgument("batten_bundle_verify_full: bundle is NULL");
}

/* ---- pool ---- */

batten_status_t batten_pool_create(const batten_pool_options_t *options, batten_pool_t **pool, batten_error_t *error) {
  static constexpr batten_pool_options_t kDefaults = BATTEN_POOL_OPTIONS_INIT;
  ErrorSlot slot(error);
  if (!pool)
    return slot.badArgument("batten_pool_create: pool is NULL");
  *pool = nullptr;
  if (options && !hasFields(options))
    return slot.badArgument("options of batten_pool_create: structBytes is not set, use BATTEN_POOL_OPTIONS_INIT");
  const batten_pool_options_t &chosen = options ? *options : kDefaults;
  const Report report(slot.get(), {});
  batten_pool_t *created = create<batten_pool_t>();
  if (!created)
    return report.outOfMemory(sizeof(batten_pool_t));
  const batten_status_t status = created->start(chosen.threads, chosen.spinMicroseconds, report);
  if (status == BATTEN_OK)
    *pool = created;
  else
    destroy(created);
  return status;
}

void batten_pool_retain(batten_pool_t *pool) {
  if (pool)
    pool->retain();
}

void batten_pool_release(batten_pool_t *pool) {
  if (pool && pool->releaseReference())
    destroy(pool);
}

uint32_t batten_pool_threads(const batten_pool_t *pool) { return pool ? pool->threads() : 1; }
uint32_t batten_default_threads(void) { return os::defaultThreads(os::allowedCpus(), os::quotaCpus("")); }

/* ---- executor ---- */

batten_status_t batten_executor_create(batten_bundle_t *bundle, const batten_executor_options_t *options,
                                       batten_executor_t **executor, batten_error_t *error) {
  static constexpr batten_executor_options_t kDefaults = BATTEN_EXECUTOR_OPTIONS_INIT;
  ErrorSlot slot(error);
  if (!bundle || !executor)
    return slot.badArgument("batten_executor_create: bundle or executor is NULL");
  *executor = nullptr;
  if (options && !hasFields(options))
    return slot.badArgument(
        "options of batten_executor_create: structBytes is not set, use BATTEN_EXECUTOR_OPTIONS_INIT");
  const batten_executor_options_t &chosen = options ? *options : kDefaults;
  batten_executor_t *created = create<batten_executor_t>();
  if (!created)
    return Report(slot.get(), {}).outOfMemory(sizeof(batten_executor_t));
  const batten_status_t status = created->create(*bundle, chosen.pool, chosen.profile, slot.get());
  if (status == BATTEN_OK)
    *executor = created;
  else
    destroy(created);
  return status;
}

void batten_executor_destroy(batten_executor_t *executor) { destroy(executor); }

static batten_status_t runChecked(batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                  const batten_batch_t *batch, batten_output_view_t *outputs, uint32_t outputCount,
                                  uint32_t *bucketUsed, batten_error_t *error) {
  ErrorSlot slot(error);
  if (!executor || !batch)
    return slot.badArgument("batten_run: executor or batch is NULL");
  if (!hasFields(batch))
    return slot.badArgument("batch of batten_run: structBytes is not set, use BATTEN_BATCH_INIT");
  return executor->run(lane, bucket, *batch, outputs, outputCount, bucketUsed, slot.get());
}

batten_status_t batten_run(batten_executor_t *executor, const batten_batch_t *batch, batten_output_view_t *outputs,
                           uint32_t outputCount, uint32_t *bucket, batten_error_t *error) {
  return runChecked(executor, 0, Executor::kAnyBucket, batch, outputs, outputCount, bucket, error);
}

batten_status_t batten_run_lane(batten_executor_t *executor, uint32_t lane, const batten_batch_t *batch,
                                batten_output_view_t *outputs, uint32_t outputCount, uint32_t *bucket,
                                batten_error_t *error) {
  return runChecked(executor, lane, Executor::kAnyBucket, batch, outputs, outputCount, bucket, error);
}

batten_status_t batten_run_in_bucket(batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                     const batten_batch_t *batch, batten_output_view_t *outputs, uint32_t outputCount,
                                     batten_error_t *error) {
  ErrorSlot slot(error);
  if (bucket == Executor::kAnyBucket)
    return slot.badArgument("batten_run_in_bucket: no such bucket");
  return runChecked(executor, lane, bucket, batch, outputs, outputCount, nullptr, error);
}

batten_status_t batten_check_batch(const batten_executor_t *executor, uint32_t lane, const batten_batch_t *batch,
                                   uint32_t *bucket, batten_error_t *error) {
  ErrorSlot slot(error);
  if (!executor || !batch)
    return slot.badArgument("batten_check_batch: executor or batch is NULL");
  if (!hasFields(batch))
    return slot.badArgument("batch of batten_check_batch: structBytes is not set, use BATTEN_BATCH_INIT");
  return executor->check(lane, *batch, bucket, slot.get());
}

batten_status_t batten_executor_get_memory(const batten_executor_t *executor, batten_memory_t *memory) {
  if (!executor || !memory)
    return BATTEN_BAD_ARGUMENT;
  executor->getMemory(*memory);
  return BATTEN_OK;
}

batten_status_t batten_executor_prepare(batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                        batten_error_t *error) {
  ErrorSlot slot(error);
  return executor ? executor->prepare(lane, bucket, slot.get())
                  : slot.badArgument("batten_executor_prepare: executor is NULL");
}

batten_status_t batten_executor_set_profile(batten_executor_t *executor, bool on) {
  return executor ? executor->setProfile(on) : BATTEN_BAD_ARGUMENT;
}

batten_status_t batten_executor_set_trace(batten_executor_t *executor, batten_trace_fn *trace, void *user) {
  return executor ? executor->setTrace(trace, user) : BATTEN_BAD_ARGUMENT;
}

batten_status_t batten_executor_get_step_time(const batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                              uint32_t step, uint64_t *nanoseconds, uint64_t *runs) {
  if (!executor || !nanoseconds || !runs)
    return BATTEN_BAD_ARGUMENT;
  u64 time = 0, count = 0;
  BATTEN_TRY(executor->getStepTime(lane, bucket, step, &time, &count));
  *nanoseconds = time;
  *runs = count;
  return BATTEN_OK;
}

batten_status_t batten_executor_self_test(batten_executor_t *executor, uint32_t index,
                                          batten_self_test_result_t *result, batten_error_t *error) {
  ErrorSlot slot(error);
  if (!executor || !result)
    return slot.badArgument("batten_executor_self_test: executor or result is NULL");
  return executor->selfTest(index, *result, slot.get());
}

} // extern "C"
