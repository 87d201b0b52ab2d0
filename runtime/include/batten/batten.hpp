// Batten's runtime for C++20: a header-only face over batten.h. Owners that release what they hold, spans, and a Result that
// is a value or an error; what a wrong index alone can fail is an optional. Throws nothing, needs no RTTI. All that it adds
// to batten.h's calls: the sizes of a batch's spans are checked, and a batch's slack is worked out.
#ifndef BATTEN_BATTEN_HPP
#define BATTEN_BATTEN_HPP

#include "batten/batten.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace batten {

/// Why a call failed: batten_error_t with views on its texts.
struct Error : batten_error_t {
  Error() noexcept : batten_error_t{} {}
  [[nodiscard]] std::string_view text() const noexcept { return message; }
  [[nodiscard]] std::string_view name() const noexcept { return batten_status_name(status); }
};

/// A T, or the error that kept it from being made. Look before you take: value() of an error is the caller's mistake.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T &&value) noexcept : ok_(true) { new (&value_) T(std::move(value)); }
  Result(const Error &error) noexcept : ok_(false) { new (&error_) Error(error); }
  Result(Result &&other) noexcept : ok_(other.ok_) {
    if (ok_)
      new (&value_) T(std::move(other.value_));
    else
      new (&error_) Error(other.error_);
  }
  Result &operator=(Result &&) = delete;
  ~Result() {
    if (ok_)
      value_.~T();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return ok_; }
  [[nodiscard]] T &value() & noexcept { return value_; }
  [[nodiscard]] const T &value() const & noexcept { return value_; }
  [[nodiscard]] T &&value() && noexcept { return std::move(value_); }
  [[nodiscard]] const Error &error() const noexcept { return error_; }
  T *operator->() noexcept { return &value_; }
  const T *operator->() const noexcept { return &value_; }
  T &operator*() & noexcept { return value_; }
  const T &operator*() const & noexcept { return value_; }

private:
  union {
    T value_;
    Error error_;
  };
  bool ok_;
};

[[nodiscard]] inline std::string_view view(batten_text_t text) noexcept { return {text.data, text.bytes}; }

/// A packed batch over the caller's arrays.
///
/// Shapes: as batten_batch_t; the counts come from tokenIds, cuSeqlens (seqs + 1, or empty) and markers.
struct Batch {
  std::span<const int32_t> tokenIds, cuSeqlens, tokenTypes = {}, markers = {}, cuMarkers = {}, seqTypes = {};

  [[nodiscard]] batten_batch_t toC() const noexcept {
    auto pointer = [](std::span<const int32_t> array) { return array.empty() ? nullptr : array.data(); };
    batten_batch_t batch = BATTEN_BATCH_INIT;
    batch.tokenIds = pointer(tokenIds), batch.tokenTypes = pointer(tokenTypes), batch.cuSeqlens = pointer(cuSeqlens);
    batch.markers = pointer(markers), batch.cuMarkers = pointer(cuMarkers), batch.seqTypes = pointer(seqTypes);
    batch.tokenCount = static_cast<uint32_t>(tokenIds.size());
    batch.seqCount = cuSeqlens.empty() ? 0 : static_cast<uint32_t>(cuSeqlens.size() - 1);
    batch.markerCount = static_cast<uint32_t>(markers.size());
    return batch;
  }

  /// The spans that batten_batch_t has no count for are as long as they must be, or absent (empty).
  /// Errors: BAD_BATCH with array, found and wanted size.
  [[nodiscard]] batten_status_t checkSizes(Error &error) const noexcept {
    const size_t seqs = cuSeqlens.empty() ? 0 : cuSeqlens.size() - 1;
    struct Array {
      const char *name;
      size_t found, wanted;
    };
    for (const Array &array :
         {Array{"token_types", tokenTypes.size(), tokenIds.size()}, Array{"cu_markers", cuMarkers.size(), seqs + 1},
          Array{"seq_types", seqTypes.size(), seqs}}) {
      if (array.found == 0 || array.found == array.wanted)
        continue;
      error = Error();
      error.status = BATTEN_BAD_BATCH;
      error.found = array.found, error.limit = array.wanted;
      std::snprintf(error.where, sizeof error.where, "%s", array.name);
      std::snprintf(error.message, sizeof error.message, "%s: %zu values, %zu were expected", array.name, array.found,
                    array.wanted);
      return BATTEN_BAD_BATCH;
    }
    return BATTEN_OK;
  }
};

