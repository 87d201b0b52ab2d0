// `batten inspect`: everything that fixes a bundle's results.
#include "tools/batten/Inspect.h"

#include "tools/batten/Agreement.h"
#include "tools/batten/Commands.h"
#include "tools/common/Text.h"

#include <batten/format.h>

#include <memory>

namespace batten::tools {

using nlohmann::ordered_json;

namespace {

std::vector<std::string> featureNames(uint32_t arch, uint64_t features) {
  static const char *const x86[] = {"sse3",     "ssse3",    "sse4.1",      "sse4.2",     "popcnt",   "cx16",
                                    "lahf",     "avx",      "avx2",        "bmi1",       "bmi2",     "f16c",
                                    "fma",      "lzcnt",    "movbe",       "avx512f",    "avx512bw", "avx512cd",
                                    "avx512dq", "avx512vl", "avx512_bf16", "avx512_vnni"};
  static_assert(BATTEN_X86_AVX512_VNNI == 1ull << (std::size(x86) - 1));
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < 64; ++bit)
    if (features >> bit & 1)
      names.push_back(arch == BATTEN_ARCH_X86_64 && bit < std::size(x86) ? x86[bit] : "bit " + std::to_string(bit));
  return names;
}

std::string archName(uint32_t arch) {
  return arch == BATTEN_ARCH_X86_64    ? "x86-64"
         : arch == BATTEN_ARCH_AARCH64 ? "aarch64"
                                       : "arch " + std::to_string(arch);
}

const char *fileKindName(uint32_t kind) {
  return kind == BATTEN_FILE_PACK    ? "pack"
         : kind == BATTEN_FILE_PLAN  ? "plan"
         : kind == BATTEN_FILE_IMAGE ? "image"
                                     : "?";
}

ordered_json describeLane(const batten_bundle_t *bundle, uint32_t index) {
  Lane lane = readLane(bundle, index);
  batten_text_t stage;
  checkIndex(batten_bundle_get_stage_name(bundle, lane.info.stage, &stage));
  ordered_json reads = {"token_ids", "cu_seqlens"};
  if (lane.info.readsTypes)
    reads.push_back("token_types");
  if (lane.info.readsMarkers) {
    reads.push_back("markers");
    reads.push_back("cu_markers");
  }
  if (lane.info.readsSeqTypes)
    reads.push_back("seq_types");
  ordered_json json = {{"name", lane.name},
                       {"stage", toString(stage)},
                       {"reads", reads},
                       {"ids_below", lane.info.idCount},
                       {"types_below", lane.info.typeCount},
                       {"seq_types_below", lane.info.seqTypeCount},
                       {"longest_sequence", lane.info.maxSeqTokens},
                       {"outputs", ordered_json::array()},
                       {"plans", ordered_json::array()}};
  for (const Lane::Output &output : lane.outputs)
    json["outputs"].push_back({{"name", output.name},
                               {"rows", rowKindName(output.rowKind)},
                               {"width", output.width},
                               {"element", elemName(output.elem)}});
  for (uint32_t b = 0; b < lane.buckets.size(); ++b) {
    const batten_bucket_info_t &bucket = lane.buckets[b];
    batten_plan_info_t plan;
    checkIndex(batten_bundle_get_plan(bundle, index, b, &plan));
    json["plans"].push_back({{"plan", lane.name + "-" + bucketName(bucket)},
                             {"tokens", bucket.tokens},
                             {"seqs", bucket.seqs},
                             {"markers", bucket.markers},
                             {"steps", plan.stepCount},
                             {"kernels", plan.kernelCount},
                             {"arena_bytes", plan.arenaBytes},
                             {"arena_lower_bound_bytes", plan.lowerBoundBytes},
                             {"scratch_bytes_per_worker", plan.scratchBytes}});
  }
  return json;
}

} // namespace

