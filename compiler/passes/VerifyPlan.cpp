// verify-plan: proves what plan-memory and select-kernels promise, by other means. It walks the steps with the set of live
// buffers and how many touches each has left, and looks at the bytes of that set at every step. It shares no code with
// the planner; the row stride rule and the kernels' own facts are common ground.
#include "compiler/layout/RowStride.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/PlanKeys.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

#include <set>

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_VERIFYPLAN
#include "compiler/passes/Passes.h.inc"

namespace {

/// What a step or an output does to the buffers, from its effects.
struct Touch {
  Operation *op;
  SmallVector<unsigned> reads, writes; // buffer numbers
};

/// Verifies one program.
class ProgramVerifier {
public:
  ProgramVerifier(plan::ProgramOp program, SymbolTable &symbols) : program(program), symbols(symbols) {}

  LogicalResult run() {
    for (auto [index, buffer] : llvm::enumerate(program.getOps<plan::BufferOp>()))
      number[buffer] = index;
    buffers.assign(program.getOps<plan::BufferOp>().begin(), program.getOps<plan::BufferOp>().end());
    if (failed(collect()) || failed(verifyOrder()) || failed(verifyKernels()) || failed(verifyBuckets()))
      return failure();
    for (auto layout : program.getOps<plan::LayoutOp>())
      if (failed(verifyLayout(layout)))
        return failure();
    return success();
  }

private:
  /// Reads effects; steps come before outputs.
  LogicalResult collect() {
    bool outputs = false;
    for (Operation &op : program.getBody().front()) {
      if (!isa<plan::StepOp, plan::OutputOp>(op))
        continue;
      if (isa<plan::StepOp>(op) && outputs)
        return op.emitOpError("comes after an output: outputs are what is left when all steps are done");
      outputs |= isa<plan::OutputOp>(op);
      Touch touch{&op, {}, {}};
      SmallVector<MemoryEffects::EffectInstance> effects;
      cast<MemoryEffectOpInterface>(op).getEffects(effects);
      for (const MemoryEffects::EffectInstance &effect : effects) {
        auto found = number.find(effect.getValue() ? effect.getValue().getDefiningOp() : nullptr);
        if (found == number.end())
          continue; // a weight
        if (isa<MemoryEffects::Read>(effect.getEffect()))
          touch.reads.push_back(found->second);
        if (isa<MemoryEffects::Write>(effect.getEffect()))
          touch.writes.push_back(found->second);
      }
      touches.push_back(touch);
    }
    return success();
  }

  /// What is read was written by an earlier step.
  LogicalResult verifyOrder() {
    llvm::SmallSet<unsigned, 32> written;
    for (const Touch &touch : touches) {
      for (unsigned buffer : touch.reads)
        if (!written.contains(buffer))
          return touch.op->emitOpError("reads buffer ") << buffer << ", which no earlier step writes";
      written.insert(touch.writes.begin(), touch.writes.end());
    }
    return success();
  }

  /// Steps fit their kernels, and all steps of one kernel take the same types.
  LogicalResult verifyKernels() {
    for (auto step : program.getOps<plan::StepOp>()) {
      auto symbol = dyn_cast<FlatSymbolRefAttr>(step.getKernel());
      if (!symbol)
        return step.emitOpError("has no kernel symbol: select-kernels has not run");
      auto kernel = symbols.lookup<plan::KernelOp>(symbol.getValue());
      llvm::Expected<KernelKey> key = kernelKeyFromPlan(kernel.getKey());
      if (!key)
        return kernel.emitOpError() << llvm::toString(key.takeError());
      KernelFacts facts = kernelFacts(*key);
      if (static_cast<uint32_t>(facts.domain) != static_cast<uint32_t>(step.getDomain()))
        return step.emitOpError("domain is not that of its kernel ") << symbol;
      if (facts.operandCount != step.getPointerCount())
        return step.emitOpError("gives ")
               << step.getPointerCount() << " pointers to kernel " << symbol << ", which takes " << facts.operandCount;
      if (facts.mayOverwrite != kernel.getOverwrite() ||
          static_cast<int64_t>(facts.slabRows) != static_cast<int64_t>(kernel.getSlabRows().value_or(0)))
        return kernel.emitOpError("overwrite or slab_rows is not what its key gives");

      // Types in pointer order; in place, one type stands twice. A kernel of rows serves rows of any kind.
      SmallVector<Type> types(step.getIns().getTypes());
      for (Type type : step.getInouts().getTypes())
        types.append(2, type);
      llvm::append_range(types, step.getOuts().getTypes());
      for (Type &type : types)
        if (auto buffer = dyn_cast<plan::BufType>(type))
          type = plan::BufType::get(buffer.getContext(), RowKind::tokens, buffer.getWidth(), buffer.getElem());
      auto [first, isNew] = signatures.insert({symbol.getAttr(), types});
      if (!isNew && first->second != types)
        return step.emitOpError("takes other types than an earlier step with kernel ") << symbol;
    }
    return success();
  }

