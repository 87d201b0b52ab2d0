// `batten import`: a model directory as graph.mlir and batten.toml, for who wants to read or change them before compiling.
// The checkpoint stays where it is; the spec names it.
#include "compiler/Compile.h"
#include "compiler/graph/Import.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"
#include "dialect/BattenDialect.h"

#include "mlir/IR/MLIRContext.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <chrono>

namespace batten {

/// Writes a text as a whole or not at all.
static llvm::Error writeUserFile(const std::string &path, const std::string &text) {
  return llvm::handleErrors(llvm::writeToOutput(path,
                                                [&](llvm::raw_ostream &out) {
                                                  out << text;
                                                  return llvm::Error::success();
                                                }),
                            [&](const llvm::ErrorInfoBase &info) { return makeError(path + ": " + info.message()); });
}

llvm::Expected<CompileSummary> importModel(const std::string &modelDir, const std::string &outputDir, bool overwrite) {
  mlir::DialectRegistry registry;
  registry.insert<BattenDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto begin = std::chrono::steady_clock::now();
  llvm::Expected<ImportedModel> model = importGraph(context, modelDir);
  if (!model)
    return model.takeError();
  llvm::SmallString<256> checkpoint;
  if (std::error_code code = llvm::sys::fs::real_path(modelDir, checkpoint))
    return makeError(modelDir + ": " + code.message());
  std::string graph = printGraph(*model->module);
  if (std::error_code code = llvm::sys::fs::create_directories(outputDir))
    return makeError(outputDir + ": " + code.message());
  std::string spec = printSpec(specFor(*model, "graph.mlir", checkpoint));
  for (const char *name : {"graph.mlir", "batten.toml"}) // neither is written where one can't be
    if (!overwrite && pathExists(joinPath(outputDir, name)))
      return makeError(joinPath(outputDir, name) + ": is there already; --force replaces it");
  if (llvm::Error error = writeUserFile(joinPath(outputDir, "graph.mlir"), graph))
    return std::move(error);
  if (llvm::Error error = writeUserFile(joinPath(outputDir, "batten.toml"), spec))
    return std::move(error);
  CompileSummary summary;
  summary.files = {{"graph.mlir", graph.size()}, {"batten.toml", spec.size()}};
  summary.bytes = graph.size() + spec.size();
  summary.lanes = model->lanes;
  summary.notes = model->notes;
  summary.stages.push_back({"import", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  return summary;
}

} // namespace batten
