// verify-graph: closes the graph phase. What lowering relies on and op verifiers can't know: that the passes before ran.
#include "compiler/passes/Passes.h"
#include "dialect/BattenDialect.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_VERIFYGRAPH
#include "compiler/passes/Passes.h.inc"

namespace {
bool readsIds(Operation &op) {
  return llvm::any_of(op.getOperandTypes(), [](Type type) { return isa<IdsType>(type); });
}

struct VerifyGraph : impl::VerifyGraphBase<VerifyGraph> {
  using VerifyGraphBase::VerifyGraphBase;

  LogicalResult verify() {
    ModuleOp module = getOperation();
    for (StringRef name : {"batten.weights", "batten.math"})
      if (!module->hasAttr(name))
        return module.emitError() << name << " is not set: assign-precision has not run";
    for (StoredOp stored : module.getOps<StoredOp>())
      return stored.emitOpError("is left: resolve-weights has not run");
    SymbolTable symbols(module);
    for (GraphOp graph : module.getOps<GraphOp>()) {
      if (!graph.getStage())
        return graph.emitOpError("has no stage");
      for (ParamOp param : graph.getBody().getOps<ParamOp>()) {
        auto weight = symbols.lookup<WeightOp>(param.getWeight());
        if (!weight.getStored())
          return param.emitOpError() << "reads " << param.getWeightAttr() << ", which is not bound to a stored tensor";
      }
      if (llvm::none_of(graph.getBody().front(), readsIds)) // a batch is checked against the rows of the table
        return graph.emitOpError(
            "has no output that depends on the token ids: a lane needs a batten.embed that is used");
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace batten
