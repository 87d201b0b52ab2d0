// `batten bench`: latency, throughput and shares of this machine's peaks, whole and by step. Measures runs as a server
// has them: one executor, outputs as views, caches as the run before left them.
#include "tools/batten/Batches.h"
#include "tools/batten/Commands.h"
#include "tools/batten/Inspect.h"
#include "tools/batten/Peaks.h"
#include "tools/common/Text.h"

#include <batten/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace batten::tools {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

struct BenchOptions {
  BundleOptions bundle;
  std::string lane;
  std::vector<std::string> batches;
  uint32_t threads = 0, tokens = 0, seqs = 0;
  double seconds = 1;
  bool steps = false, json = false, mapImage = false;
};

struct Machine {
  Isa isa;
  double flopRate, readRate; ///< a second
};

/// A batch to measure, and the bucket that it takes.
struct Item {
  std::string name;
  Batch batch;
  uint32_t bucket;
};

struct Work {
  double flop = 0, bytes = 0;
};

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

void runOnce(const Engine &engine, const Lane &lane, const batten_batch_t &view,
             std::vector<batten_output_view_t> &outputs) {
  batten_error_t error = {};
  check(batten_run_lane(engine.executor.get(), lane.index, &view, outputs.data(), uint32_t(outputs.size()), nullptr,
                        &error),
        error, "run");
}

/// Runs until caches, clock and workers are as they stay.
void warmUp(const BenchOptions &options, const Engine &engine, const Lane &lane, const Batch &batch) {
  std::vector<batten_output_view_t> outputs(lane.outputs.size());
  batten_batch_t view = batch.view();
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < 3 || (i < 1000 && seconds(begin) < options.seconds / 5); ++i)
    runOnce(engine, lane, view, outputs);
}

/// Seconds of each run: at least 100 runs and the asked time, unless a run is so long that ten times that passes first.
std::vector<double> measureRuns(const BenchOptions &options, const Engine &engine, const Lane &lane,
                                const Batch &batch) {
  std::vector<batten_output_view_t> outputs(lane.outputs.size());
  batten_batch_t view = batch.view();
  std::vector<double> times;
  Clock::time_point begin = Clock::now();
  do {
    Clock::time_point start = Clock::now();
    runOnce(engine, lane, view, outputs);
    times.push_back(seconds(start));
  } while (seconds(begin) < options.seconds || (times.size() < 100 && seconds(begin) < 10 * options.seconds));
  std::sort(times.begin(), times.end());
  return times;
}

