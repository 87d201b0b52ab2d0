// fold-weights: linears that concat_cols joins become one linear over concatenated weights; weight expressions are
// simplified by their folders. No bit of a result changes: each output column keeps its own chain over k.
#include "compiler/passes/Passes.h"
#include "dialect/BattenDialect.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_FOLDWEIGHTS
#include "compiler/passes/Passes.h.inc"

namespace {

/// concat_cols(linear(x, w0), linear(x, w1), ..) to linear(x, concat(w0, w1, ..)).
struct JoinLinears : OpRewritePattern<ConcatColsOp> {
  JoinLinears(MLIRContext *context, unsigned &count) : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(ConcatColsOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() < 2)
      return rewriter.notifyMatchFailure(op, "joins a single value");
    SmallVector<Value> weights, biases;
    LinearOp first;
    for (Value input : op.getInputs()) {
      auto linear = input.getDefiningOp<LinearOp>();
      if (!linear)
        return rewriter.notifyMatchFailure(op, "an operand is no linear");
      if (!linear->hasOneUse())
        return rewriter.notifyMatchFailure(linear, "has another use");
      if (linear.getResidual())
        return rewriter.notifyMatchFailure(linear, "has a residual");
      first = first ? first : linear;
      if (linear.getX() != first.getX())
        return rewriter.notifyMatchFailure(linear, "reads another input");
      if (linear.getAct() != first.getAct())
        return rewriter.notifyMatchFailure(linear, "has another activation");
      if (!linear.getBias() != !first.getBias())
        return rewriter.notifyMatchFailure(linear, "some have a bias and some have none");
      weights.push_back(linear.getWeight());
      if (linear.getBias())
        biases.push_back(linear.getBias());
    }
    Value weight = ConcatOp::create(rewriter, op.getLoc(), weights);
    Value bias = biases.empty() ? Value() : ConcatOp::create(rewriter, op.getLoc(), biases);
    rewriter.replaceOpWithNewOp<LinearOp>(op, first.getX(), weight, bias, first.getAct());
    ++count;
    return success();
  }

private:
  unsigned &count;
};

/// concat(concat(a, b), c) to concat(a, b, c).
struct FlattenConcat : OpRewritePattern<ConcatOp> {
  FlattenConcat(MLIRContext *context, unsigned &count) : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> flat;
    for (Value input : op.getInputs()) {
      if (auto inner = input.getDefiningOp<ConcatOp>())
        llvm::append_range(flat, inner.getInputs());
      else
        flat.push_back(input);
    }
    if (flat.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "no operand is a concat of several");
    rewriter.replaceOpWithNewOp<ConcatOp>(op, flat);
    ++count;
    return success();
  }

private:
  unsigned &count;
};

struct FoldWeights : impl::FoldWeightsBase<FoldWeights> {
  using FoldWeightsBase::FoldWeightsBase;

  void runOnOperation() override {
    unsigned joined = 0, flattened = 0;
    RewritePatternSet patterns(&getContext());
    patterns.add<JoinLinears>(&getContext(), joined);
    patterns.add<FlattenConcat>(&getContext(), flattened);
    GreedyRewriteConfig config; // every pattern leaves fewer ops, so this ends without a limit
    [[maybe_unused]] LogicalResult ended =
        applyPatternsGreedily(getOperation(), std::move(patterns), config.setMaxIterations(config.kNoLimit));
    assert(succeeded(ended));
    if (report)
      getOperation().emitRemark() << "groups of linears joined: " << joined
                                  << ", weight concats flattened: " << flattened;
  }
};

} // namespace
} // namespace batten
