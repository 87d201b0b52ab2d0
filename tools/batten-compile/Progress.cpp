// Progress lines.
#include "tools/batten-compile/Progress.h"

#include "tools/common/Output.h"
#include "tools/common/Text.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

namespace batten::tools {

Progress::Progress(bool quiet) : quiet(quiet), terminal(::isatty(STDERR_FILENO) == 1) {}

void Progress::show(const CompileProgress &now) {
  if (quiet)
    return;
  bool newStage = now.stage != stage;
  stage = now.stage;
  if (!terminal) {
    if (newStage)
      writeError("batten: " + printable(now.stage) + (now.detail.empty() ? "" : ": " + printable(now.detail)) + "\n");
    return;
  }
  // Often enough to look alive, seldom enough to cost nothing.
  auto time = std::chrono::steady_clock::now();
  if (!newStage && time - lastShown < std::chrono::milliseconds(50))
    return;
  lastShown = time;
  std::string line = "batten: " + printable(now.stage);
  if (now.total > 0)
    line += " " + std::to_string(std::min<uint64_t>(100, uint64_t(double(now.done) / double(now.total) * 100))) + " %";
  if (!now.detail.empty())
    line += ": " + printable(now.detail);
  winsize size = {};
  size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  if (line.size() >= columns) // a wrapped line could not be rewritten
    line.resize(columns - 1);
  writeError("\r" + line + "\x1b[K");
  lineShown = true;
}

void Progress::finish() {
  if (lineShown)
    writeError("\r\x1b[K");
  lineShown = false;
  stage.clear();
}

} // namespace batten::tools
