// The runtime's executor over a compiler in the same process, for development and tests: the calls of batten.hpp, but a
// bucket's plan is made when the bucket is first used, and graphs can be added. Bits are those of a bundle made ahead of
// time: the same passes make the same plans, packs and code (JitTest). Links LLVM; never part of the runtime.
//
// What is shared. Weights and code belong to the set of lanes: packs are in memory once, however many lanes and buckets use
// them. A plan in use has its own arena, index tables and scratch (a run needs its bucket's only), its plan file, and a copy
// of the code (some 100 KB), since each is a bundle of one lane and one bucket that the runtime opens over the shared packs.
// The compiler's own memory, the graphs as IR, comes on top and is not counted by memory().
#ifndef BATTEN_COMPILER_JIT_H
#define BATTEN_COMPILER_JIT_H

#include "compiler/spec/Spec.h"

#include "batten/batten.hpp"

#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace batten::jit {

/// What an executor is made from; input, bucketsFile, stages, weights and math as CompileRequest has them.
struct Options {
  std::string input;
  std::string bucketsFile;
  std::vector<std::string> stages;
  std::string weights, math;
  std::string target;         ///< must run here; empty: the best that does
  const Pool *pool = nullptr; ///< shared; null: the calling thread only
  bool profile = false;       ///< time each step from the first run on
};

/// A graph to add to an executor.
struct NewGraph {
  std::string lane;  ///< its lane's name, which must be new
  std::string file;  ///< graph.mlir; weights are read from the executor's checkpoint
  std::string graph; ///< symbol in the file without '@'; empty: the lane's name
  std::string stage; ///< of the executor, where buckets is empty, else a new one
  std::vector<Bucket> buckets = {};
};

/// A plan that has been made.
struct WarmPlan {
  uint32_t lane, bucket;
  /// To inspect it: a bundle whose lane 0 and bucket 0 it is. Valid as long as the executor, until the next addGraph.
  const batten::Bundle *bundle;
};

/// Runs batches, one at a time. Calls with the names of batten.hpp's Executor and Bundle do what they do there, with the same
/// statuses and texts; those that need a plan make it, which can also give UNSUPPORTED (the text says what was refused) and
/// OUT_OF_MEMORY, and leaves the executor as it was. Other threads may call run, runInBucket, check, prepare, setProfile,
/// setTrace and addGraph meanwhile and are told BUSY; all else is for the thread that owns the executor.
class Executor {
public:
  /// Reads the model, packs its weights and makes its code; no plan yet.
  ///
  /// Errors: as compile; a target that does not run here, or none that does.
  static llvm::Expected<Executor> create(const Options &options);
  Executor(Executor &&) noexcept;
  Executor &operator=(Executor &&) noexcept;
  ~Executor();

  /// Adds a lane on the same checkpoint and gives its number. Other lanes keep theirs, their plans and their bits. Tensors
  /// that the packs hold already are not stored twice; where the graph brings new weights or kernels, packs or code are
  /// made anew, as in create, and take the place of the old. Plans in use are made again over them: views of outputs and
  /// step times end here.
  ///
  /// Errors: a lane or stage name that is taken or no name, buckets that are none, a stage that is not there, a file that
  ///         readGraph refuses, a graph that is not in it, tensors that the checkpoint lacks or has otherwise, whatever else
  ///         compile refuses; a run on another thread. The executor is then as before.
  llvm::Expected<uint32_t> addGraph(const NewGraph &graph);

  [[nodiscard]] Result<uint32_t> run(const Batch &batch, std::span<Output> outputs, uint32_t lane = 0) noexcept;
  [[nodiscard]] batten_status_t runInBucket(uint32_t bucket, const Batch &batch, std::span<Output> outputs,
                                            uint32_t lane = 0, Error *error = nullptr) noexcept;
  /// Makes the bucket's plan: it is the plan's bundle that checks.
  [[nodiscard]] Result<Fit> check(const Batch &batch, uint32_t lane = 0) noexcept;
  /// Weights once, all else summed over the plans in use.
  [[nodiscard]] batten_memory_t memory() const noexcept;
  /// Makes the plan and faults it in.
  [[nodiscard]] batten_status_t prepare(uint32_t lane, uint32_t bucket, Error *error = nullptr) noexcept;
  [[nodiscard]] batten_status_t setProfile(bool on) noexcept;
  /// Of a bucket without a plan, zeros.
  [[nodiscard]] std::optional<StepTime> stepTime(uint32_t lane, uint32_t bucket, uint32_t step) const noexcept;
  template <typename Trace> [[nodiscard]] batten_status_t setTrace(Trace &trace) noexcept {
    static_assert(std::is_nothrow_invocable_v<Trace &, uint32_t, uint32_t, const Output &>);
    return setTrace(
        [](void *user, uint32_t step, uint32_t rowKind, const batten_output_view_t *view) {
          Output output;
          static_cast<batten_output_view_t &>(output) = *view;
          (*static_cast<Trace *>(user))(step, rowKind, std::as_const(output));
        },
        &trace);
  }
  [[nodiscard]] batten_status_t stopTrace() noexcept { return setTrace(nullptr, nullptr); }

  /// Plans that have been made, by lane, then bucket.
  [[nodiscard]] std::vector<WarmPlan> warm() const;

  /// Texts are valid until the next addGraph.
  [[nodiscard]] uint32_t laneCount() const noexcept;
  [[nodiscard]] Result<uint32_t> findLane(const char *name) const noexcept;
  [[nodiscard]] std::optional<batten_lane_info_t> lane(uint32_t lane) const noexcept;
  [[nodiscard]] std::optional<batten_output_info_t> output(uint32_t lane, uint32_t output) const noexcept;
  [[nodiscard]] std::optional<batten_bucket_info_t> bucket(uint32_t lane, uint32_t bucket) const noexcept;

private:
  struct State;
  explicit Executor(std::unique_ptr<State> state) noexcept;
  batten_status_t setTrace(batten_trace_fn *trace, void *user) noexcept;
  std::unique_ptr<State> state;
};

} // namespace batten::jit

#endif // BATTEN_COMPILER_JIT_H
