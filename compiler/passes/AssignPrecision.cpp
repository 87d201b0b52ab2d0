// assign-precision: storage of weights and arithmetic of kernels, for the whole module. f32 only; other values are
// refused here by name, before anything is lowered.
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "compiler/passes/Passes.h.inc"

namespace {
struct AssignPrecision : impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    for (auto [what, value] : {std::pair<StringRef, StringRef>{"weights", weights}, {"math", math}}) {
      if (value != "f32") {
        module.emitError() << what << " '" << value << "' is not supported; f32 is";
        return signalPassFailure();
      }
      module->setAttr(("batten." + what).str(), builder.getStringAttr(value));
    }
  }
};
} // namespace
} // namespace batten
