// A program of subcommands over CLI11: parsing, --help, --version, unknown flags with near names, errors and exit
// status. Options are never marked required in CLI11, which would report them before a mistyped flag; commands check
// after.
#ifndef BATTEN_TOOLS_COMMON_COMMAND_H
#define BATTEN_TOOLS_COMMON_COMMAND_H

#include "tools/common/Output.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace batten::tools {

/// A subcommand. run reads the variables that its options were bound to.
struct Command {
  CLI::App *app;
  std::function<void()> run;
};

/// A program: its subcommands, in the order in which help lists them.
class Program {
public:
  Program(std::string name, std::string description);

  /// Makes a subcommand; example is the last part of its help.
  CLI::App *add(const std::string &name, const std::string &description, const std::string &example);
  /// Says what the subcommand does; the variables that options are bound to live as long as the callback.
  void onRun(CLI::App *command, std::function<void()> run) { commands.push_back({command, std::move(run)}); }

  /// Parses, runs one command, prints errors. Returns the exit status.
  int main(int argc, char **argv);
  /// A line for --version.
  std::string versionLine;

private:
  void parseAndRun(int argc, char **argv);
  CLI::App root;
  std::vector<Command> commands;
};

/// The value of a required option or operand is there. Errors: wrong usage.
void requireGiven(const std::string &value, const char *what);

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_COMMAND_H
