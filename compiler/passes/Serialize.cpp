// serialize: proves that plans survive as bytes, and writes them where a folder is named. Bundles are written by
// compiler/artifact from the same writePlanBytes.
#include "compiler/artifact/PlanBytes.h"
#include "compiler/passes/Passes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_SERIALIZE
#include "compiler/passes/Passes.h.inc"

namespace {
struct Serialize : impl::SerializeBase<Serialize> {
  using SerializeBase::SerializeBase;

  LogicalResult serialize(plan::ProgramOp program, plan::LayoutOp layout) {
    FailureOr<std::vector<uint8_t>> bytes = writePlanBytes(layout);
    if (failed(bytes))
      return failure();
    std::string name = (program.getSymName() + "-" + layout.getSymName().drop_front() + ".plan").str();
    OwningOpRef<ModuleOp> read = readPlanBytes(*bytes, name, &getContext());
    if (!read)
      return failure();
    auto readLayout = *(*read->getOps<plan::ProgramOp>().begin()).getOps<plan::LayoutOp>().begin();
    [[maybe_unused]] FailureOr<std::vector<uint8_t>> again = writePlanBytes(readLayout);
    assert(succeeded(again) && *again == *bytes && "a plan comes back from its bytes as it was");
    if (dir.empty())
      return success();

    SmallString<128> path(dir);
    llvm::sys::path::append(path, name);
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    if (!error) {
      file.write(reinterpret_cast<const char *>(bytes->data()), bytes->size());
      file.close();
      error = file.error();
      file.clear_error();
    }
    if (error)
      return layout.emitOpError("cannot write ") << path << ": " << error.message();
    return success();
  }

  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      for (auto layout : program.getOps<plan::LayoutOp>())
        if (failed(serialize(program, layout)))
          return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace batten
