// See the header. Each plan in use is opened by the runtime as a bundle of its own, so that everything of a run, checks and
// texts included, is the runtime's. Only what needs all buckets of a lane is told here: that there is no such lane or
// bucket, and that no bucket holds a batch.
#include "compiler/Jit.h"
#include "compiler/JitLanes.h"
#include "compiler/graph/Import.h"
#include "compiler/spec/Text.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <optional>

namespace batten::jit {
namespace {

/// A plan in use. What the bundle reads comes first and goes last.
struct OpenPlan {
  std::shared_ptr<const Packs> packs;
  PlanBlobs blobs;
  Bundle bundle;
  batten::Executor executor;
};

/// By lane and bucket.
using Plans = std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<OpenPlan>>;

template <typename... Values>
Error failure(batten_status_t status, uint64_t found, uint64_t limit, const char *format, Values... values) {
  Error error;
  error.status = status;
  error.found = found;
  error.limit = limit;
  std::snprintf(error.message, sizeof(error.message), format, values...);
  return error;
}

Error noLane(uint32_t lane, size_t count) {
  return failure(BATTEN_BAD_ARGUMENT, lane, count, "no lane %u, the bundle has %zu", lane, count);
}

/// What the compiler refused, by its first cause, which is the last line.
Error refusal(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  return failure(BATTEN_UNSUPPORTED, 0, 0, "%s", text.c_str() + text.rfind('\n') + 1);
}

/// What the runtime refused of a new plan, whose bytes nobody else has: there is nothing to ship again.
Error refusal(const Error &error) {
  return error.status == BATTEN_OUT_OF_MEMORY
             ? error
             : failure(BATTEN_UNSUPPORTED, error.found, error.limit, "the new plan does not open: %s", error.message);
}

bool holds(const Bucket &bucket, const batten_batch_t &batch) {
  return batch.tokenCount <= bucket.tokens && batch.seqCount <= bucket.seqs && batch.markerCount <= bucket.markers;
}

/// What batten_run says where no bucket of a stage holds a batch.
Error noBucket(const StageSpec &stage, const batten_batch_t &batch) {
  Bucket largest;
  for (const Bucket &bucket : stage.buckets) {
    largest.tokens = std::max(largest.tokens, bucket.tokens);
    largest.seqs = std::max(largest.seqs, bucket.seqs);
    largest.markers = std::max(largest.markers, bucket.markers);
  }
  struct Side {
    const char *name;
    uint32_t found, limit;
  };
  const Side sides[] = {{"tokens", batch.tokenCount, largest.tokens},
                        {"seqs", batch.seqCount, largest.seqs},
                        {"markers", batch.markerCount, largest.markers}};
  const Side *over = llvm::find_if(sides, [](const Side &side) { return side.found > side.limit; });
  if (over == std::end(sides)) // each bucket is too small on another side
    over = sides;
  Error error = failure(
      BATTEN_NO_BUCKET, over->found, over->limit,
      "%u tokens, %u sequences, %u markers: no bucket of stage \"%s\" holds them, the largest have %u, %u and %u",
      batch.tokenCount, batch.seqCount, batch.markerCount, stage.name.c_str(), largest.tokens, largest.seqs,
      largest.markers);
  std::snprintf(error.where, sizeof(error.where), "%s", over->name);
  std::snprintf(error.section, sizeof(error.section), "%s", stage.name.c_str());
  return error;
}

/// Holds the executor for a call; false where another thread has it.
class Entry {
public:
  explicit Entry(std::atomic<bool> &busy) : busy(busy), entered(!busy.exchange(true, std::memory_order_acquire)) {}
  ~Entry() {
    if (entered)
      busy.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return entered; }

private:
  std::atomic<bool> &busy;
  bool entered;
};

constexpr const char *kBusy = "the executor is running on another thread";

Error isBusy() { return failure(BATTEN_BUSY, 0, 0, "%s", kBusy); }

} // namespace

struct Executor::State {
  /// Opens the plan of a bucket that is there.
  Result<std::unique_ptr<OpenPlan>> open(const Lanes &lanes, uint32_t lane, uint32_t bucket);
  /// The plan of a bucket, made where it is new; null with error set where it can't be.
  OpenPlan *planOf(uint32_t lane, uint32_t bucket, Error &error);
  /// Sets error where there is no such lane or bucket.
  bool exists(uint32_t lane, uint32_t bucket, Error &error) const;
  /// The smallest bucket that holds a batch, and its plan; null with error set where there is none.
  OpenPlan *planFor(const Batch &batch, uint32_t lane, std::optional<uint32_t> &bucket, Error &error);
  /// The stage of a new graph: one that is there, or the new one, which is added.
  llvm::Expected<StageSpec> stageFor(const NewGraph &graph, Spec &spec) const;

