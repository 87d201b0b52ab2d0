// Standard output and standard error, written with write(2) so that no failure is lost and none is reported late.
// Answers go to out(), notes and errors to stderr. Assumes one thread; does not touch stdio.
#ifndef BATTEN_TOOLS_COMMON_OUTPUT_H
#define BATTEN_TOOLS_COMMON_OUTPUT_H

#include <stdexcept>
#include <string>
#include <string_view>

namespace batten::tools {

/// Exit statuses of every program.
enum ExitStatus : int {
  kExitOk = 0,
  kExitRefused = 1, ///< the input was refused, or a gate failed
  kExitUsage = 2,   ///< wrong usage
};

/// An error for the user: lower case, no full stop, one or more lines, the last with the first cause. runTool prints
/// it.
struct Failure : std::runtime_error {
  Failure(int status, const std::string &message) : std::runtime_error(message), status(status) {}
  int status;
};

/// Ends the program with status 1 and that error.
[[noreturn]] void fail(const std::string &message);
/// Ends the program with status 2 and that error.
[[noreturn]] void failUsage(const std::string &message);

/// The reader of standard output went away.
struct OutputClosed {};

/// Buffered standard output. Everything may be lost but what was flushed; runTool flushes at the end.
class Output {
public:
  /// Errors: as flush, where the buffer is full.
  void write(std::string_view text);
  /// Errors: Failure where the system refuses (a full disk); OutputClosed where the reader went away.
  void flush();

private:
  std::string buffer;
};

/// The one standard output of the program.
Output &out();

/// Writes to stderr at once; a failure there is nobody's to hear.
void writeError(std::string_view text);
/// "batten: note: message" on stderr.
void note(const std::string &message);
/// "batten: error: line" for each line of message on stderr.
void printError(const std::string &message);

/// Takes the numbers of standard streams that the caller has closed, so that no file is opened as one of them: what is
/// told on stderr would else go into a bundle's file. Reading or writing them stays an error. Called first.
void holdStandardStreams();
/// Makes a write to a closed pipe an error instead of a signal. Called once, before any output.
void ignoreBrokenPipes();
/// Ends the program as a broken pipe ends others: by the signal, where the caller left it on. Otherwise returns.
void dieOfBrokenPipe();

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_OUTPUT_H
