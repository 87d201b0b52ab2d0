// graph.mlir as text: printing with names, and reading with the names put back. MLIR's parser keeps places, not names, so
// the name is taken from the source line that the op's place points to.
#include "compiler/graph/GraphBuilder.h"
#include "compiler/graph/Import.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"
#include "dialect/BattenDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir;

namespace batten {

/// Most bytes of a graph: thousands of layers.
static constexpr uint64_t kMostGraphBytes = 64u << 20;

/// Most brackets inside each other; a graph has three or four. MLIR's parser recurses, so it would run out of stack.
static constexpr int kMostNesting = 64;

std::string printGraph(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text;
}

/// "l0.q" of a line "  %l0.q = batten.linear ..", or "" where there is no name or only a number.
static llvm::StringRef nameOf(llvm::StringRef line) {
  line = line.ltrim();
  if (!line.consume_front("%"))
    return "";
  llvm::StringRef name =
      line.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.' || c == '$'; });
  if (!line.drop_front(name.size()).ltrim().starts_with("=") || name.empty() || llvm::isDigit(name[0]))
    return "";
  return name;
}

static void restoreNames(ModuleOp module, llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (GraphOp graph : module.getOps<GraphOp>())
    for (BlockArgument argument : graph.getBody().getArguments())
      argument.setLoc(NameLoc::get(StringAttr::get(module.getContext(), argumentName(argument.getType()))));
  module->walk([&](Operation *op) {
    auto place = llvm::dyn_cast<FileLineColLoc>(op->getLoc());
    if (!place || op->getNumResults() == 0 || place.getLine() == 0 || place.getLine() > lines.size())
      return;
    llvm::StringRef name = nameOf(lines[place.getLine() - 1]);
    if (!name.empty())
      op->setLoc(NameLoc::get(StringAttr::get(op->getContext(), name), place));
  });
}

/// Refuses what MLIR's parser would follow until the stack ends: brackets nested too deep, and affine expressions, which
/// recurse without brackets and mean nothing here. Text that is no MLIR is left to the parser.
static llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef path) {
  int depth = 0;
  size_t line = 1, lineStart = 0;
  auto fail = [&](size_t at, const llvm::Twine &what) {
    return makeError(path + ":" + llvm::Twine(line) + ":" + llvm::Twine(at - lineStart + 1) + ": " + what);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      lineStart = i + 1;
      break;
    case '"': // ends in its line, or the parser refuses it
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      i -= i < text.size() && text[i] == '\n';
      break;
    case '/':
      if (text.substr(i, 2) == "//")
        i = std::min(text.find('\n', i), text.size()) - 1;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > kMostNesting)
        return fail(i, "brackets nested deeper than " + llvm::Twine(kMostNesting));
      break;
    case 'a':
      for (llvm::StringRef word : {"affine_map", "affine_set"})
        if (text.substr(i).starts_with(word) && text.substr(i + word.size()).ltrim().starts_with("<"))
          return fail(i, word + " has no place in a graph");
      break;
    case ')':
    case ']':
    case '}':
      depth = std::max(0, depth - 1);
      break;
    case '>': // no bracket in ->
      if (i == 0 || text[i - 1] != '-')
        depth = std::max(0, depth - 1);
      break;
    default:
      break;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>> readGraph(MLIRContext &context, llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostGraphBytes);
  if (!text)
    return text.takeError();
  if (llvm::Error error = checkNesting(*text, path))
    return std::move(error);
  std::vector<std::string> faults;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    std::string where = path.str();
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      where += ":" + std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn());
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      faults.push_back(where + ": " + diagnostic.str());
    return success();
  });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*text, path), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return faults.empty() ? makeError(path + ": not a module of graphs") : joinCauses(std::move(faults));
  restoreNames(*module, *text);
  return module;
}

} // namespace batten
