// `batten`: run, inspect, verify, bench and compare bundles. Links the runtime only; `import` and `compile` are handed to
// batten-compile, which is looked for beside this binary.
#include "tools/batten/Commands.h"
#include "tools/common/Files.h"

#include <batten/batten.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace batten::tools;

namespace {

/// Becomes batten-compile with the same arguments. Returns only where that can't be done: with the exit status.
int execCompiler(char **argv) {
  try {
    std::string path = programFolder() + "/batten-compile";
    char name[] = "batten"; // what its help and errors call it
    argv[0] = name;
    ::execv(path.c_str(), argv);
    if (errno == ENOENT)
      fail(std::string("batten ") + argv[1] +
           " needs batten-compile, which is not installed beside this program (looked for " + path + ")");
    fail(path + ": cannot start: " + std::strerror(errno));
  } catch (const Failure &failure) {
    printError(failure.what());
    return failure.status;
  }
}

} // namespace

int main(int argc, char **argv) {
  std::string first = argc > 1 ? argv[1] : "";
  if (first == "import" || first == "compile")
    return execCompiler(argv);
  Program program("batten", "Runs compiled transformer encoders and tells what is in a bundle.");
  program.versionLine = std::string("batten ") + batten_version();
  // Listed for the help; batten-compile takes them.
  program.add("import", "Write graph.mlir and batten.toml for a model directory (needs batten-compile)", "");
  program.add("compile", "Compile a model directory or a spec into a bundle (needs batten-compile)", "");
  addRun(program);
  addInspect(program);
  addVerify(program);
  addBench(program);
  addCompare(program);
  return program.main(argc, argv);
}
