// Command line of `batten import` and `batten compile` over compiler/Compile.h. Called batten in help and errors, since
// that is what users type.
#include "tools/batten-compile/Gate.h"
#include "tools/batten-compile/Progress.h"
#include "tools/batten/Agreement.h"
#include "tools/common/Command.h"
#include "tools/common/Text.h"

#include "compiler/Compile.h"

#include <algorithm>
#include <memory>

using namespace batten::tools;
using batten::CompileRequest;
using batten::CompileSummary;

namespace {

struct CompileOptions {
  CompileRequest request;
  Thresholds thresholds;
  bool quiet = false;
};

struct ImportOptions {
  std::string modelDir, output;
  bool quiet = false, force = false;
};

/// What was done, on stderr.
void printSummary(const CompileSummary &summary, const std::string &output, const std::string &agreement = "") {
  std::string text;
  for (const std::string &line : summary.notes)
    note(line);
  if (!summary.unusedTensors.empty()) {
    std::string names;
    for (const std::string &name : summary.unusedTensors)
      names += (names.empty() ? "" : ", ") + name;
    note("tensors that no lane reads: " + names);
  }
  auto joined = [](const std::vector<std::string> &names) {
    std::string all;
    for (const std::string &name : names)
      all += (all.empty() ? "" : ", ") + name;
    return all;
  };
  text += "wrote " + printable(output) + ": " + humanBytes(summary.bytes) + " in " +
          std::to_string(summary.files.size()) + " files\n";
  if (!summary.lanes.empty())
    text += "  lanes " + printable(joined(summary.lanes)) +
            (summary.targets.empty() ? "" : "; targets " + printable(joined(summary.targets))) + "\n";
  Table files("lr");
  for (const CompileSummary::File &file : summary.files)
    files.add({printable(file.path), humanBytes(file.bytes)});
  text += files.str("  ");
  if (!agreement.empty())
    text += "agreement with f32\n" + agreement;
  Table stages("lr");
  double total = 0;
  for (const CompileSummary::Stage &stage : summary.stages) {
    stages.add({printable(stage.name), fixed(stage.seconds, 2) + " s"});
    total += stage.seconds;
  }
  stages.add({"in all", fixed(total, 2) + " s"});
  text += "time\n" + stages.str("  ");
  if (!summary.manifestDigest.empty())
    text += "manifest sha256 " + summary.manifestDigest + "\n";
  writeError(text);
}

void runCompile(const CompileOptions &options) {
  CompileRequest request = options.request;
  requireGiven(request.input, "batten.toml or MODEL_DIR");
  requireGiven(request.output, "-o NAME.batten");
  std::vector<std::string> known = batten::knownTargets();
  for (const std::string &target : request.targets)
    if (std::find(known.begin(), known.end(), target) == known.end()) {
      std::string names;
      for (const std::string &name : known)
        names += (names.empty() ? "" : ", ") + name;
      failUsage("--target: no code is made for '" + target + "', only for " + names + didYouMean(target, known));
    }
  const Thresholds &held = options.thresholds;
  request.gate.maxAbs = held.maxAbs;
  request.gate.maxMean = held.maxMean;
  request.gate.maxRel = held.maxRel;
  request.gate.minCosine = held.minCosine;
  request.gate.minArgmax = held.minArgmax;
  request.gate.margin = held.margin;
  std::string agreement; // for the summary
  request.measure = [&](const std::string &directory,
                        const batten::GateSpec &gate) -> llvm::Expected<batten::CompileNotes> {
    llvm::Expected<std::vector<nlohmann::ordered_json>> rows = measureGate(options.request, directory, gate);
    if (!rows)
      return rows.takeError();
    agreement = agreementPage(*rows, "  ");
    batten::CompileNotes notes;
    for (const nlohmann::ordered_json &row : *rows)
      notes.emplace_back(kAgreementNote, row.dump());
    return notes;
  };
  auto progress = std::make_shared<Progress>(options.quiet);
  request.progress = [progress](const batten::CompileProgress &now) { progress->show(now); };
  llvm::Expected<CompileSummary> summary = batten::compile(request);
  progress->finish();
  if (!summary)
    fail(llvm::toString(summary.takeError()));
  if (!options.quiet)
    printSummary(*summary, request.output, agreement);
}

void runImport(const ImportOptions &options) {
  requireGiven(options.modelDir, "MODEL_DIR");
  requireGiven(options.output, "-o DIR");
  llvm::Expected<CompileSummary> summary = batten::importModel(options.modelDir, options.output, options.force);
  if (!summary)
    fail(llvm::toString(summary.takeError()));
  if (!options.quiet)
    printSummary(*summary, options.output);
}

void addCompile(Program &program) {
  auto options = std::make_shared<CompileOptions>();
  CompileRequest &request = options->request;
  CLI::App *command = program.add(
      "compile", "Compile a model directory or a spec into a bundle",
      "batten compile all-MiniLM-L6-v2/ -o minilm.batten\n"
      "  batten compile batten.toml -o minilm.batten --target x86-64-v3 --target x86-64-v4\n"
      "  batten compile model/ -o bf16.batten --weights bf16 --batch in.safetensors --min-cosine 0.9999\n\n"
      "A bucket file has four columns, `stage tokens seqs markers`; # starts a comment. What is at NAME.batten\n"
      "is replaced as a whole; a failure or a kill leaves what was there. With a batch, the new bundle is compared "
      "with\n"
      "f32 weights and f32 math on it, and refused where it breaks a threshold; what is measured is kept in it. These\n"
      "options go before the same keys of the spec's [gate].");
  command->add_option("input", request.input, "A spec, or a model directory (config.json, model.safetensors ..)")
      ->type_name("batten.toml|MODEL_DIR");
  command->add_option("-o", request.output, "The bundle's directory")->type_name("NAME.batten");
  command
      ->add_option("--target", request.targets,
                   "Make code for this target; may be repeated; otherwise the spec's, or all that gain")
      ->type_name("T")
      ->take_all()
      ->expected(1);
  command->add_option("--buckets", request.bucketsFile, "Table of buckets; otherwise the spec's, or a default one")
      ->type_name("FILE");
  command
      ->add_option(
          "--stage", request.stages,
          "The stage that a lane uses; may be repeated; otherwise the spec's stage, or the table's of the lane's\n"
          "name, or its only one")
      ->type_name("LANE=STAGE")
      ->take_all()
      ->expected(1);
  command
      ->add_option("--weights", request.weights,
                   "How weights are stored: f32, f16, bf16 or i8; otherwise what the math takes")
      ->type_name("W")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "i8"}));
  command->add_option("--math", request.math, "What linears multiply in: f32, bf16 or i8; otherwise f32")
      ->type_name("M")
      ->check(CLI::IsMember({"f32", "bf16", "i8"}));
  command->add_option("--batch", request.gate.batches, "A packed batch that the gate measures with; may be repeated")
      ->type_name("F")
      ->take_all()
      ->expected(1);
  command->add_option("--lane", request.gate.lane, "The lane that the gate measures; otherwise every lane")
      ->type_name("L");
  options->thresholds.addTo(command);
  command->add_flag("--quiet", options->quiet, "No progress and no summary, errors only");
  program.onRun(command, [options] { runCompile(*options); });
}

void addImport(Program &program) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App *command = program.add("import", "Write graph.mlir and batten.toml for a model directory",
                                  "batten import all-MiniLM-L6-v2/ -o minilm/\n"
                                  "  batten compile minilm/batten.toml -o minilm.batten");
  command->add_option("model", options->modelDir, "The model's directory; its checkpoint stays where it is")
      ->type_name("MODEL_DIR");
  command->add_option("-o", options->output, "Where the two files go")->type_name("DIR");
  command->add_flag("--force", options->force, "Replace the files where they exist");
  command->add_flag("--quiet", options->quiet, "No summary, errors only");
  program.onRun(command, [options] { runImport(*options); });
}

} // namespace

int main(int argc, char **argv) {
  Program program("batten", "Imports and compiles transformer encoders.");
  addImport(program);
  addCompile(program);
  return program.main(argc, argv);
}
