// `batten run`: a batch from a safetensors file, or sequences as lines of JSON, through one lane. With --check the batch is
// checked only, with --trace every step's rows are written too.
#include "tools/batten/Batches.h"
#include "tools/batten/Commands.h"
#include "tools/batten/Inspect.h"
#include "tools/batten/Lines.h"
#include "tools/batten/Trace.h"
#include "tools/common/Safetensors.h"

#include <memory>

namespace batten::tools {

namespace {

struct RunOptions {
  BundleOptions bundle;
  std::string lane, batch, output, trace;
  uint32_t threads = 0;
  bool jsonl = false, check = false;
};

/// A line of JSON: the bucket that the batch takes, and what it leaves free there.
void checkOnly(const RunOptions &options, const Engine &engine, const Lane &lane, const Batch &batch) {
  const batten_bucket_info_t &bucket = lane.buckets[bucketOf(engine, lane, batch, options.batch)];
  auto counts = [](uint32_t tokens, uint32_t seqs, uint32_t markers) {
    return nlohmann::ordered_json{{"tokens", tokens}, {"seqs", seqs}, {"markers", markers}};
  };
  nlohmann::ordered_json json = {{"plan", lane.name + "-" + bucketName(bucket)},
                                 {"batch", counts(batch.tokenCount(), batch.seqCount(), batch.markerCount())},
                                 {"slack", counts(bucket.tokens - batch.tokenCount(), bucket.seqs - batch.seqCount(),
                                                  bucket.markers - batch.markerCount())}};
  out().write(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void runBatch(const RunOptions &options, const batten_bundle_t *bundle, const Engine &engine, const Lane &lane,
              const Batch &batch) {
  Outputs outputs = options.trace.empty() ? runLane(engine, lane, batch, options.batch)
                                          : runToTrace(bundle, engine, lane, batch, options.batch, options.trace);
  if (options.output.empty()) {
    std::string text;
    appendLines(text, lane, batch, outputs);
    out().write(text);
    return;
  }
  std::vector<OutputTensor> tensors;
  for (size_t i = 0; i < lane.outputs.size(); ++i)
    tensors.push_back({lane.outputs[i].name, outputs.rows[i], lane.outputs[i].width, outputs.data[i].data()});
  writeSafetensors(options.output, tensors);
}

void run(const RunOptions &options) {
  requireGiven(options.bundle.path, "the bundle's path");
  if (options.jsonl == !options.batch.empty())
    failUsage(options.jsonl ? "--batch and --jsonl exclude each other"
                            : "one of --batch IN.safetensors and --jsonl is needed");
  if (options.jsonl && !options.output.empty())
    failUsage("-o goes with --batch; --jsonl answers on standard output");
  if (options.jsonl && (options.check || !options.trace.empty()))
    failUsage(std::string(options.check ? "--check" : "--trace") +
              " goes with --batch; with --jsonl batches are formed as lines come");
  if (options.check && (!options.output.empty() || !options.trace.empty()))
    failUsage("--check runs nothing: it goes with neither -o nor --trace");
  BundlePtr bundle = options.bundle.open();
  Lane lane = findLane(bundle.get(), options.bundle.path, options.lane);
  if (options.jsonl) {
    Engine engine(bundle.get(), options.bundle.path, options.threads);
    runLines(engine, lane);
    return;
  }
  Batch batch = readBatch(options.batch); // before the executor's memory: a bad file is told at once
  Engine engine(bundle.get(), options.bundle.path, options.threads);
  if (options.check)
    checkOnly(options, engine, lane, batch);
  else
    runBatch(options, bundle.get(), engine, lane, batch);
}

} // namespace

void addRun(Program &program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command = program.add(
      "run", "Run batches through a bundle",
      "batten run minilm.batten --batch in.safetensors -o out.safetensors\n"
      "  echo '{\"ids\": [101, 7592, 102]}' | batten run minilm.batten --jsonl\n"
      "  batten run minilm.batten --batch in.safetensors --trace steps    # steps/embed.safetensors\n\n"
      "A batch file holds token_ids [T] and cu_seqlens [S+1], and may hold token_types [T], markers [M] with\n"
      "cu_markers [S+1], and seq_types [S]; I32 or I64. Outputs are f32 tensors by name, or, without -o, a line of\n"
      "JSON a sequence. With --jsonl a line is {\"ids\": [..], \"types\": [..], \"markers\": [..], \"type\": 0}, all "
      "but\n"
      "ids optional; lines are answered in order as they come, in batches of up to the largest bucket.\n"
      "A trace is DIR/LANE.safetensors: a tensor a step, \"NNN LABEL\" [rows of the batch, width].");
  options->bundle.addTo(command);
  command->add_option("--lane", options->lane, "The lane to run; otherwise the bundle's main one")->type_name("L");
  addThreads(command, &options->threads);
  command->add_option("--batch", options->batch, "A packed batch")->type_name("IN.safetensors");
  command->add_option("-o", options->output, "Where outputs go, replaced as a whole")->type_name("OUT.safetensors");
  command->add_option("--trace", options->trace, "Write what each step wrote into this folder; made if missing")
      ->type_name("DIR");
  command->add_flag("--check", options->check, "Check the batch, tell its bucket and slack as JSON, run nothing");
  command->add_flag("--jsonl", options->jsonl, "Read sequences from standard input, one a line");
  program.onRun(command, [options] { run(*options); });
}

} // namespace batten::tools