ordered_json describeBundle(const batten_bundle_t *bundle) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  ordered_json json = {{"format", {{"major", info.formatMajor}, {"minor", info.formatMinor}}},
                       {"kernel_abi", info.kernelAbi},
                       {"producer",
                        {{"name", toString(info.producer)},
                         {"version", toString(info.producerVersion)},
                         {"llvm", toString(info.llvmVersion)}}},
                       {"manifest_sha256", hex(info.manifestDigest)},
                       {"model", ordered_json::object()},
                       {"targets", ordered_json::array()},
                       {"lanes", ordered_json::array()},
                       {"agreement", ordered_json::array()},
                       {"self_tests", info.selfTestCount},
                       {"files", ordered_json::array()}};
  for (uint32_t i = 0; i < info.noteCount; ++i) {
    batten_text_t key, value;
    checkIndex(batten_bundle_get_note(bundle, i, &key, &value));
    ordered_json measured;
    if (toString(key) == kAgreementNote)
      measured = ordered_json::parse(toString(value), nullptr, /*allow_exceptions=*/false);
    if (measured.is_object())
      json["agreement"].push_back(std::move(measured));
    else
      json["model"][toString(key)] = toString(value);
  }
  for (uint32_t i = 0; i < info.targetCount; ++i) {
    batten_target_info_t target;
    checkIndex(batten_bundle_get_target(bundle, i, &target));
    json["targets"].push_back({{"name", toString(target.name)},
                               {"arch", archName(target.arch)},
                               {"weights", elemName(target.weights)},
                               {"math", elemName(target.math)},
                               {"features", featureNames(target.arch, target.features)},
                               {"runs_here", target.supported},
                               {"in_use", i == info.target}});
  }
  for (uint32_t i = 0; i < info.laneCount; ++i)
    json["lanes"].push_back(describeLane(bundle, i));
  uint64_t total = 0;
  for (uint32_t i = 0; i < info.fileCount; ++i) {
    batten_file_info_t file;
    checkIndex(batten_bundle_get_file(bundle, i, &file));
    total += file.bytes;
    json["files"].push_back({{"path", toString(file.path)},
                             {"kind", fileKindName(file.kind)},
                             {"bytes", file.bytes},
                             {"sha256", hex(file.digest)}});
  }
  json["bytes"] = total;
  return json;
}

ordered_json describeMemory(const batten_executor_t *executor) {
  batten_memory_t memory;
  checkIndex(batten_executor_get_memory(executor, &memory));
  return {{"weights_mapped_bytes", memory.weightsMapped}, {"weights_resident_bytes", memory.weightsResident},
          {"image_mapped_bytes", memory.imageMapped},     {"image_resident_bytes", memory.imageResident},
          {"plan_tables_bytes", memory.planTables},       {"arena_bytes", memory.arena},
          {"batch_tables_bytes", memory.batchTables},     {"scratch_bytes", memory.scratch}};
}

std::string memoryLine(const ordered_json &memory) {
  auto bytes = [&](const char *key) { return humanBytes(memory[key].get<uint64_t>()); };
  return "weights " + bytes("weights_mapped_bytes") + " mapped, " + bytes("weights_resident_bytes") +
         " resident; code " + bytes("image_mapped_bytes") + "; plans " + bytes("plan_tables_bytes") + "; arena " +
         bytes("arena_bytes") + ", batch tables " + bytes("batch_tables_bytes") + ", scratch " + bytes("scratch_bytes");
}