/// The smallest time that a share of the runs don't exceed.
double percentile(const std::vector<double> &sorted, double share) {
  size_t rank = size_t(share * double(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

Work workOf(const batten_step_info_t &step, const Batch &batch) {
  const uint64_t rows[4] = {batch.tokenCount(), batch.seqCount(), batch.markerCount(), 1};
  double count = double(step.rowKind < 4 ? rows[step.rowKind] : 0);
  return {double(step.flopsPerRow) * count + double(step.flopsPerPair) * double(batch.pairCount(step.pairWindow)),
          double(step.bytesPerRow) * count + double(step.weightBytes)};
}

ordered_json rates(const Work &work, double time, const Machine &machine) {
  return {{"flop", work.flop},
          {"bytes", work.bytes},
          {"gflop_per_s", work.flop / time / 1e9},
          {"share_of_fma_peak", machine.flopRate > 0 ? work.flop / time / machine.flopRate : 0},
          {"gbyte_per_s", work.bytes / time / 1e9},
          {"share_of_read_peak", machine.readRate > 0 ? work.bytes / time / machine.readRate : 0}};
}

double mean(const std::vector<double> &times) {
  double sum = 0;
  for (double time : times)
    sum += time;
  return sum / double(times.size());
}

/// Times each step over its own runs; what is left of the whole (batch check, hand-over between steps) is its own line. The
/// clock reads of profiling cost: the whole of these runs is to be held beside that of the runs without it.
ordered_json measureSteps(const BenchOptions &options, batten_bundle_t *bundle, const Engine &engine, const Lane &lane,
                          const Item &item, const Machine &machine) {
  checkIndex(batten_executor_set_profile(engine.executor.get(), true));
  std::vector<double> times = measureRuns(options, engine, lane, item.batch);
  const double whole = mean(times);
  batten_plan_info_t plan;
  checkIndex(batten_bundle_get_plan(bundle, lane.index, item.bucket, &plan));
  ordered_json steps = ordered_json::array();
  double sum = 0;
  for (uint32_t s = 0; s < plan.stepCount; ++s) {
    batten_step_info_t step;
    uint64_t nanoseconds = 0, runs = 0;
    checkIndex(batten_bundle_get_step(bundle, lane.index, item.bucket, s, &step));
    checkIndex(batten_executor_get_step_time(engine.executor.get(), lane.index, item.bucket, s, &nanoseconds, &runs));
    double time = runs ? double(nanoseconds) / double(runs) * 1e-9 : 0;
    sum += time;
    ordered_json entry = {{"step", toString(step.label)},
                          {"kernel", toString(step.kernel)},
                          {"us", time * 1e6},
                          {"share_of_time", time / whole}};
    entry.update(rates(workOf(step, item.batch), std::max(time, 1e-9), machine));
    steps.push_back(std::move(entry));
  }
  checkIndex(batten_executor_set_profile(engine.executor.get(), false));
  return {{"steps", steps},
          {"steps_us", sum * 1e6},
          {"outside_steps_us", (whole - sum) * 1e6},
          {"profiled_mean_us", whole * 1e6}};
}

ordered_json measureItem(const BenchOptions &options, batten_bundle_t *bundle, const Engine &engine, const Lane &lane,
                         const Item &item, const Machine &machine) {
  warmUp(options, engine, lane, item.batch);
  std::vector<double> times = measureRuns(options, engine, lane, item.batch);
  double p50 = percentile(times, 0.5);
  batten_plan_info_t plan;
  checkIndex(batten_bundle_get_plan(bundle, lane.index, item.bucket, &plan));
  Work work;
  for (uint32_t s = 0; s < plan.stepCount; ++s) {
    batten_step_info_t step;
    checkIndex(batten_bundle_get_step(bundle, lane.index, item.bucket, s, &step));
    Work one = workOf(step, item.batch);
    work.flop += one.flop;
    work.bytes += one.bytes;
  }
  ordered_json json = {{"batch", item.name},
                       {"tokens", item.batch.tokenCount()},
                       {"seqs", item.batch.seqCount()},
                       {"markers", item.batch.markerCount()},
                       {"bucket", bucketName(lane.buckets[item.bucket])},
                       {"runs", times.size()},
                       {"mean_us", mean(times) * 1e6},
                       {"p50_us", p50 * 1e6},
                       {"p95_us", percentile(times, 0.95) * 1e6},
                       {"p99_us", percentile(times, 0.99) * 1e6},
                       {"tokens_per_s", double(item.batch.tokenCount()) / p50}};
  json.update(rates(work, p50, machine));
  if (options.steps)
    json.update(measureSteps(options, bundle, engine, lane, item, machine));
  return json;
}

/// The batches asked for, or made: one sequence each, more only where the model's longest is shorter.
std::vector<Item> makeItems(const BenchOptions &options, const Engine &engine, const Lane &lane) {
  std::vector<Item> items;
  auto add = [&](const std::string &name, Batch batch, bool asked) {
    batten_batch_t view = batch.view();
    batten_error_t error = {};
    uint32_t bucket = 0;
    batten_status_t status = batten_check_batch(engine.executor.get(), lane.index, &view, &bucket, &error);
    if (status == BATTEN_NO_BUCKET && !asked) {
      note(name + " fit no bucket of lane " + lane.name + " and are left out");
      return;
    }
    check(status, error, name);
    items.push_back({name, std::move(batch), bucket});
  };
  for (const std::string &path : options.batches)
    add(path, readBatch(path), true);
  if (!items.empty())
    return items;
  std::vector<uint32_t> sizes = {8, 16, 32, 128, 512};
  if (options.tokens)
    sizes = {options.tokens};
  for (uint32_t tokens : sizes) {
    uint32_t longest = lane.info.maxSeqTokens ? lane.info.maxSeqTokens : tokens;
    uint32_t seqs = options.seqs ? options.seqs : (tokens + longest - 1) / longest;
    add(std::to_string(tokens) + " tokens", makeBatch(lane, tokens, seqs), options.tokens != 0);
  }
  if (items.empty())
    fail("no batch to measure: lane " + lane.name +
         "'s buckets hold none of the default ones; give --tokens or --batch");
  return items;
}

std::string benchPage(const BenchOptions &options, const ordered_json &json) {
  auto number = [](const ordered_json &value, int digits) { return fixed(value.get<double>(), digits); };
  auto text = [](const ordered_json &value) {
    return value.is_string() ? printable(value.get<std::string>()) : value.dump();
  };
  std::string page = printable(options.bundle.path) + ": lane " + text(json["lane"]) + ", target " +
                     text(json["target"]) + ", " + text(json["threads"]) +
                     (json["threads"] == 1 ? " thread\n" : " threads\n");
  page += "this machine's peaks with as many threads: " + number(json["peaks"]["fma_gflop_per_s"], 1) +
          " GFLOP/s (FMA, " + text(json["peaks"]["isa"]) + "), " + number(json["peaks"]["read_gbyte_per_s"], 1) +
          " GB/s (reading memory)\n\n";
  Table table("lrrrlrrrrrrrrr");
  table.add({"batch", "tokens", "seqs", "markers", "bucket", "runs", "p50 us", "p95 us", "p99 us", "tokens/s",
             "GFLOP/s", "of FMA peak", "GB/s", "of read peak"});
  for (const ordered_json &row : json["batches"])
    table.add({text(row["batch"]), text(row["tokens"]), text(row["seqs"]), text(row["markers"]), text(row["bucket"]),
               text(row["runs"]), number(row["p50_us"], 1), number(row["p95_us"], 1), number(row["p99_us"], 1),
               number(row["tokens_per_s"], 0), number(row["gflop_per_s"], 1),
               percent(row["share_of_fma_peak"].get<double>()), number(row["gbyte_per_s"], 1),
               percent(row["share_of_read_peak"].get<double>())});
  page += table.str();
  page += "  (caches feed weights faster than memory does, so a share of the read peak may pass 100 %)\n";
  for (const ordered_json &row : json["batches"]) {
    if (!row.contains("steps"))
      continue;
    page += "\n" + text(row["batch"]) + ", by step\n";
    Table steps("rllrrrrrrrr");
    steps.add({"", "step", "kernel", "us", "of time", "MFLOP", "KB", "GFLOP/s", "of FMA peak", "GB/s", "of read peak"});
    double whole = row["profiled_mean_us"].get<double>(), outside = row["outside_steps_us"].get<double>();
    for (const ordered_json &step : row["steps"])
      steps.add({std::to_string(&step - &row["steps"][0]), text(step["step"]), text(step["kernel"]),
                 number(step["us"], 2), percent(step["share_of_time"].get<double>()),
                 fixed(step["flop"].get<double>() / 1e6, 3), fixed(step["bytes"].get<double>() / 1e3, 1),
                 number(step["gflop_per_s"], 1), percent(step["share_of_fma_peak"].get<double>()),
                 number(step["gbyte_per_s"], 1), percent(step["share_of_read_peak"].get<double>())});
    const double inside = row["steps_us"].get<double>();
    steps.add({"", "all steps", "", fixed(inside, 2), percent(inside / whole), "", "", "", "", "", ""});
    steps.add({"", "(outside steps)", "", fixed(outside, 2), percent(outside / whole), "", "", "", "", "", ""});
    steps.add({"", "whole run, mean", "", fixed(whole, 2), percent(1), "", "", "", "", "", ""});
    const double plain = row["mean_us"].get<double>();
    steps.add({"", "without profiling", "", fixed(plain, 2), percent(plain / whole), "", "", "", "", "", ""});
    page += steps.str();
  }
  return page;
}

void bench(const BenchOptions &options) {
  requireGiven(options.bundle.path, "the bundle's path");
  if (!options.batches.empty() && (options.tokens || options.seqs))
    failUsage("--batch and --tokens exclude each other");
  if (options.seqs && !options.tokens)
    failUsage("--seqs needs --tokens");
  BundlePtr bundle = options.bundle.open(options.mapImage);
  Lane lane = findLane(bundle.get(), options.bundle.path, options.lane);
  Engine engine(bundle.get(), options.bundle.path, options.threads);
  std::vector<Item> items = makeItems(options, engine, lane);
  batten_target_info_t target = targetInUse(bundle.get());
  Machine machine;
  machine.isa = target.arch == BATTEN_ARCH_AARCH64     ? Isa::kNeon
                : target.features & BATTEN_X86_AVX512F ? Isa::kAvx512
                                                       : Isa::kAvx2;
  machine.flopRate = measureFmaPeak(machine.isa, engine.threads);
  machine.readRate = measureReadPeak(engine.threads);
  ordered_json json = {{"bundle", options.bundle.path},
                       {"lane", lane.name},
                       {"target", toString(target.name)},
                       {"threads", engine.threads},
                       {"peaks",
                        {{"isa", isaName(machine.isa)},
                         {"fma_gflop_per_s", machine.flopRate / 1e9},
                         {"read_gbyte_per_s", machine.readRate / 1e9}}},
                       {"batches", ordered_json::array()}};
  for (const Item &item : items) {
    batten_error_t error = {};
    check(batten_executor_prepare(engine.executor.get(), lane.index, item.bucket, &error), error, options.bundle.path);
    json["batches"].push_back(measureItem(options, bundle.get(), engine, lane, item, machine));
  }
  json["memory"] = describeMemory(engine.executor.get());
  out().write(options.json ? json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                           : benchPage(options, json));
  if (!options.json)
    out().write("\nmemory: " + memoryLine(json["memory"]) + "\n");
}

} // namespace

void addBench(Program &program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App *command =
      program.add("bench", "Measure latency, throughput and shares of this machine's peaks",
                  "batten bench minilm.batten --threads 1 --steps\n"
                  "  batten bench minilm.batten --tokens 512 --seqs 16 --json\n"
                  "  perf record batten bench minilm.batten --map-image    # perf names kernels by the image's file");
  options->bundle.addTo(command);
  command->add_option("--lane", options->lane, "The lane to run; otherwise the bundle's main one")->type_name("L");
  addThreads(command, &options->threads);
  command->add_option("--batch", options->batches, "A packed batch to measure; may be repeated")
      ->type_name("F")
      ->take_all()
      ->expected(1);
  command
      ->add_option("--tokens", options->tokens,
                   "Measure one made-up batch of that many tokens instead of 8, 16, 32, 128 and 512")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24).description(""));
  command->add_option("--seqs", options->seqs, "Sequences that --tokens are spread over")
      ->type_name("S")
      ->check(CLI::Range(1, 1 << 24).description(""));
  command->add_option("--seconds", options->seconds, "Time for each batch")
      ->type_name("T")
      ->check(CLI::Range(0.001, 3600.0).description(""));
  command->add_flag("--steps", options->steps, "Measure each step too");
  command->add_flag("--map-image", options->mapImage, "Map code from the image's file, so that perf names kernels");
  command->add_flag("--json", options->json, "Print JSON");
  program.onRun(command, [options] { bench(*options); });
}

} // namespace batten::tools
