// `batten verify`: every byte of a bundle against its manifest, every plan proved, and with --run its self-tests.
#include "tools/batten/Bundle.h"
#include "tools/batten/Commands.h"
#include "tools/common/Text.h"

#include <memory>

namespace batten::tools {

namespace {

struct VerifyOptions {
  BundleOptions bundle;
  uint32_t threads = 0;
  bool run = false;
};

/// Runs the bundle's self-tests on the target that it was opened for.
void runSelfTests(const VerifyOptions &options, batten_bundle_t *bundle, uint32_t count) {
  std::string target = printable(toString(targetInUse(bundle).name));
  Engine engine(bundle, options.bundle.path, options.threads);
  for (uint32_t i = 0; i < count; ++i) {
    batten_self_test_result_t result = {};
    batten_error_t error = {};
    batten_status_t status = batten_executor_self_test(engine.executor.get(), i, &result, &error);
    std::string where = options.bundle.path + ": self-test " + std::to_string(i) + " on " + target;
    check(status, error, where);
    if (!result.passed)
      fail(where + ": outputs have sha256 " + hex(result.found) + ", " + hex(result.expected) + " wanted");
    out().write("self-test " + std::to_string(i) + " on " + target + ": lane " +
                printable(readLane(bundle, result.lane).name) + " gives sha256 " + hex(result.found) + "\n");
  }
}

void verify(const VerifyOptions &options) {
  BundlePtr bundle = options.bundle.openToInspect(BATTEN_VERIFY_FULL);
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle.get(), &info);
  uint64_t bytes = 0, plans = 0;
  for (uint32_t i = 0; i < info.fileCount; ++i) {
    batten_file_info_t file;
    checkIndex(batten_bundle_get_file(bundle.get(), i, &file));
    bytes += file.bytes;
    plans += file.kind == 3;
  }
  if (options.run) {
    if (info.selfTestCount == 0)
      fail(options.bundle.path + ": holds no self-test to run");
    for (uint32_t i = 0; i < info.targetCount; ++i) {
      batten_target_info_t target;
      checkIndex(batten_bundle_get_target(bundle.get(), i, &target));
      std::string name = toString(target.name);
      if (!options.bundle.target.empty() && name != options.bundle.target)
        continue;
      if (!target.supported) {
        note("target " + name + " does not run on this machine; its self-tests were not run");
        continue;
      }
      BundleOptions one = options.bundle;
      one.target = name;
      runSelfTests(options, one.open().get(), info.selfTestCount);
    }
  }
  out().write(printable(options.bundle.path) + ": ok: " + std::to_string(info.fileCount) + " files, " +
              std::to_string(bytes) + " bytes, " + std::to_string(plans) + " plan files, manifest sha256 " +
              hex(info.manifestDigest) + "\n");
}

} // namespace

void addVerify(Program &program) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App *command = program.add("verify", "Check every byte of a bundle, and that it computes right here",
                                  "batten verify minilm.batten --run --digest \"$(cat minilm.digest)\"");
  options->bundle.addTo(command);
  addThreads(command, &options->threads);
  command->add_flag("--run", options->run, "Run the self-tests on every target that this machine supports");
  program.onRun(command, [options] { verify(*options); });
}

} // namespace batten::tools