  /// The stage's buckets and the layouts are one to one.
  LogicalResult verifyBuckets() {
    if (!program.getStage())
      return program.emitOpError("has no stage: its layouts can't be complete");
    std::set<std::vector<int64_t>> left;
    for (Attribute bucket : symbols.lookup<StageOp>(*program.getStage()).getBuckets())
      left.insert(cast<DenseI64ArrayAttr>(bucket).asArrayRef().vec());
    for (auto layout : program.getOps<plan::LayoutOp>())
      if (!left.erase(layout.getBucket().vec()))
        return layout.emitOpError("bucket ")
               << shapeText(layout.getBucket()) << " is not in the stage, or has a layout already";
    if (!left.empty())
      return program.emitOpError("has no layout for bucket ") << shapeText(*left.begin());
    return success();
  }

  LogicalResult verifyLayout(plan::LayoutOp layout) {
    ArrayRef<int64_t> bucket = layout.getBucket();
    int64_t arena = layout.getArena();
    SmallVector<int64_t> bytes;
    for (auto [index, buffer] : llvm::enumerate(buffers)) {
      auto type = buffer.getType();
      int64_t size = bucket[static_cast<unsigned>(type.getRowKind())] *
                     layout::rowStrideBytes(type.getWidth(), type.getElem().getIntOrFloatBitWidth() / 8);
      int64_t offset = layout.getOffsets()[index];
      if (offset < 0 || offset % layout::kAlignment)
        return layout.emitOpError("offset ")
               << offset << " of buffer " << index << " is not a multiple of " << layout::kAlignment;
      if (offset > arena || size > arena - offset)
        return layout.emitOpError("buffer ")
               << index << " at " << offset << " has " << size << " bytes, the arena " << arena;
      bytes.push_back(size);
    }

    // Touches that a live buffer has left. An output is touched when all steps are done, so it lives to the end.
    SmallVector<unsigned> left(buffers.size(), 0);
    for (const Touch &touch : touches)
      for (unsigned buffer : llvm::concat<const unsigned>(touch.reads, touch.writes))
        ++left[buffer];
    std::set<std::pair<int64_t, unsigned>> live; // by offset
    int64_t most = 0;
    for (const Touch &touch : touches) {
      for (unsigned buffer : llvm::concat<const unsigned>(touch.reads, touch.writes))
        live.insert({layout.getOffsets()[buffer], buffer});
      int64_t sum = 0, end = 0;
      unsigned before = 0;
      for (auto [offset, buffer] : live) {
        if (bytes[buffer] == 0)
          continue;
        if (offset < end)
          return layout.emitOpError("buffers ")
                 << before << " and " << buffer << " share bytes at " << offset << " while both are live" << at(touch);
        end = offset + bytes[buffer];
        before = buffer;
        sum += bytes[buffer];
      }
      most = std::max(most, sum);
      for (unsigned buffer : llvm::concat<const unsigned>(touch.reads, touch.writes))
        if (--left[buffer] == 0)
          live.erase({layout.getOffsets()[buffer], buffer});
    }
    if (most != static_cast<int64_t>(layout.getLowerBound()))
      return layout.emitOpError("lower_bound is ") << layout.getLowerBound() << ", the most live bytes are " << most;
    return verifyScratch(layout);
  }

  LogicalResult verifyScratch(plan::LayoutOp layout) {
    uint64_t longest = layout.getBucket()[0], most = 0;
    if (program.getMaxSeqTokens())
      longest = std::min<uint64_t>(longest, program.getMaxSeqTokens());
    for (auto step : program.getOps<plan::StepOp>()) {
      llvm::Expected<KernelKey> key = kernelKeyOf(step, symbols);
      most =
          std::max(most, kernelScratchBytes(llvm::cantFail(std::move(key)), longest)); // verifyKernels read it before
    }
    if (most != layout.getScratch())
      return layout.emitOpError("scratch is ") << layout.getScratch() << ", a worker needs " << most;
    return success();
  }

  static std::string at(const Touch &touch) {
    auto step = dyn_cast<plan::StepOp>(touch.op);
    return step ? (" at step \"" + step.getLabel() + "\"").str() : " at the end";
  }

  plan::ProgramOp program;
  SymbolTable &symbols;
  SmallVector<plan::BufferOp> buffers;
  DenseMap<Operation *, unsigned> number; // of buffers; looked up, never walked
  SmallVector<Touch> touches;
  DenseMap<StringAttr, SmallVector<Type>> signatures; // of kernels; looked up, never walked
};

struct VerifyPlan : impl::VerifyPlanBase<VerifyPlan> {
  using VerifyPlanBase::VerifyPlanBase;

  LogicalResult verify() {
    ModuleOp module = getOperation();
    llvm::MapVector<Attribute, plan::KernelOp> keys;
    for (auto kernel : module.getOps<plan::KernelOp>())
      if (auto [first, isNew] = keys.insert({kernel.getKey(), kernel}); !isNew)
        return kernel.emitOpError("has the key of @") << first->second.getSymName();
    llvm::MapVector<std::pair<Attribute, Type>, plan::PackedOp> packs;
    for (auto packed : module.getOps<plan::PackedOp>())
      if (packed.getExprAttr())
        if (auto [first, isNew] = packs.insert({{packed.getExprAttr(), packed.getType()}, packed}); !isNew)
          return packed.emitOpError("is the same as @") << first->second.getSymName();
    SymbolTable symbols(module);
    for (auto program : module.getOps<plan::ProgramOp>())
      if (failed(ProgramVerifier(program, symbols).run()))
        return failure();
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