  std::optional<Pool> pool;
  Target target;
  LoweringContext context;
  LoadedModel model; ///< before the passes, so that graphs can be added
  std::shared_ptr<const Lanes> lanes;
  Plans plans;
  bool profile = false;
  batten_trace_fn *trace = nullptr;
  void *traceUser = nullptr;
  std::atomic<bool> busy = false;
};

Executor::Executor(std::unique_ptr<State> state) noexcept : state(std::move(state)) {}
Executor::Executor(Executor &&) noexcept = default;
Executor &Executor::operator=(Executor &&) noexcept = default;
Executor::~Executor() = default;

llvm::Expected<Executor> Executor::create(const Options &options) {
  auto state = std::make_unique<State>();
  state->profile = options.profile;
  if (options.pool)
    state->pool.emplace(*options.pool);
  CompileRequest request;
  request.input = options.input;
  request.bucketsFile = options.bucketsFile;
  request.stages = options.stages;
  request.weights = options.weights;
  request.math = options.math;
  llvm::Expected<LoadedModel> model = loadModel(state->context, request);
  if (!model)
    return model.takeError();
  state->model = std::move(*model);
  batten_elem math = elemNamed(state->model.spec.precision.math);
  llvm::Expected<Target> target = options.target.empty() ? hostTarget(math) : lookupTarget(options.target);
  if (!target)
    return target.takeError();
  if (llvm::Error error = llvm::joinErrors(checkMath(*target, math), checkHostRuns(*target)))
    return std::move(error);
  state->target = *target;
  llvm::Expected<std::shared_ptr<Lanes>> lanes = Lanes::make(state->context, *state->model.module, state->model.spec,
                                                             *state->model.checkpoint, state->target, nullptr);
  if (!lanes)
    return lanes.takeError();
  state->lanes = std::move(*lanes);
  return Executor(std::move(state));
}

Result<std::unique_ptr<OpenPlan>> Executor::State::open(const Lanes &lanes, uint32_t lane, uint32_t bucket) {
  llvm::Expected<PlanBlobs> blobs = lanes.lower(context, lane, bucket);
  if (!blobs)
    return refusal(blobs.takeError());
  std::vector<batten_blob_t> views;
  auto view = [&](const CompiledBlob &blob) { views.push_back({blob.path().c_str(), blob.data(), blob.size()}); };
  view(blobs->manifest);
  view(blobs->plan);
  view(lanes.code()->blob);
  llvm::for_each(lanes.packs()->blobs, view);
  Result<Bundle> bundle = Bundle::open(views);
  if (!bundle)
    return refusal(bundle.error());
  Result<batten::Executor> executor = batten::Executor::create(*bundle, pool ? &*pool : nullptr, profile);
  if (!executor)
    return refusal(executor.error());
  (void)batten_executor_set_trace(executor->get(), trace, traceUser); // it is new, so nobody runs it
  return std::unique_ptr<OpenPlan>(
      new OpenPlan{lanes.packs(), std::move(*blobs), std::move(*bundle), std::move(*executor)});
}

OpenPlan *Executor::State::planOf(uint32_t lane, uint32_t bucket, Error &error) {
  std::unique_ptr<OpenPlan> &plan = plans[{lane, bucket}];
  if (plan)
    return plan.get();
  Result<std::unique_ptr<OpenPlan>> opened = open(*lanes, lane, bucket);
  if (opened) {
    plan = std::move(*opened);
    return plan.get();
  }
  error = opened.error();
  plans.erase({lane, bucket});
  return nullptr;
}

bool Executor::State::exists(uint32_t lane, uint32_t bucket, Error &error) const {
  if (lane >= lanes->lanes().size())
    error = noLane(lane, lanes->lanes().size());
  else if (size_t count = lanes->stageOf(lane).buckets.size(); bucket >= count)
    error = failure(BATTEN_BAD_ARGUMENT, bucket, count, "no bucket %u", bucket);
  else
    return true;
  return false;
}

OpenPlan *Executor::State::planFor(const Batch &batch, uint32_t lane, std::optional<uint32_t> &bucket, Error &error) {
  if (batch.checkSizes(error) != BATTEN_OK || !exists(lane, 0, error))
    return nullptr;
  const StageSpec &stage = lanes->stageOf(lane);
  const batten_batch_t view = batch.toC();
  auto found = llvm::find_if(stage.buckets, [&](const Bucket &each) { return holds(each, view); });
  if (found == stage.buckets.end()) {
    error = noBucket(stage, view);
    return nullptr;
  }
  bucket = static_cast<uint32_t>(found - stage.buckets.begin());
  return planOf(lane, *bucket, error);
}

Result<uint32_t> Executor::run(const Batch &batch, std::span<Output> outputs, uint32_t lane) noexcept {
  Entry entry(state->busy);
  if (!entry)
    return isBusy();
  Error error;
  std::optional<uint32_t> bucket;
  OpenPlan *plan = state->planFor(batch, lane, bucket, error);
  if (!plan)
    return error;
  if (Result<uint32_t> ran = plan->executor.run(batch, outputs); !ran)
    return ran.error();
  return Result<uint32_t>(std::move(*bucket));
}

batten_status_t Executor::runInBucket(uint32_t bucket, const Batch &batch, std::span<Output> outputs, uint32_t lane,
                                      Error *error) noexcept {
  Error own;
  Error &into = error ? *error : own;
  Entry entry(state->busy);
  if (!entry)
    return (into = isBusy()).status;
  if (batch.checkSizes(into) != BATTEN_OK)
    return into.status;
  OpenPlan *plan = state->exists(lane, bucket, into) ? state->planOf(lane, bucket, into) : nullptr;
  return plan ? plan->executor.runInBucket(0, batch, outputs, 0, &into) : into.status;
}

Result<Fit> Executor::check(const Batch &batch, uint32_t lane) noexcept {
  Entry entry(state->busy);
  if (!entry)
    return isBusy();
  Error error;
  std::optional<uint32_t> bucket;
  OpenPlan *plan = state->planFor(batch, lane, bucket, error);
  if (!plan)
    return error;
  Result<Fit> fit = plan->executor.check(batch);
  if (fit)
    fit->bucket = *bucket;
  return fit;
}

batten_status_t Executor::prepare(uint32_t lane, uint32_t bucket, Error *error) noexcept {
  Error own;
  Error &into = error ? *error : own;
  Entry entry(state->busy);
  if (!entry)
    return (into = isBusy()).status;
  if (!state->exists(lane, bucket, into)) {
    into = failure(BATTEN_BAD_ARGUMENT, bucket, 0, "no lane %u with a bucket %u", lane, bucket);
    into.index = lane;
    return into.status;
  }
  OpenPlan *plan = state->planOf(lane, bucket, into);
  return plan ? plan->executor.prepare(0, 0, &into) : into.status;
}

llvm::Expected<StageSpec> Executor::State::stageFor(const NewGraph &graph, Spec &spec) const {
  std::vector<llvm::StringRef> names;
  for (const StageSpec &stage : spec.stages)
    names.push_back(stage.name);
  auto found = llvm::find(names, graph.stage);
  if (graph.buckets.empty()) {
    if (found == names.end())
      return makeError("addGraph: no stage " + quoted(graph.stage) + didYouMean(graph.stage, names) +
                       " (there: " + joined(names) + "), and no buckets for a new one");
    return spec.stages[found - names.begin()];
  }
  if (found != names.end())
    return makeError("addGraph: stage " + quoted(graph.stage) + " is there already; without buckets the lane uses it");
  StageSpec stage{graph.stage, graph.buckets, "addGraph"};
  if (llvm::Error error = checkStage(stage))
    return std::move(error);
  spec.stages.push_back(stage);
  return stage;
}

llvm::Expected<uint32_t> Executor::addGraph(const NewGraph &graph) {
  State &s = *state;
  Entry entry(s.busy);
  if (!entry)
    return makeError(kBusy);
  // All is made beside what is in use, which it replaces at the end.
  Spec spec = s.model.spec;
  if (llvm::Error error = checkLaneName(graph.lane, "addGraph"))
    return std::move(error);
  if (llvm::any_of(spec.lanes, [&](const LaneSpec &lane) { return lane.name == graph.lane; }))
    return makeError("addGraph: lane " + quoted(graph.lane) + " is there already");
  llvm::Expected<StageSpec> stage = s.stageFor(graph, spec);
  if (!stage)
    return stage.takeError();
  bool isNewStage = spec.stages.size() > s.model.spec.stages.size();
  LaneSpec lane;
  lane.name = graph.lane;
  lane.graph = graph.graph.empty() ? graph.lane : graph.graph;
  lane.stage = stage->name;
  lane.place = "addGraph";
  spec.lanes.push_back(lane);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> added = readGraph(s.context.get(), graph.file);
  if (!added)
    return added.takeError();
  if (llvm::Error error = addStages(**added, isNewStage ? llvm::ArrayRef(*stage) : llvm::ArrayRef<StageSpec>(), lane))
    return std::move(error);
  mlir::OwningOpRef<mlir::ModuleOp> graphs = s.model.module->clone();
  if (llvm::Error error = mergeLanes(*graphs, **added))
    return makeError("addGraph: " + llvm::toString(std::move(error)));
  for (llvm::StringRef dir : weightDirs(*graphs))
    if (!dir.empty())
      if (llvm::Error error = s.model.checkpoint->addDirectory(dir))
        return std::move(error);
  llvm::Expected<std::shared_ptr<Lanes>> lanes =
      Lanes::make(s.context, *graphs, spec, *s.model.checkpoint, s.target, s.lanes.get());
  if (!lanes)
    return lanes.takeError();
  Plans plans;
  for (const auto &[key, plan] : s.plans) {
    Result<std::unique_ptr<OpenPlan>> opened = s.open(**lanes, key.first, key.second);
    if (!opened)
      return makeError("addGraph: lane " + quoted(spec.lanes[key.first].name) + ": " + opened.error().message);
    plans[key] = std::move(*opened);
  }
  s.model.module = std::move(graphs);
  s.model.spec = std::move(spec);
  s.lanes = std::move(*lanes);
  s.plans = std::move(plans);
  return laneCount() - 1;
}

batten_memory_t Executor::memory() const noexcept {
  batten_memory_t sum = {};
  for (const CompiledBlob &pack : state->lanes->packs()->blobs)
    sum.weightsMapped += pack.size();
  sum.weightsResident = sum.weightsMapped; // they were written here
  for (const auto &[key, plan] : state->plans) {
    const batten_memory_t one = plan->executor.memory();
    sum.weightsResident = one.weightsResident; // the same packs in all
    sum.imageMapped += one.imageMapped;
    sum.imageResident += one.imageResident;
    sum.planTables += one.planTables;
    sum.arena += one.arena;
    sum.batchTables += one.batchTables;
    sum.scratch += one.scratch;
  }
  return sum;
}

batten_status_t Executor::setProfile(bool on) noexcept {
  Entry entry(state->busy);
  if (!entry)
    return BATTEN_BUSY;
  state->profile = on;
  for (const auto &[key, plan] : state->plans)
    (void)batten_executor_set_profile(plan->executor.get(), on); // nobody runs it: the entry is ours
  return BATTEN_OK;
}

batten_status_t Executor::setTrace(batten_trace_fn *trace, void *user) noexcept {
  Entry entry(state->busy);
  if (!entry)
    return BATTEN_BUSY;
  state->trace = trace;
  state->traceUser = user;
  for (const auto &[key, plan] : state->plans)
    (void)batten_executor_set_trace(plan->executor.get(), trace, user);
  return BATTEN_OK;
}

std::optional<StepTime> Executor::stepTime(uint32_t lane, uint32_t bucket, uint32_t step) const noexcept {
  Error error;
  if (!state->exists(lane, bucket, error))
    return std::nullopt;
  auto plan = state->plans.find({lane, bucket});
  return plan == state->plans.end() ? StepTime{} : plan->second->executor.stepTime(0, 0, step);
}

std::vector<WarmPlan> Executor::warm() const {
  std::vector<WarmPlan> plans;
  for (const auto &[key, plan] : state->plans)
    plans.push_back({key.first, key.second, &plan->bundle});
  return plans;
}

uint32_t Executor::laneCount() const noexcept { return static_cast<uint32_t>(state->lanes->lanes().size()); }

Result<uint32_t> Executor::findLane(const char *name) const noexcept {
  std::string names;
  for (uint32_t lane = 0; lane < laneCount(); ++lane) {
    const std::string &found = state->lanes->lanes()[lane].name;
    if (found == name)
      return Result<uint32_t>(std::move(lane));
    names += (lane ? ", " : "") + found;
  }
  return failure(BATTEN_BAD_ARGUMENT, 0, laneCount(), "no lane \"%.100s\"; the bundle has %.299s", name, names.c_str());
}

static batten_text_t textOf(const std::string &text) { return {text.data(), text.size()}; }

std::optional<batten_lane_info_t> Executor::lane(uint32_t lane) const noexcept {
  if (lane >= laneCount())
    return std::nullopt;
  const ManifestLane &entry = state->lanes->lanes()[lane];
  return batten_lane_info_t{textOf(entry.name),
                            entry.stage,
                            static_cast<uint32_t>(state->lanes->stageOf(lane).buckets.size()),
                            static_cast<uint32_t>(entry.outputs.size()),
                            (entry.inputs & BATTEN_INPUT_TOKEN_TYPES) != 0,
                            (entry.inputs & BATTEN_INPUT_MARKERS) != 0,
                            (entry.inputs & BATTEN_INPUT_SEQ_TYPES) != 0,
                            entry.idCount,
                            entry.typeCount,
                            entry.seqTypeCount,
                            entry.maxSeqTokens};
}

std::optional<batten_output_info_t> Executor::output(uint32_t lane, uint32_t output) const noexcept {
  if (lane >= laneCount() || output >= state->lanes->lanes()[lane].outputs.size())
    return std::nullopt;
  const ManifestOutput &entry = state->lanes->lanes()[lane].outputs[output];
  return batten_output_info_t{textOf(entry.name), static_cast<uint32_t>(entry.rowKind), entry.width,
                              static_cast<uint32_t>(entry.elem)};
}

std::optional<batten_bucket_info_t> Executor::bucket(uint32_t lane, uint32_t bucket) const noexcept {
  Error error;
  if (!state->exists(lane, bucket, error))
    return std::nullopt;
  const Bucket &entry = state->lanes->stageOf(lane).buckets[bucket];
  return batten_bucket_info_t{entry.tokens, entry.seqs, entry.markers};
}

} // namespace batten::jit
