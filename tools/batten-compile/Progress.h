// Tells how far a compile has come, on stderr: one line that is rewritten on a terminal, a line a stage elsewhere.
#ifndef BATTEN_TOOLS_COMPILE_PROGRESS_H
#define BATTEN_TOOLS_COMPILE_PROGRESS_H

#include "compiler/Compile.h"

#include <chrono>
#include <string>

namespace batten::tools {

class Progress {
public:
  /// quiet: says nothing.
  explicit Progress(bool quiet);
  ~Progress() { finish(); }

  void show(const CompileProgress &now);
  /// Clears the line, so that what comes next starts on a clean one.
  void finish();

private:
  bool quiet, terminal;
  bool lineShown = false;
  std::string stage;
  std::chrono::steady_clock::time_point lastShown;
};

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMPILE_PROGRESS_H