namespace {

struct InspectOptions {
  BundleOptions bundle;
  std::string plan;
  uint32_t threads = 0;
  bool json = false, memory = false;
};

std::string text(const ordered_json &value) {
  return value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

std::string joined(const ordered_json &values) {
  std::string all;
  for (const ordered_json &value : values)
    all += (all.empty() ? "" : " ") + text(value);
  return all;
}

std::string limit(const ordered_json &value) { return value == 0 ? "-" : text(value); }

std::string bundlePage(const std::string &path, const ordered_json &json) {
  auto bytes = [](const ordered_json &value) { return humanBytes(value.get<uint64_t>()); };
  std::string page = printable(path) + "\n";
  Table head("ll");
  head.add({"format", text(json["format"]["major"]) + "." + text(json["format"]["minor"]) + ", kernel ABI " +
                          text(json["kernel_abi"])});
  head.add({"made by", text(json["producer"]["name"]) + " " + text(json["producer"]["version"]) + ", LLVM " +
                           text(json["producer"]["llvm"])});
  head.add({"manifest", "sha256 " + text(json["manifest_sha256"])});
  head.add(
      {"size", bytes(json["bytes"]) + " in " + std::to_string(json["files"].size()) + " files besides the manifest"});
  head.add({"self-tests", text(json["self_tests"])});
  page += head.str();

  page += "\nmodel\n";
  Table model("ll");
  for (const auto &[key, value] : json["model"].items())
    model.add({printable(key), text(value)});
  page += model.str();

  page += "\ntargets\n";
  Table targets("lllll");
  targets.add({"name", "weights", "math", "runs here", "needs"});
  for (const ordered_json &target : json["targets"])
    targets.add({text(target["name"]), text(target["weights"]), text(target["math"]),
                 target["runs_here"] == false ? "no"
                 : target["in_use"] == true   ? "yes, taken"
                                              : "yes",
                 text(target["arch"]) + ": " + joined(target["features"])});
  page += targets.str();

  page += "\nlanes (the first is the main one)\n";
  Table lanes("lllrrrl");
  lanes.add({"name", "stage", "outputs", "ids below", "types below", "longest sequence", "reads"});
  for (const ordered_json &lane : json["lanes"]) {
    std::string outputs;
    for (const ordered_json &output : lane["outputs"])
      outputs += (outputs.empty() ? "" : ", ") + text(output["name"]) + " [" + text(output["rows"]) + ", " +
                 text(output["width"]) + "] " + text(output["element"]);
    lanes.add({text(lane["name"]), text(lane["stage"]), outputs, limit(lane["ids_below"]), limit(lane["types_below"]),
               limit(lane["longest_sequence"]), joined(lane["reads"])});
  }
  page += lanes.str();

  if (!json["agreement"].empty())
    page += "\nagreement with f32, as the compile's gate measured it\n" +
            agreementPage(json["agreement"].get<std::vector<ordered_json>>(), "  ");

  page += "\nplans (LANE-TOKENSxSEQSxMARKERS)\n";
  Table plans("lrrrrr");
  plans.add({"plan", "steps", "kernels", "arena", "lower bound", "scratch a worker"});
  for (const ordered_json &lane : json["lanes"])
    for (const ordered_json &plan : lane["plans"])
      plans.add({text(plan["plan"]), text(plan["steps"]), text(plan["kernels"]), bytes(plan["arena_bytes"]),
                 bytes(plan["arena_lower_bound_bytes"]), bytes(plan["scratch_bytes_per_worker"])});
  page += plans.str();

  page += "\nfiles\n";
  Table files("llrl");
  files.add({"path", "kind", "bytes", "sha256"});
  for (const ordered_json &file : json["files"])
    files.add({text(file["path"]), text(file["kind"]), text(file["bytes"]), text(file["sha256"])});
  return page + files.str();
}

/// Memory is asked of an executor, so this needs a target that runs here.
void inspectMemory(const InspectOptions &options) {
  BundlePtr bundle = options.bundle.open();
  Engine engine(bundle.get(), options.bundle.path, options.threads);
  ordered_json json = {{"target", toString(targetInUse(bundle.get()).name)}, {"threads", engine.threads}};
  json.update(describeMemory(engine.executor.get()));
  if (options.json)
    out().write(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  else
    out().write(printable(options.bundle.path) + ": an executor of all lanes on " + text(json["target"]) + ", " +
                text(json["threads"]) + (engine.threads == 1 ? " thread\n  " : " threads\n  ") + memoryLine(json) +
                "\n");
}

void inspect(const InspectOptions &options) {
  if (options.memory && !options.plan.empty())
    failUsage("--memory and --plan exclude each other: one arena serves all plans");
  if (options.threads && !options.memory)
    failUsage("--threads needs --memory");
  if (options.memory)
    return inspectMemory(options);
  BundlePtr bundle = options.bundle.openToInspect(BATTEN_VERIFY_STRUCTURE);
  ordered_json json = options.plan.empty() ? describeBundle(bundle.get())
                                           : describePlan(bundle.get(), options.bundle.path, options.plan);
  if (options.json)
    out().write(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  else
    out().write(options.plan.empty() ? bundlePage(options.bundle.path, json) : planPage(json));
}

} // namespace

void addInspect(Program &program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App *command = program.add("inspect", "Tell what is in a bundle",
                                  "batten inspect minilm.batten\n"
                                  "  batten inspect minilm.batten --plan embed-512x128x0 --json\n"
                                  "  batten inspect minilm.batten --memory --threads 4");
  options->bundle.addTo(command);
  command->add_option("--plan", options->plan, "List the steps of that plan")->type_name("LANE-TOKENSxSEQSxMARKERS");
  command->add_flag("--memory", options->memory, "Tell what an executor holds: arena, tables, scratch, weights, code");
  addThreads(command, &options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  program.onRun(command, [options] { inspect(*options); });
}

} // namespace batten::tools
