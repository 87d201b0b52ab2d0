// `batten run`: a batch from a safetensors file, or sequences as lines of JSON, through one lane.
#include "tools/batten/Batches.h"
#include "tools/batten/Commands.h"
#include "tools/batten/Lines.h"
#include "tools/common/Safetensors.h"

#include <memory>

namespace batten::tools {

namespace {

struct RunOptions {
  BundleOptions bundle;
  std::string lane, batch, output;
  uint32_t threads = 0;
  bool jsonl = false;
};

void runBatch(const RunOptions &options, const Engine &engine, const Lane &lane, const Batch &batch) {
  Outputs outputs = runLane(engine, lane, batch, options.batch);
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
  BundlePtr bundle = options.bundle.open();
  Lane lane = findLane(bundle.get(), options.bundle.path, options.lane);
  if (options.jsonl) {
    Engine engine(bundle.get(), options.bundle.path, options.threads);
    runLines(engine, lane);
    return;
  }
  Batch batch = readBatch(options.batch); // before the executor's memory: a bad file is told at once
  Engine engine(bundle.get(), options.bundle.path, options.threads);
  runBatch(options, engine, lane, batch);
}

} // namespace

void addRun(Program &program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command = program.add(
      "run", "Run batches through a bundle",
      "batten run minilm.batten --batch in.safetensors -o out.safetensors\n"
      "  echo '{\"ids\": [101, 7592, 102]}' | batten run minilm.batten --jsonl\n\n"
      "A batch file holds token_ids [T] and cu_seqlens [S+1], and may hold token_types [T], markers [M] with\n"
      "cu_markers [S+1], and seq_types [S]; I32 or I64. Outputs are f32 tensors by name, or, without -o, a line of\n"
      "JSON a sequence. With --jsonl a line is {\"ids\": [..], \"types\": [..], \"markers\": [..], \"type\": 0}, all "
      "but\n"
      "ids optional; lines are answered in order as they come, in batches of up to the largest bucket.");
  options->bundle.addTo(command);
  command->add_option("--lane", options->lane, "The lane to run; otherwise the bundle's main one")->type_name("L");
  addThreads(command, &options->threads);
  command->add_option("--batch", options->batch, "A packed batch")->type_name("IN.safetensors");
  command->add_option("-o", options->output, "Where outputs go, replaced as a whole")->type_name("OUT.safetensors");
  command->add_flag("--jsonl", options->jsonl, "Read sequences from standard input, one a line");
  program.onRun(command, [options] { run(*options); });
}

} // namespace batten::tools
