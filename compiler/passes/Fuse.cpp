// fuse: activations and residuals into linear, embeddings into one op. Rounding stays what the graph says: x wᵀ + b, then
// the activation, then + residual; embeddings in the order word + type + position only. A pattern that declines says why.
#include "compiler/passes/Passes.h"
#include "dialect/BattenDialect.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_FUSE
#include "compiler/passes/Passes.h.inc"

namespace {

/// activation(linear(x)) to a linear with the activation.
struct ActivationIntoLinear : OpRewritePattern<ActivationOp> {
  ActivationIntoLinear(MLIRContext *context, unsigned &count) : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(ActivationOp op, PatternRewriter &rewriter) const override {
    auto linear = op.getX().getDefiningOp<LinearOp>();
    if (!linear)
      return rewriter.notifyMatchFailure(op, "input is no linear");
    if (!linear->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the linear has another use");
    if (linear.getAct() != Activation::none)
      return rewriter.notifyMatchFailure(op, "the linear has an activation");
    if (linear.getResidual())
      return rewriter.notifyMatchFailure(op, "the linear's residual comes before this activation");
    auto fused =
        LinearOp::create(rewriter, linear.getLoc(), linear.getX(), linear.getWeight(), linear.getBias(), op.getAct());
    rewriter.replaceOp(op, fused);
    ++count;
    return success();
  }

private:
  unsigned &count;
};

/// add(linear(x), r) or add(r, linear(x)) to a linear with the residual r. Of two linears the later one takes it.
struct ResidualIntoLinear : OpRewritePattern<AddOp> {
  ResidualIntoLinear(MLIRContext *context, unsigned &count) : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    auto usable = [](Value value) {
      auto linear = value.getDefiningOp<LinearOp>();
      return linear && linear->hasOneUse() && !linear.getResidual() ? linear : LinearOp();
    };
    LinearOp a = usable(op.getA()), b = usable(op.getB());
    if (!a && !b)
      return rewriter.notifyMatchFailure(op, "no operand is a linear without a residual and without another use");
    bool takeA = a && (!b || b->isBeforeInBlock(a));
    LinearOp linear = takeA ? a : b;
    Value residual = takeA ? op.getB() : op.getA();
    auto fused = LinearOp::create(rewriter, linear.getLoc(), linear.getX(), linear.getWeight(), linear.getBias(),
                                  linear.getAct(), residual);
    rewriter.replaceOp(op, fused);
    ++count;
    return success();
  }

private:
  unsigned &count;
};

/// The tables that a value sums, as the operands of an embed_sum.
struct Embedding {
  Value ids, words, types, typeTable, segments, positions;
  int64_t offset = 0;

  static std::optional<Embedding> of(Value value) {
    Embedding e;
    if (auto embed = value.getDefiningOp<EmbedOp>()) {
      e.ids = embed.getIds();
      e.words = embed.getTable();
    } else if (auto embed = value.getDefiningOp<EmbedTypesOp>()) {
      e.types = embed.getTypes();
      e.typeTable = embed.getTable();
    } else if (auto embed = value.getDefiningOp<EmbedPositionsOp>()) {
      e.segments = embed.getSegments();
      e.positions = embed.getTable();
      e.offset = embed.getOffset();
    } else if (auto sum = value.getDefiningOp<EmbedSumOp>()) {
      e = {sum.getIds(),
           sum.getWords(),
           sum.getTypes(),
           sum.getTypeTable(),
           sum.getSegments(),
           sum.getPositions(),
           static_cast<int64_t>(sum.getOffset())};
    } else {
      return std::nullopt;
    }
    return value.hasOneUse() ? std::optional(e) : std::nullopt;
  }
  /// Place of the last table in the order word, type, position.
  unsigned last() const { return positions ? 3 : typeTable ? 2 : 1; }
  unsigned count() const { return !!words + !!typeTable + !!positions; }
};

/// add(embeddings, embedding) to embed_sum where the sum's order stays word + type + position.
struct AddIntoEmbedSum : OpRewritePattern<AddOp> {
  AddIntoEmbedSum(MLIRContext *context, unsigned &count) : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    std::optional<Embedding> a = Embedding::of(op.getA()), b = Embedding::of(op.getB());
    if (!a || !b)
      return rewriter.notifyMatchFailure(op, "an operand is no embedding, or has another use");
    if (a->last() > b->last())
      std::swap(a, b); // a sum of two is the same either way round
    if (b->count() != 1 || a->last() >= b->last())
      return rewriter.notifyMatchFailure(op,
                                         "the sum's order would change: word + type + position is what can be fused");
    Embedding sum = *a;
    if (b->typeTable) {
      sum.types = b->types;
      sum.typeTable = b->typeTable;
    } else {
      sum.segments = b->segments;
      sum.positions = b->positions;
      sum.offset = b->offset;
    }
    rewriter.replaceOpWithNewOp<EmbedSumOp>(op, sum.ids, sum.words, sum.types, sum.typeTable, sum.segments,
                                            sum.positions, sum.offset);
    ++count;
    return success();
  }

private:
  unsigned &count;
};

struct Fuse : impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;

  void runOnOperation() override {
    unsigned activations = 0, residuals = 0, embeddings = 0;
    RewritePatternSet patterns(&getContext());
    patterns.add<ActivationIntoLinear>(&getContext(), activations);
    patterns.add<ResidualIntoLinear>(&getContext(), residuals);
    patterns.add<AddIntoEmbedSum>(&getContext(), embeddings);
    GreedyRewriteConfig config; // every pattern leaves fewer ops, so this ends without a limit
    [[maybe_unused]] LogicalResult ended =
        applyPatternsGreedily(getOperation(), std::move(patterns), config.setMaxIterations(config.kNoLimit));
    assert(succeeded(ended));
    if (report)
      getOperation().emitRemark() << "activations fused: " << activations << ", residuals fused: " << residuals
                                  << ", adds of embeddings fused: " << embeddings;
  }
};

} // namespace
} // namespace batten