/// The bucket that a batch takes, and what it leaves free there.
struct Fit {
  uint32_t bucket;
  batten_bucket_info_t capacity, slack;
};

/// Time of a step over the runs since profiling was switched on.
struct StepTime {
  uint64_t nanoseconds, runs;
};

/// An output of a run. Without copyTo it is valid until the executor's next run.
struct Output : batten_output_view_t {
  Output() noexcept : batten_output_view_t{} {}
  /// Asks for a dense copy.
  explicit Output(std::span<float> destination) noexcept : batten_output_view_t{} {
    copyTo = destination.data(), copyBytes = destination.size_bytes();
  }
  /// Row r of an f32 output.
  [[nodiscard]] std::span<const float> row(uint32_t r) const noexcept {
    return {reinterpret_cast<const float *>(static_cast<const char *>(data) + r * strideBytes), width};
  }
};

/// An open bundle. Copies share it.
class Bundle {
public:
  [[nodiscard]] static Result<Bundle> open(const char *path,
                                           const batten_bundle_options_t *options = nullptr) noexcept {
    Error error;
    batten_bundle_t *bundle = nullptr;
    if (batten_bundle_open(path, options, &bundle, &error) != BATTEN_OK)
      return error;
    return Bundle(bundle);
  }
  [[nodiscard]] static Result<Bundle> open(std::span<const batten_blob_t> blobs,
                                           const batten_bundle_options_t *options = nullptr) noexcept {
    Error error;
    batten_bundle_t *bundle = nullptr;
    if (batten_bundle_open_blobs(blobs.data(), blobs.size(), options, &bundle, &error) != BATTEN_OK)
      return error;
    return Bundle(bundle);
  }
  Bundle(const Bundle &other) noexcept : bundle_(other.bundle_) { batten_bundle_retain(bundle_); }
  Bundle(Bundle &&other) noexcept : bundle_(std::exchange(other.bundle_, nullptr)) {}
  Bundle &operator=(Bundle other) noexcept {
    std::swap(bundle_, other.bundle_);
    return *this;
  }
  ~Bundle() { batten_bundle_release(bundle_); }

  [[nodiscard]] batten_bundle_t *get() const noexcept { return bundle_; }
  [[nodiscard]] batten_bundle_info_t info() const noexcept {
    batten_bundle_info_t info;
    batten_bundle_get_info(bundle_, &info);
    return info;
  }
  [[nodiscard]] std::optional<batten_lane_info_t> lane(uint32_t lane) const noexcept {
    return ask<batten_lane_info_t>([&](auto *info) { return batten_bundle_get_lane(bundle_, lane, info); });
  }
  [[nodiscard]] std::optional<batten_output_info_t> output(uint32_t lane, uint32_t output) const noexcept {
    return ask<batten_output_info_t>([&](auto *info) { return batten_bundle_get_output(bundle_, lane, output, info); });
  }
  [[nodiscard]] std::optional<batten_bucket_info_t> bucket(uint32_t lane, uint32_t bucket) const noexcept {
    return ask<batten_bucket_info_t>([&](auto *info) { return batten_bundle_get_bucket(bundle_, lane, bucket, info); });
  }
  [[nodiscard]] std::optional<batten_target_info_t> target(uint32_t target) const noexcept {
    return ask<batten_target_info_t>([&](auto *info) { return batten_bundle_get_target(bundle_, target, info); });
  }
  /// The plan of any lane and bucket, for the target in use; its steps; a step's operands, the output last.
  [[nodiscard]] std::optional<batten_plan_info_t> plan(uint32_t lane, uint32_t bucket) const noexcept {
    return ask<batten_plan_info_t>([&](auto *info) { return batten_bundle_get_plan(bundle_, lane, bucket, info); });
  }
  [[nodiscard]] std::optional<batten_step_info_t> step(uint32_t lane, uint32_t bucket, uint32_t step) const noexcept {
    return ask<batten_step_info_t>(
        [&](auto *info) { return batten_bundle_get_step(bundle_, lane, bucket, step, info); });
  }
  [[nodiscard]] std::optional<batten_operand_info_t> operand(uint32_t lane, uint32_t bucket, uint32_t step,
                                                             uint32_t operand) const noexcept {
    return ask<batten_operand_info_t>(
        [&](auto *info) { return batten_bundle_get_operand(bundle_, lane, bucket, step, operand, info); });
  }
  /// Hashes every byte of every file.
  [[nodiscard]] batten_status_t verifyFull(Error *error = nullptr) const noexcept {
    return batten_bundle_verify_full(bundle_, error);
  }
  [[nodiscard]] Result<uint32_t> findLane(const char *name) const noexcept {
    Error error;
    uint32_t lane = 0;
    if (batten_bundle_find_lane(bundle_, name, &lane, &error) != BATTEN_OK)
      return error;
    return Result<uint32_t>(std::move(lane));
  }

private:
  template <typename Info, typename Get> static std::optional<Info> ask(Get get) noexcept {
    Info info;
    return get(&info) == BATTEN_OK ? std::optional<Info>(info) : std::nullopt;
  }
  explicit Bundle(batten_bundle_t *bundle) noexcept : bundle_(bundle) {}
  batten_bundle_t *bundle_;
};

