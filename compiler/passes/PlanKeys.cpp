// See PlanKeys.h.
#include "compiler/passes/PlanKeys.h"
#include "compiler/kernels/KernelKeyAttr.h"

using namespace mlir;

namespace batten {

llvm::Expected<KernelKey> kernelKeyFromPlan(DictionaryAttr attributes) {
  NamedAttrList rest(attributes);
  auto op = cast<StringAttr>(rest.erase("op"));
  return kernelKeyFromAttr(op.getValue(), rest.getDictionary(attributes.getContext()));
}

llvm::Expected<KernelKey> kernelKeyOf(plan::StepOp step, SymbolTable &symbols) {
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(step.getKernel()))
    return kernelKeyFromPlan(symbols.lookup<plan::KernelOp>(symbol.getValue()).getKey());
  return kernelKeyFromPlan(cast<DictionaryAttr>(step.getKernel()));
}

} // namespace batten
