// plan-memory: which steps work in place, and where each buffer is for each bucket. Liveness comes from memory effects,
// sizes from the row stride rule, offsets from layoutArena. Assumes straight-line programs, which the dialect ensures.
#include "compiler/layout/ArenaLayout.h"
#include "compiler/layout/RowStride.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/PlanKeys.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_PLANMEMORY
#include "compiler/passes/Passes.h.inc"

namespace {

/// Most bytes of an arena; the runtime refuses more as well.
constexpr int64_t kMaxArenaBytes = int64_t(1) << 46;
/// Most work units of a step; the runtime refuses more as well.
constexpr int64_t kMaxUnits = UINT32_MAX;

/// The last op of the program's block that touches the buffer, or null.
Operation *lastUser(Value buffer) {
  Operation *last = nullptr;
  for (Operation *user : buffer.getUsers())
    if (!last || last->isBeforeInBlock(user))
      last = user;
  return last;
}

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  bool mayOverwrite(plan::StepOp step, SymbolTable &symbols) {
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(step.getKernel()))
      return symbols.lookup<plan::KernelOp>(symbol.getValue()).getOverwrite();
    return step.getOverwrite();
  }

  /// Lets a step write over its last input and says so, if that changes no result: types agree, nothing else in the step reads the
  /// input, nothing touches it later and the output was untouched before.
  bool rewriteInPlace(plan::StepOp step, SymbolTable &symbols) {
    if (step.getIns().empty() || step.getOuts().empty() || !mayOverwrite(step, symbols))
      return false;
    Value input = step.getIns().back(), output = step.getOutput();
    if (input.getType() != output.getType() || llvm::count(step.getIns(), input) != 1 || lastUser(input) != step)
      return false;
    if (llvm::any_of(output.getUsers(), [&](Operation *user) { return user->isBeforeInBlock(step); }))
      return false;
    step.getInsMutable().erase(step.getIns().size() - 1);
    step.getOutsMutable().clear();
    step.getInoutsMutable().append(input);
    output.replaceAllUsesWith(input);
    output.getDefiningOp()->erase();
    return true;
  }

  /// Steps over which a buffer is live: from its first effect to its last, to the end where it is an output.
  layout::ArenaBlock life(Value buffer, const DenseMap<Operation *, int64_t> &position, int64_t end) {
    layout::ArenaBlock block{end, 0, 0};
    for (Operation *user : buffer.getUsers()) {
      auto effects = cast<MemoryEffectOpInterface>(user);
      SmallVector<MemoryEffects::EffectInstance> ofBuffer;
      effects.getEffectsOnValue(buffer, ofBuffer);
      if (ofBuffer.empty())
        continue;
      int64_t at = isa<plan::OutputOp>(user) ? end : position.lookup(user);
      block.first = std::min(block.first, at);
      block.last = std::max(block.last, at);
    }
    block.last = std::max(block.first, block.last);
    return block;
  }

  /// Most units of a step of domain panels or tasks: the runtime counts them in 32 bits. Numbers of a bucket and of panels
  /// are below 2^31, so nothing overflows.
  static int64_t workUnits(const KernelFacts &facts, ArrayRef<int64_t> bucket) {
    if (facts.domain == BATTEN_DOMAIN_PANELS)
      return layout::ceilDiv(*llvm::max_element(bucket), facts.slabRows) * facts.panels;
    return (bucket[0] / BATTEN_TASK_ROWS + bucket[1] + 1) * facts.heads;
  }

  LogicalResult layOut(plan::ProgramOp program, ArrayRef<int64_t> bucket, SymbolTable &symbols) {
    DenseMap<Operation *, int64_t> position; // looked up, never walked
    int64_t steps = 0, scratch = 0;
    for (auto step : program.getOps<plan::StepOp>()) {
      position[step] = steps++;
      if (step.getDomain() != WorkDomain::tasks && step.getDomain() != WorkDomain::panels)
        continue;
      llvm::Expected<KernelKey> key = kernelKeyOf(step, symbols);
      if (!key)
        return step.emitOpError() << llvm::toString(key.takeError());
      if (int64_t units = workUnits(kernelFacts(*key), bucket); units > kMaxUnits)
        return step.emitOpError() << "has " << units << " work units in bucket " << shapeText(bucket) << ", at most "
                                  << kMaxUnits << " are possible";
      int64_t longest = bucket[0];
      if (program.getMaxSeqTokens())
        longest = std::min<int64_t>(longest, program.getMaxSeqTokens());
      scratch = std::max<int64_t>(scratch, kernelScratchBytes(*key, longest));
    }

    std::vector<layout::ArenaBlock> blocks;
    for (auto buffer : program.getOps<plan::BufferOp>()) {
      auto type = buffer.getType();
      layout::ArenaBlock block = life(buffer, position, steps);
      block.bytes = bucket[static_cast<unsigned>(type.getRowKind())] *
                    layout::rowStrideBytes(type.getWidth(), type.getElem().getIntOrFloatBitWidth() / 8);
      blocks.push_back(block);
    }
    std::optional<layout::ArenaLayout> placed = layout::layoutArena(blocks);
    std::string name = ("b" + Twine(bucket[0]) + "x" + Twine(bucket[1]) + "x" + Twine(bucket[2])).str();
    if (!placed || placed->arenaBytes > kMaxArenaBytes)
      return program.emitOpError() << "bucket " << shapeText(bucket) << " needs an arena of "
                                   << (placed ? std::to_string(placed->arenaBytes) : "more than 2^62")
                                   << " bytes, at most " << kMaxArenaBytes << " are possible";
    OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
    auto made = plan::LayoutOp::create(builder, program.getLoc(), name, bucket, placed->offsets, placed->arenaBytes,
                                       placed->lowerBoundBytes, scratch);
    if (report)
      made.emitRemark() << "@" << program.getSymName() << " " << name << ": arena of " << placed->arenaBytes
                        << " bytes, lower bound " << placed->lowerBoundBytes << ", sum of " << blocks.size()
                        << " buffers " << sumOf(blocks) << ", scratch of " << scratch << " bytes a worker";
    return success();
  }

  static int64_t sumOf(const std::vector<layout::ArenaBlock> &blocks) {
    int64_t sum = 0;
    for (const layout::ArenaBlock &block : blocks)
      sum += block.bytes;
    return sum;
  }

  LogicalResult planProgram(plan::ProgramOp program, SymbolTable &symbols) {
    if (!program.getStage())
      return program.emitOpError("has no stage: there is no bucket to place buffers for");
    for (auto old : llvm::make_early_inc_range(program.getOps<plan::LayoutOp>()))
      old.erase();
    if (inPlace) {
      unsigned done = 0, steps = 0;
      for (auto step : program.getOps<plan::StepOp>()) {
        ++steps;
        done += rewriteInPlace(step, symbols);
      }
      if (report)
        program.emitRemark() << "@" << program.getSymName() << ": " << done << " of " << steps << " steps put in place";
    }
    for (Attribute bucket : symbols.lookup<StageOp>(*program.getStage()).getBuckets())
      if (failed(layOut(program, cast<DenseI64ArrayAttr>(bucket).asArrayRef(), symbols)))
        return failure();
    return success();
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(planProgram(program, symbols)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace batten
