// select-kernels: gives every step a kernel symbol. Keys are compared as values (KernelKey), names are a pure function of
// the key, so the same graph always gives the same symbols.
#include "compiler/passes/Passes.h"
#include "compiler/passes/PlanKeys.h"
#include "dialect/PlanDialect.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_SELECTKERNELS
#include "compiler/passes/Passes.h.inc"

namespace {
struct SelectKernels : impl::SelectKernelsBase<SelectKernels> {
  using SelectKernelsBase::SelectKernelsBase;

  LogicalResult select(plan::StepOp step, DictionaryAttr attributes) {
    llvm::Expected<KernelKey> key = kernelKeyFromPlan(attributes);
    if (!key)
      return step.emitOpError() << llvm::toString(key.takeError());
    KernelFacts facts = kernelFacts(*key);
    if (static_cast<uint32_t>(step.getDomain()) != static_cast<uint32_t>(facts.domain))
      return step.emitOpError("domain is ") << stringifyWorkDomain(step.getDomain()) << ", the kernel's is "
                                            << stringifyWorkDomain(static_cast<WorkDomain>(facts.domain));
    if (step.getPointerCount() != facts.operandCount)
      return step.emitOpError("has ") << step.getPointerCount() << " pointers, the kernel takes " << facts.operandCount;
    std::string symbol = kernelSymbol(*key);
    if (!kernels.count(symbol)) {
      OpBuilder builder(*getOperation().getOps<plan::ProgramOp>().begin()); // above all programs
      IntegerAttr slabRows = facts.slabRows ? builder.getI64IntegerAttr(facts.slabRows) : IntegerAttr();
      kernels[symbol] = plan::KernelOp::create(builder, step.getLoc(), builder.getStringAttr(symbol), attributes,
                                               facts.mayOverwrite ? builder.getUnitAttr() : UnitAttr(), slabRows,
                                               IntegerAttr(), IntegerAttr());
    }
    step.setKernelAttr(FlatSymbolRefAttr::get(&getContext(), symbol));
    step.setOverwrite(false); // the kernel says it from here on
    return success();
  }

  void runOnOperation() override {
    kernels.clear();
    for (auto kernel : getOperation().getOps<plan::KernelOp>())
      kernels[kernel.getSymName()] = kernel;
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      for (auto step : program.getOps<plan::StepOp>())
        if (auto key = dyn_cast<DictionaryAttr>(step.getKernel()); key && failed(select(step, key)))
          return signalPassFailure();
  }

  llvm::StringMap<plan::KernelOp> kernels;
};
} // namespace
} // namespace batten
