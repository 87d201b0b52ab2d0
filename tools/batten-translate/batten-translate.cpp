// batten-translate: plan text to plan bytes and back. A file of bytes holds one plan, so text to bytes takes a module with
// one program and the layout to take where there are several.
#include "compiler/artifact/PlanBytes.h"
#include "dialect/PlanDialect.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace batten;

namespace {

LogicalResult planToBytes(ModuleOp module, llvm::raw_ostream &os, StringRef wanted) {
  SmallVector<plan::LayoutOp> layouts;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto layout : program.getOps<plan::LayoutOp>()) {
      std::string name = (program.getSymName() + "/" + layout.getSymName()).str();
      if (wanted.empty() || wanted == name)
        layouts.push_back(layout);
    }
  if (layouts.size() != 1)
    return module.emitError() << layouts.size() << " layouts"
                              << (wanted.empty() ? "" : (" called '" + wanted + "'").str())
                              << " in the module, one wanted: choose with --plan=PROGRAM/LAYOUT";
  FailureOr<std::vector<uint8_t>> bytes = writePlanBytes(layouts.front());
  if (failed(bytes))
    return failure();
  os.write(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  return success();
}

void registerDialects(DialectRegistry &registry) { registry.insert<BattenDialect, plan::PlanDialect>(); }

} // namespace

int main(int argc, char **argv) {
  llvm::cl::opt<std::string> wanted("plan", llvm::cl::desc("Which plan to take: PROGRAM/LAYOUT, as embed/b32x8x0"),
                                    llvm::cl::value_desc("name"));
  TranslateFromMLIRRegistration toBytes(
      "plan-to-bytes", "plan text to the bytes of a plan file",
      [&](Operation *op, llvm::raw_ostream &os) -> LogicalResult {
        auto module = dyn_cast<ModuleOp>(op);
        if (!module)
          return op->emitError("a module is wanted");
        return planToBytes(module, os, wanted);
      },
      registerDialects);
  TranslateToMLIRRegistration toText(
      "bytes-to-plan", "the bytes of a plan file to plan text",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
        auto data =
            llvm::ArrayRef(reinterpret_cast<const uint8_t *>(buffer->getBufferStart()), buffer->getBufferSize());
        return OwningOpRef<Operation *>(readPlanBytes(data, buffer->getBufferIdentifier(), context).release());
      },
      registerDialects);
  return failed(mlirTranslateMain(argc, argv,
                                  "batten-translate: plan text to plan bytes and back\n"
                                  "example: batten-translate --plan-to-bytes plan.mlir -o out.plan\n"));
}
