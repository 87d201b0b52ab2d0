// Output over write(2), and what happens when a pipe is closed.
#include "tools/common/Output.h"

#include "tools/common/Text.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace batten::tools {

namespace {

constexpr size_t kBufferBytes = 64 * 1024;
bool brokenPipeKills = true;

/// Writes all of text; the errno of the failure, or 0.
int writeAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    text.remove_prefix(size_t(count));
  }
  return 0;
}

} // namespace

void fail(const std::string &message) { throw Failure(kExitRefused, message); }
void failUsage(const std::string &message) { throw Failure(kExitUsage, message); }

void Output::write(std::string_view text) {
  buffer += text;
  if (buffer.size() >= kBufferBytes)
    flush();
}

void Output::flush() {
  std::string pending;
  pending.swap(buffer);
  int error = writeAll(STDOUT_FILENO, pending);
  if (error == EPIPE && brokenPipeKills)
    throw OutputClosed();
  if (error != 0)
    fail(std::string("cannot write standard output: ") + std::strerror(error));
}

Output &out() {
  static Output output;
  return output;
}

void writeError(std::string_view text) { (void)writeAll(STDERR_FILENO, text); }

void note(const std::string &message) { writeError("batten: note: " + printable(message) + "\n"); }

void printError(const std::string &message) {
  std::string text;
  std::string_view rest = message;
  while (!rest.empty() && rest.back() == '\n')
    rest.remove_suffix(1);
  while (true) {
    size_t end = rest.find('\n');
    text += "batten: error: " + printable(rest.substr(0, end)) + "\n";
    if (end == std::string_view::npos)
      break;
    rest.remove_prefix(end + 1);
  }
  writeError(text);
}

void holdStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) // the lowest number that is free is this one
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void ignoreBrokenPipes() {
  struct sigaction before = {};
  sigaction(SIGPIPE, nullptr, &before);
  brokenPipeKills = before.sa_handler != SIG_IGN;
  std::signal(SIGPIPE, SIG_IGN);
}

void dieOfBrokenPipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

} // namespace batten::tools
