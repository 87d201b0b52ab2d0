// assign-precision: how weights are stored and what linears multiply in. Casts go between a weight and the op that reads it,
// so that the packer rounds once; which linears stay in f32 is decided here alone.
#include "compiler/passes/Passes.h"
#include "dialect/BattenDialect.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "compiler/passes/Passes.h.inc"

namespace {

/// Whether the value is an output of the graph, or becomes one element by element.
bool reachesOutput(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ReturnOp>(user) ||
           (isa<ActivationOp, SoftmaxOp, SliceOp, ConcatColsOp>(user) && reachesOutput(user->getResult(0)));
  });
}

/// A head: rows that are few, or scores that are the answer. Neither gains by cheaper arithmetic, both lose.
bool isHead(LinearOp linear) { return getRowKind(linear.getType()) != RowKind::tokens || reachesOutput(linear); }

struct AssignPrecision : impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  Type elementOf(StringRef name) {
    Builder builder(&getContext());
    return llvm::StringSwitch<Type>(name)
        .Case("f32", builder.getF32Type())
        .Case("f16", builder.getF16Type())
        .Case("bf16", builder.getBF16Type())
        .Case("i8", builder.getI8Type())
        .Default(Type());
  }

  /// Lets the operand be read as `elem`, through a cast that operations of a graph share.
  void store(OpOperand &operand, Type elem) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (type.getElementType() == elem)
      return;
    Value &stored = casts[{operand.get(), elem}];
    if (!stored) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(operand.get());
      stored = CastOp::create(builder, operand.getOwner()->getLoc(), type.clone(elem), operand.get());
    }
    operand.set(stored);
  }

  void assign(LinearOp linear, Math chosen) {
    bool isF32 = chosen == Math::f32 || isHead(linear);
    Type elem = elementOf(weights);
    store(linear.getWeightMutable(), elem.isInteger() && isF32 && chosen != Math::f32 ? elementOf("f32") : elem);
    linear.setMath(isF32 ? Math::f32 : chosen);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    Type elem = elementOf(weights);
    std::optional<Math> chosen = symbolizeMath(math);
    if (!elem || !chosen) {
      module.emitError() << (elem ? "math" : "weights") << " '" << (elem ? math : weights) << "' is unknown, "
                         << (elem ? "f32, bf16 or i8" : "f32, f16, bf16 or i8") << " wanted";
      return signalPassFailure();
    }
    module->setAttr("batten.weights", builder.getStringAttr(weights));
    module->setAttr("batten.math", builder.getStringAttr(math));
    Type table = elem.isInteger() ? elementOf("f32") : elem;
    casts.clear();
    module.walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        return assign(linear, *chosen);
      if (!isa<EmbedOp, EmbedTypesOp, EmbedPositionsOp, EmbedSumOp>(op))
        return;
      for (OpOperand &operand : op->getOpOperands())
        if (isWeight(operand.get().getType(), 2))
          store(operand, table);
    });
  }

  DenseMap<std::pair<Value, Type>, Value> casts; // looked up, never walked
};
} // namespace
} // namespace batten
