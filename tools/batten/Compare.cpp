// `batten compare`: outputs of two bundles, or of two targets of one, on the same batches: how far they are apart, against
// thresholds; and with --trace the first step that gives other bits.
#include "tools/batten/Agreement.h"
#include "tools/batten/Commands.h"
#include "tools/batten/StepCompare.h"
#include "tools/common/Text.h"

#include <memory>

namespace batten::tools {

using nlohmann::ordered_json;

namespace {

struct CompareOptions {
  BundleOptions a, b;
  std::string lane;
  std::vector<std::string> batches;
  uint32_t threads = 0;
  Thresholds thresholds;
  bool bits = false, trace = false, json = false;
};

/// A bundle that is open and runs.
struct Opened {
  BundlePtr bundle;
  Engine engine;
  Lane lane;
  Opened(const BundleOptions &options, const std::string &laneName, uint32_t threads)
      : bundle(options.open()), engine(bundle.get(), options.path, threads),
        lane(findLane(bundle.get(), options.path, laneName)) {}
  Side side() const { return {bundle.get(), &engine, lane}; }
};

ordered_json describe(const BundleOptions &options, const Opened &opened) {
  batten_bundle_info_t info;
  batten_bundle_get_info(opened.bundle.get(), &info);
  return {{"bundle", options.path},
          {"manifest_sha256", hex(info.manifestDigest)},
          {"target", toString(targetInUse(opened.bundle.get()).name)}};
}

std::string comparePage(const ordered_json &json) {
  auto text = [](const ordered_json &value) {
    return value.is_string() ? printable(value.get<std::string>()) : value.dump();
  };
  auto number = [](const ordered_json &value) { return significant(value.get<double>()); };
  std::string page;
  for (const char *side : {"a", "b"})
    page += std::string(side[0] == 'a' ? "A  " : "B  ") + text(json[side]["bundle"]) + ", " +
            text(json[side]["target"]) + ", manifest sha256 " + text(json[side]["manifest_sha256"]) + "\n";
  page += "lane " + text(json["lane"]) + "; " + std::to_string(json["batches"].size()) +
          (json["batches"].size() == 1 ? " batch\n" : " batches\n");
  Table table("lrrlrrrrr");
  table.add({"output", "rows", "width", "bits", "max abs", "mean abs", "max rel", "least cosine", "argmax agrees"});
  for (const ordered_json &row : json["outputs"]) {
    std::string bits = row["bits_differ"] == 0 ? "equal" : text(row["bits_differ"]) + " differ";
    bits += row["not_finite"] == 0 ? "" : ", " + text(row["not_finite"]) + " not finite";
    table.add({text(row["output"]), text(row["rows"]), text(row["width"]), bits, number(row["max_abs"]),
               number(row["mean_abs"]), number(row["max_rel"]),
               row["least_cosine"].is_null() ? "-" : fixed(row["least_cosine"].get<double>(), 7),
               row["argmax_agreement"].is_null() ? "-" : percent(row["argmax_agreement"].get<double>())});
  }
  page += table.str();
  for (const ordered_json &batch : json["batches"])
    if (batch.contains("trace"))
      page += text(batch["batch"]) + ", by step\n" + stepsPage(batch["trace"]);
  return page;
}

void compare(const CompareOptions &given) {
  CompareOptions options = given;
  requireGiven(options.a.path, "the bundle's path");
  requireGiven(options.b.path, "the second bundle's path");
  if (options.batches.empty())
    failUsage("--batch IN.safetensors is needed");
  options.b.allowWritableByOthers = options.a.allowWritableByOthers;
  if (options.b.target.empty())
    options.b.target = options.a.target;
  std::vector<Batch> batches;
  for (const std::string &path : options.batches)
    batches.push_back(readBatch(path));
  const Opened a(options.a, options.lane, options.threads), b(options.b, a.lane.name, options.threads);
  Agreement agreement(a.lane, b.lane, options.a.path, options.b.path);

  ordered_json json = {{"a", describe(options.a, a)},
                       {"b", describe(options.b, b)},
                       {"lane", a.lane.name},
                       {"batches", ordered_json::array()},
                       {"outputs", ordered_json::array()}};
  std::vector<std::string> failures;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Outputs outputsA = runLane(a.engine, a.lane, batches[i], options.batches[i]),
                  outputsB = runLane(b.engine, b.lane, batches[i], options.batches[i]);
    agreement.add(outputsA, outputsB, options.batches[i], options.thresholds.margin.value_or(0));
    ordered_json entry = {{"batch", options.batches[i]},
                          {"tokens", batches[i].tokenCount()},
                          {"seqs", batches[i].seqCount()},
                          {"markers", batches[i].markerCount()}};
    if (options.trace)
      entry["trace"] = compareSteps(a.side(), b.side(), batches[i], options.batches[i]);
    if (options.bits && options.trace && entry["trace"]["same_bits"] == false)
      failures.push_back(options.batches[i] + ": step " + entry["trace"]["first"]["label"].get<std::string>() +
                         " differs in bits");
    json["batches"].push_back(std::move(entry));
  }
  for (const OutputAgreement &found : agreement.outputs()) {
    json["outputs"].push_back(found.describe());
    if (options.bits && found.all.bitsDiffer)
      failures.push_back("lane " + a.lane.name + ", output " + found.output.name + ": " +
                         std::to_string(found.all.bitsDiffer) + " of " +
                         std::to_string(found.all.rows * found.output.width) + " elements differ in bits, none wanted");
  }
  agreement.addFailures(options.thresholds, failures);
  json["passed"] = failures.empty();
  out().write(options.json ? json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                           : comparePage(json));
  if (failures.empty())
    return;
  std::string message;
  for (const std::string &failure : failures)
    message += (message.empty() ? "" : "\n") + failure;
  fail(message);
}

} // namespace

void addCompare(Program &program) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App *command =
      program.add("compare", "Tell how far two bundles' outputs are apart on the same batches",
                  "batten compare f32.batten bf16.batten --batch in.safetensors --max-abs 0.01 --min-cosine 0.999\n"
                  "  batten compare m.batten m.batten --target x86-64-v3 --target-b x86-64-v4 --batch in.safetensors "
                  "--trace --bits\n\n"
                  "Without a threshold it reports only; where one is broken the exit status is 1. Figures are over all "
                  "batches: A is\n"
                  "what B is compared with. Relative is to A's largest value. Cosine and argmax are by row, of outputs "
                  "wider than 1.");
  options->a.addTo(command);
  command->add_option("second", options->b.path, "The bundle that is compared with it")->type_name("B.batten");
  command->add_option("--target-b", options->b.target, "The second bundle's target; otherwise as --target")
      ->type_name("T");
  command->add_option("--digest-b", options->b.digest, "SHA-256 that the second bundle's manifest.bin must have")
      ->type_name("D");
  command->add_option("--lane", options->lane, "The lane to run; otherwise the first bundle's main one")
      ->type_name("L");
  addThreads(command, &options->threads);
  command->add_option("--batch", options->batches, "A packed batch; may be repeated")
      ->type_name("F")
      ->take_all()
      ->expected(1);
  options->thresholds.addTo(command);
  command->add_flag("--bits", options->bits, "Refuse any difference in bits; with --trace of a step, too");
  command->add_flag("--trace", options->trace, "Name the first step that gives other bits");
  command->add_flag("--json", options->json, "Print JSON");
  program.onRun(command, [options] { compare(*options); });
}

} // namespace batten::tools