/// Threads for runs. Copies share them.
class Pool {
public:
  /// threads 0: min(CPUs allowed, ceil(cgroup quota)).
  [[nodiscard]] static Result<Pool> create(uint32_t threads = 0, uint32_t spinMicroseconds = UINT32_MAX) noexcept {
    batten_pool_options_t options = BATTEN_POOL_OPTIONS_INIT;
    options.threads = threads, options.spinMicroseconds = spinMicroseconds;
    Error error;
    batten_pool_t *pool = nullptr;
    if (batten_pool_create(&options, &pool, &error) != BATTEN_OK)
      return error;
    return Pool(pool);
  }
  Pool(const Pool &other) noexcept : pool_(other.pool_) { batten_pool_retain(pool_); }
  Pool(Pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  Pool &operator=(Pool other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~Pool() { batten_pool_release(pool_); }

  [[nodiscard]] batten_pool_t *get() const noexcept { return pool_; }
  [[nodiscard]] uint32_t threads() const noexcept { return batten_pool_threads(pool_); }

private:
  explicit Pool(batten_pool_t *pool) noexcept : pool_(pool) {}
  batten_pool_t *pool_;
};

/// Runs batches, one at a time. Keeps its bundle and pool alive.
class Executor {
public:
  [[nodiscard]] static Result<Executor> create(const Bundle &bundle, const Pool *pool = nullptr,
                                               bool profile = false) noexcept {
    batten_executor_options_t options = BATTEN_EXECUTOR_OPTIONS_INIT;
    options.pool = pool ? pool->get() : nullptr, options.profile = profile;
    Error error;
    batten_executor_t *executor = nullptr;
    if (batten_executor_create(bundle.get(), &options, &executor, &error) != BATTEN_OK)
      return error;
    return Executor(executor, bundle);
  }
  [[nodiscard]] batten_executor_t *get() const noexcept { return executor_.get(); }

  /// Runs a lane; the value is the bucket used. outputs has the lane's count of entries, or none.
  [[nodiscard]] Result<uint32_t> run(const Batch &batch, std::span<Output> outputs, uint32_t lane = 0) noexcept {
    static_assert(sizeof(Output) == sizeof(batten_output_view_t));
    Error error;
    uint32_t bucket = 0;
    const batten_batch_t view = batch.toC();
    if (batch.checkSizes(error) != BATTEN_OK ||
        batten_run_lane(executor_.get(), lane, &view, outputs.data(), static_cast<uint32_t>(outputs.size()), &bucket,
                        &error) != BATTEN_OK)
      return error;
    return Result<uint32_t>(std::move(bucket));
  }
  /// Runs in that bucket of the lane's stage, which must hold the batch.
  [[nodiscard]] batten_status_t runInBucket(uint32_t bucket, const Batch &batch, std::span<Output> outputs,
                                            uint32_t lane = 0, Error *error = nullptr) noexcept {
    Error own;
    Error &into = error ? *error : own;
    const batten_batch_t view = batch.toC();
    if (batch.checkSizes(into) != BATTEN_OK)
      return into.status;
    return batten_run_in_bucket(executor_.get(), lane, bucket, &view, outputs.data(),
                                static_cast<uint32_t>(outputs.size()), &into);
  }
  /// Checks a batch wholly and tells its bucket and slack, running nothing.
  [[nodiscard]] Result<Fit> check(const Batch &batch, uint32_t lane = 0) const noexcept {
    Error error;
    Fit fit = {};
    const batten_batch_t view = batch.toC();
    if (batch.checkSizes(error) != BATTEN_OK ||
        batten_check_batch(executor_.get(), lane, &view, &fit.bucket, &error) != BATTEN_OK)
      return error;
    (void)batten_bundle_get_bucket(bundle_.get(), lane, fit.bucket, &fit.capacity);
    fit.slack = {fit.capacity.tokens - view.tokenCount, fit.capacity.seqs - view.seqCount,
                 fit.capacity.markers - view.markerCount};
    return Result<Fit>(std::move(fit));
  }
  [[nodiscard]] batten_memory_t memory() const noexcept {
    batten_memory_t memory = {};
    (void)batten_executor_get_memory(executor_.get(), &memory);
    return memory;
  }
  /// Faults in a plan's weights and code.
  [[nodiscard]] batten_status_t prepare(uint32_t lane, uint32_t bucket, Error *error = nullptr) noexcept {
    return batten_executor_prepare(executor_.get(), lane, bucket, error);
  }
  /// Times steps from now on, from 0; off costs nothing. BUSY during a run.
  [[nodiscard]] batten_status_t setProfile(bool on) noexcept {
    return batten_executor_set_profile(executor_.get(), on);
  }
  /// Nothing where an index is out of range or a run is going on.
  [[nodiscard]] std::optional<StepTime> stepTime(uint32_t lane, uint32_t bucket, uint32_t step) const noexcept {
    StepTime time = {};
    if (batten_executor_get_step_time(executor_.get(), lane, bucket, step, &time.nanoseconds, &time.runs) != BATTEN_OK)
      return std::nullopt;
    return time;
  }
  /// Calls trace(step, rowKind, output) after each step of runs from now on; see batten_trace_fn. trace outlives them and
  /// throws nothing. BUSY during a run.
  template <typename Trace> [[nodiscard]] batten_status_t setTrace(Trace &trace) noexcept {
    static_assert(std::is_nothrow_invocable_v<Trace &, uint32_t, uint32_t, const Output &>);
    return batten_executor_set_trace(
        executor_.get(),
        [](void *user, uint32_t step, uint32_t rowKind, const batten_output_view_t *view) {
          Output output;
          static_cast<batten_output_view_t &>(output) = *view;
          (*static_cast<Trace *>(user))(step, rowKind, std::as_const(output));
        },
        &trace);
  }
  /// Stops tracing. BUSY during a run.
  [[nodiscard]] batten_status_t stopTrace() noexcept {
    return batten_executor_set_trace(executor_.get(), nullptr, nullptr);
  }
  /// Runs a self-test of the bundle. Errors: CORRUPT where its outputs differ.
  [[nodiscard]] Result<batten_self_test_result_t> selfTest(uint32_t index) noexcept {
    Error error;
    batten_self_test_result_t result = {};
    if (batten_executor_self_test(executor_.get(), index, &result, &error) != BATTEN_OK)
      return error;
    return Result<batten_self_test_result_t>(std::move(result));
  }

private:
  struct Destroy {
    void operator()(batten_executor_t *executor) const noexcept { batten_executor_destroy(executor); }
  };
  Executor(batten_executor_t *executor, const Bundle &bundle) noexcept : bundle_(bundle), executor_(executor) {}
  Bundle bundle_;
  std::unique_ptr<batten_executor_t, Destroy> executor_;
};

} // namespace batten

#endif // BATTEN_BATTEN_HPP
