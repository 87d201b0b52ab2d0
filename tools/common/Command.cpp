// Program over CLI11, with our own errors and output.
#include "tools/common/Command.h"

#include "tools/common/Text.h"

#include <exception>
#include <new>

namespace batten::tools {

Program::Program(std::string name, std::string description) : root(std::move(description), std::move(name)) {
  versionLine = root.get_name() + " " BATTEN_TOOLS_VERSION;
  root.allow_extras();
  root.set_version_flag("--version", [this] { return versionLine; }, "Print the version and exit");
  root.set_help_flag("-h,--help", "Print this help and exit");
  root.footer("Exit status: 0 ok, 1 the input was refused or a gate failed, 2 wrong usage.\n"
              "Help on a command: " +
              root.get_name() + " COMMAND --help");
}

CLI::App *Program::add(const std::string &name, const std::string &description, const std::string &example) {
  CLI::App *command = root.add_subcommand(name, description);
  command->allow_extras();
  command->footer("Example:\n  " + example);
  return command;
}

void requireGiven(const std::string &value, const char *what) {
  if (value.empty())
    failUsage(std::string(what) + " is missing");
}

namespace {

std::vector<std::string> optionNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

/// Refuses the first argument that nothing took.
void refuseExtras(const CLI::App &app, const std::string &helpCommand) {
  std::vector<std::string> extras = app.remaining();
  if (extras.empty())
    return;
  // A mistyped flag's value is left over too, so the flag is told first.
  std::string extra = extras.front();
  for (const std::string &candidate : extras)
    if (candidate.size() > 1 && candidate[0] == '-') {
      extra = candidate;
      break;
    }
  std::string help = " (see " + helpCommand + " --help)";
  if (extra.size() > 1 && extra[0] == '-') {
    std::string flag = extra.substr(0, extra.find('='));
    failUsage("unknown flag " + flag + didYouMean(flag, optionNames(app)) + help);
  }
  failUsage("unexpected argument '" + extra + "'" + help);
}

/// An empty value is a variable that a script has not set; what is left out on purpose has no flag.
void refuseEmptyValues(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    for (const std::string &value : option->results())
      if (value.empty() && !option->get_positional())
        failUsage(option->get_name() + " has an empty value");
}

} // namespace

void Program::parseAndRun(int argc, char **argv) {
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    out().write(root.help());
    return;
  } catch (const CLI::CallForVersion &) {
    out().write(versionLine + "\n");
    return;
  } catch (const CLI::ParseError &error) {
    failUsage(error.what());
  }
  std::vector<std::string> names;
  for (const CLI::App *command : root.get_subcommands([](CLI::App *) { return true; }))
    names.push_back(command->get_name());
  std::vector<CLI::App *> chosen = root.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> extras = root.remaining();
    if (!extras.empty() && extras[0][0] != '-')
      failUsage("unknown command '" + extras[0] + "'" + didYouMean(extras[0], names) + " (see " + root.get_name() +
                " --help)");
    refuseExtras(root, root.get_name());
    writeError(root.help());
    failUsage("a command is missing");
  }
  if (chosen.size() > 1)
    failUsage("two commands given: " + chosen[0]->get_name() + " and " + chosen[1]->get_name());
  refuseExtras(*chosen[0], root.get_name() + " " + chosen[0]->get_name());
  refuseExtras(root, root.get_name());
  refuseEmptyValues(*chosen[0]);
  for (const Command &command : commands)
    if (command.app == chosen[0])
      command.run();
}

int Program::main(int argc, char **argv) {
  holdStandardStreams();
  ignoreBrokenPipes();
  int status = kExitOk;
  try {
    parseAndRun(argc, argv);
    out().flush();
  } catch (const Failure &failure) {
    status = failure.status;
    // What was answered before the failure still goes out; the failure stays the last line, being the first cause.
    std::string message = failure.what();
    try {
      out().flush();
    } catch (const Failure &second) {
      printError(second.what());
    } catch (const OutputClosed &) {
    }
    printError(message);
  } catch (const OutputClosed &) {
    dieOfBrokenPipe();
  } catch (const std::bad_alloc &) {
    printError("out of memory");
    status = kExitRefused;
  } catch (const std::exception &error) {
    printError(error.what());
    status = kExitRefused;
  }
  return status;
}

} // namespace batten::tools
