// Batten's runtime for C++20: a header-only face over batten.h. Owners that release what they hold, spans, and a Result that
// is a value or an error. Throws nothing, needs no RTTI; adds no call that batten.h hasn't.
#ifndef BATTEN_BATTEN_HPP
#define BATTEN_BATTEN_HPP

#include "batten/batten.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
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
  [[nodiscard]] T &&value() && noexcept { return std::move(value_); }
  [[nodiscard]] const Error &error() const noexcept { return error_; }
  T *operator->() noexcept { return &value_; }
  T &operator*() & noexcept { return value_; }

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
  [[nodiscard]] Result<uint32_t> findLane(const char *name) const noexcept {
    Error error;
    uint32_t lane = 0;
    if (batten_bundle_find_lane(bundle_, name, &lane, &error) != BATTEN_OK)
      return error;
    return Result<uint32_t>(std::move(lane));
  }

private:
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
    return Executor(executor);
  }
  [[nodiscard]] batten_executor_t *get() const noexcept { return executor_.get(); }

  /// Runs a lane; the value is the bucket used. outputs has the lane's count of entries, or none.
  [[nodiscard]] Result<uint32_t> run(const Batch &batch, std::span<Output> outputs, uint32_t lane = 0) noexcept {
    static_assert(sizeof(Output) == sizeof(batten_output_view_t));
    Error error;
    uint32_t bucket = 0;
    const batten_batch_t view = batch.toC();
    if (batten_run_lane(executor_.get(), lane, &view, outputs.data(), static_cast<uint32_t>(outputs.size()), &bucket,
                        &error) != BATTEN_OK)
      return error;
    return Result<uint32_t>(std::move(bucket));
  }
  [[nodiscard]] batten_memory_t memory() const noexcept {
    batten_memory_t memory = {};
    (void)batten_executor_get_memory(executor_.get(), &memory);
    return memory;
  }

private:
  struct Destroy {
    void operator()(batten_executor_t *executor) const noexcept { batten_executor_destroy(executor); }
  };
  explicit Executor(batten_executor_t *executor) noexcept : executor_(executor) {}
  std::unique_ptr<batten_executor_t, Destroy> executor_;
};

} // namespace batten

#endif // BATTEN_BATTEN_HPP
