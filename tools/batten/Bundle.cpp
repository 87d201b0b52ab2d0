// Opening bundles and asking them.
#include "tools/batten/Bundle.h"

#include "tools/common/Command.h"
#include "tools/common/Text.h"

#include <array>

namespace batten::tools {

void check(batten_status_t status, const batten_error_t &error, const std::string &where) {
  if (status == BATTEN_OK)
    return;
  std::string message = error.message[0] ? error.message : batten_status_name(status);
  fail(message.starts_with(where + ":") ? message
                                        : where + ": " + message); // the runtime names a bundle's own path itself
}

void checkIndex(batten_status_t status) {
  if (status != BATTEN_OK)
    fail(std::string("the bundle can't be asked: ") + batten_status_name(status));
}

std::string toString(batten_text_t text) { return std::string(text.data, text.bytes); }

const char *rowKindName(uint32_t rowKind) {
  static const char *const names[] = {"tokens", "seqs", "markers", "one"};
  return rowKind < 4 ? names[rowKind] : "?";
}

std::string elemName(uint32_t elem) {
  static const char *const names[] = {"?", "f32", "f16", "bf16", "i8"};
  return elem < 5 ? names[elem] : "?";
}

void BundleOptions::addTo(CLI::App *command) {
  command->add_option("bundle", path, "The bundle's directory")->type_name("NAME.batten");
  command->add_option("--digest", digest, "SHA-256 that manifest.bin must have (64 hexadecimal digits)")
      ->type_name("D");
  command->add_option("--target", target, "Use this target only; otherwise the best that runs here")->type_name("T");
  command->add_flag("--allow-writable-by-others", allowWritableByOthers, "Accept files that group or others may write");
}

BundlePtr BundleOptions::open(bool mapImage) const {
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.mapImage = mapImage;
  return open(options);
}

BundlePtr BundleOptions::openToInspect(batten_verify_level_t level) const {
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.level = level;
  options.inspectOnly = true;
  return open(options);
}

BundlePtr BundleOptions::open(batten_bundle_options_t options) const {
  requireGiven(path, "the bundle's path");
  std::array<uint8_t, 32> wanted = {};
  if (!digest.empty()) {
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      failUsage("--digest: 64 hexadecimal digits are wanted, found '" + digest + "'");
    for (size_t i = 0; i < 32; ++i)
      wanted[i] = uint8_t(std::stoi(digest.substr(2 * i, 2), nullptr, 16));
    options.manifestDigest = wanted.data();
  }
  options.allowWritableByOthers = allowWritableByOthers;
  options.target = target.empty() ? nullptr : target.c_str();
  batten_bundle_t *bundle = nullptr;
  batten_error_t error = {};
  check(batten_bundle_open(path.c_str(), &options, &bundle, &error), error, path);
  return BundlePtr(bundle);
}

Lane readLane(const batten_bundle_t *bundle, uint32_t index) {
  Lane lane;
  lane.index = index;
  checkIndex(batten_bundle_get_lane(bundle, index, &lane.info));
  lane.name = toString(lane.info.name);
  for (uint32_t i = 0; i < lane.info.bucketCount; ++i) {
    batten_bucket_info_t bucket;
    checkIndex(batten_bundle_get_bucket(bundle, index, i, &bucket));
    lane.buckets.push_back(bucket);
  }
  for (uint32_t i = 0; i < lane.info.outputCount; ++i) {
    batten_output_info_t output;
    checkIndex(batten_bundle_get_output(bundle, index, i, &output));
    lane.outputs.push_back({toString(output.name), output.rowKind, output.width, output.elem});
  }
  return lane;
}

Lane findLane(const batten_bundle_t *bundle, const std::string &bundlePath, const std::string &name) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < info.laneCount; ++i) {
    Lane lane = readLane(bundle, i);
    if (name.empty() || lane.name == name)
      return lane;
    names.push_back(lane.name);
  }
  std::string text;
  for (const std::string &known : names)
    text += (text.empty() ? "" : ", ") + known;
  fail(bundlePath + ": has no lane '" + name + "', only " + text);
}

Engine::Engine(batten_bundle_t *bundle, const std::string &bundlePath, uint32_t wanted) {
  threads = wanted ? wanted : batten_default_threads();
  batten_error_t error = {};
  if (threads > 1) {
    batten_pool_options_t options = BATTEN_POOL_OPTIONS_INIT;
    options.threads = threads;
    batten_pool_t *made = nullptr;
    check(batten_pool_create(&options, &made, &error), error, std::to_string(threads) + " threads");
    pool.reset(made);
  }
  batten_executor_options_t options = BATTEN_EXECUTOR_OPTIONS_INIT;
  options.pool = pool.get();
  batten_executor_t *made = nullptr;
  check(batten_executor_create(bundle, &options, &made, &error), error, bundlePath);
  executor.reset(made);
}

void addThreads(CLI::App *command, uint32_t *threads) {
  command->add_option("--threads", *threads, "Threads, 1 to 1024; otherwise the CPUs that this process may use")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
}

batten_target_info_t targetInUse(const batten_bundle_t *bundle) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  batten_target_info_t target;
  checkIndex(batten_bundle_get_target(bundle, info.target, &target));
  return target;
}

} // namespace batten::tools
