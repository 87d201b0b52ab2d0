// The subcommands of `batten`, each in a file of its name. import and compile are in main.cpp.
#ifndef BATTEN_TOOLS_BATTEN_COMMANDS_H
#define BATTEN_TOOLS_BATTEN_COMMANDS_H

#include "tools/common/Command.h"

namespace batten::tools {

void addRun(Program &program);
void addInspect(Program &program);
void addVerify(Program &program);
void addBench(Program &program);
void addCompare(Program &program);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_COMMANDS_H
