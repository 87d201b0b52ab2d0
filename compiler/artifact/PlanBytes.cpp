// Writes plan files. The reader is PlanBytesReader.cpp; the records and their order are drawn in format.h.
#include "compiler/artifact/PlanBytes.h"
#include "compiler/artifact/SectionFile.h"
#include "compiler/layout/RowStride.h"

#include "batten/kernel.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace mlir;
using namespace batten;

static_assert(static_cast<uint32_t>(RowKind::tokens) == BATTEN_ROWS_TOKENS &&
              static_cast<uint32_t>(RowKind::seqs) == BATTEN_ROWS_SEQS &&
              static_cast<uint32_t>(RowKind::markers) == BATTEN_ROWS_MARKERS);
static_assert(static_cast<uint32_t>(WorkDomain::panels) == BATTEN_DOMAIN_PANELS &&
              static_cast<uint32_t>(WorkDomain::rows) == BATTEN_DOMAIN_ROWS &&
              static_cast<uint32_t>(WorkDomain::tasks) == BATTEN_DOMAIN_TASKS &&
              static_cast<uint32_t>(WorkDomain::one) == BATTEN_DOMAIN_ONE);
static_assert(plan::kMaxKernelPointers == BATTEN_KERNEL_OPERANDS);
static_assert(layout::kPanelCols == BATTEN_PANEL_COLS);

namespace {

uint32_t elemOf(Type type) {
  return type.isInteger() ? BATTEN_ELEM_I8
         : type.isF32()   ? BATTEN_ELEM_F32
         : type.isF16()   ? BATTEN_ELEM_F16
                          : BATTEN_ELEM_BF16;
}

/// Writes one program with one layout.
class PlanWriter {
public:
  explicit PlanWriter(plan::LayoutOp layout)
      : layout(layout), program(cast<plan::ProgramOp>(layout->getParentOp())),
        symbols(program->getParentOfType<ModuleOp>()) {}

  FailureOr<std::vector<uint8_t>> run() {
    if (failed(writePlan()))
      return failure();
    for (auto buffer : program.getOps<plan::BufferOp>())
      writeBuffer(buffer);
    for (auto weight : program.getOps<plan::WeightRefOp>())
      if (failed(writeWeight(weight)))
        return failure();
    for (auto step : program.getOps<plan::StepOp>())
      if (failed(writeStep(step)))
        return failure();
    for (auto output : program.getOps<plan::OutputOp>())
      outputs.push_back({file.string(output.getName()), number.lookup(output.getBuffer()), 0});
    file.section(BATTEN_SECTION_PLAN, plans);
    file.section(BATTEN_SECTION_BUFFERS, buffers);
    file.section(BATTEN_SECTION_WEIGHTS, weights);
    file.section(BATTEN_SECTION_KERNELS, kernels);
    file.section(BATTEN_SECTION_OPERANDS, operands);
    file.section(BATTEN_SECTION_STEPS, steps);
    file.section(BATTEN_SECTION_PLAN_OUTPUTS, outputs);
    return file.finish(BATTEN_FILE_PLAN);
  }

private:
  LogicalResult writePlan() {
    batten_plan_t plan{};
    plan.lane = file.string(program.getSymName());
    if (!program.getTarget())
      return program.emitOpError("has no target, so it has no bytes: emit-kernels has not run");
    plan.target = file.string(*program.getTarget());
    plan.kernelAbi = BATTEN_KERNEL_ABI_VERSION;
    plan.tokens = layout.getBucket()[0];
    plan.seqs = layout.getBucket()[1];
    plan.markers = layout.getBucket()[2];
    plan.arenaBytes = layout.getArena();
    plan.lowerBoundBytes = layout.getLowerBound();
    plan.scratchBytes = layout.getScratch();
    for (auto [what, text, digest] : {std::tuple<StringRef, std::optional<StringRef>, uint8_t *>{
                                          "image_digest", program.getImageDigest(), plan.imageDigest},
                                      {"common_digest", program.getCommonDigest(), plan.commonDigest},
                                      {"panels_digest", program.getPanelsDigest(), plan.panelsDigest}}) {
      if (!text)
        return program.emitOpError("has no ") << what << ", so it has no bytes";
      std::string raw = llvm::fromHex(*text); // 64 digits: the verifier saw to it
      std::memcpy(digest, raw.data(), raw.size());
    }
    plans.push_back(plan);
    return success();
  }

  void writeBuffer(plan::BufferOp buffer) {
    auto type = buffer.getType();
    number[buffer] = buffers.size();
    buffers.push_back(
        {static_cast<uint32_t>(type.getRowKind()), static_cast<uint32_t>(type.getWidth()), elemOf(type.getElem()), 0,
         static_cast<uint64_t>(layout::rowStrideBytes(type.getWidth(), type.getElem().getIntOrFloatBitWidth() / 8)),
         static_cast<uint64_t>(layout.getOffsets()[buffers.size()])});
  }

  LogicalResult writeWeight(plan::WeightRefOp weight) {
    auto packed = symbols.lookup<plan::PackedOp>(weight.getPacked());
    if (!packed.getOffset())
      return packed.emitOpError("has no offset, so it has no bytes: the weights are not packed");
    batten_weight_t record{};
    record.name = file.string(packed.getSymName());
    bool panels = isa<plan::PanelsType, plan::DotPanelsType>(packed.getType());
    record.pack = panels ? BATTEN_PACK_PANELS : BATTEN_PACK_COMMON;
    record.layout = isa<plan::PanelsType>(packed.getType())  ? BATTEN_LAYOUT_PANELS
                    : panels                                 ? BATTEN_LAYOUT_DOT_PANELS
                    : isa<plan::TableType>(packed.getType()) ? BATTEN_LAYOUT_TABLE
                                                             : BATTEN_LAYOUT_VECTOR;
    record.elem = elemOf(plan::getWeightElem(packed.getType()));
    auto [rows, cols] = plan::getWeightShape(packed.getType());
    record.rows = rows;
    record.cols = cols;
    record.offset = *packed.getOffset();
    record.bytes = *packed.getBytes();
    number[weight] = weights.size();
    weights.push_back(record);
    return success();
  }

  /// The kernel's record, made for its first step. Domain and pointer count are the steps', so they must agree.
  FailureOr<uint32_t> kernelOf(plan::StepOp step) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(step.getKernel());
    if (!symbol)
      return step.emitOpError("has no kernel symbol, so it has no bytes: select-kernels has not run");
    auto kernel = symbols.lookup<plan::KernelOp>(symbol.getValue());
    auto [at, isNew] = kernelNumber.try_emplace(kernel, kernels.size());
    if (!isNew) {
      const batten_kernel_t &record = kernels[at->second];
      if (record.domain != static_cast<uint32_t>(step.getDomain()) || record.operandCount != step.getPointerCount())
        return step.emitOpError("has another domain or number of pointers than an earlier step with kernel ") << symbol;
      return at->second;
    }
    if (!kernel.getEntry())
      return kernel.emitOpError("has no entry, so it has no bytes: emit-kernels has not run");
    batten_kernel_t record{};
    record.name = file.string(kernel.getSymName());
    record.key = file.string(kernel.getKeyText());
    record.entry = *kernel.getEntry();
    record.entryBytes = *kernel.getEntryBytes();
    record.domain = static_cast<uint32_t>(step.getDomain());
    record.panels = kernel.getPanels(step.getDomain());
    record.slabRows = kernel.getSlabRows().value_or(0);
    record.heads = kernel.getHeads(step.getDomain());
    record.operandCount = step.getPointerCount();
    record.mayOverwrite = kernel.getOverwrite();
    kernels.push_back(record);
    return at->second;
  }

  LogicalResult writeStep(plan::StepOp step) {
    FailureOr<uint32_t> kernel = kernelOf(step);
    if (failed(kernel))
      return failure();
    batten_step_t record{};
    record.label = file.string(step.getLabel());
    record.kernel = *kernel;
    record.rowKind = static_cast<uint32_t>(cast<plan::BufType>(step.getOutput().getType()).getRowKind());
    record.firstOperand = operands.size();
    auto add = [&](ValueRange values, uint32_t access) {
      for (Value value : values)
        operands.push_back(
            {isa<plan::BufType>(value.getType()) ? uint32_t(BATTEN_OPERAND_BUFFER) : uint32_t(BATTEN_OPERAND_WEIGHT),
             number.lookup(value), access, 0});
    };
    add(step.getIns(), BATTEN_ACCESS_READ);
    add(step.getInouts(), BATTEN_ACCESS_READWRITE);
    add(step.getOuts(), BATTEN_ACCESS_WRITE);
    record.operandCount = operands.size() - record.firstOperand;
    record.scratchBytes = stepScratchBytes(static_cast<uint32_t>(step.getDomain()), layout.getScratch());
    record.flopsPerRow = step.getFlopsPerRow();
    record.flopsPerPair = step.getFlopsPerPair();
    record.bytesPerRow = step.getBytesPerRow();
    auto symbol = cast<FlatSymbolRefAttr>(step.getKernel()); // kernelOf found it
    if (step.getDomain() == WorkDomain::tasks)
      record.pairWindow = pairWindowOf(symbols.lookup<plan::KernelOp>(symbol.getValue()));
    steps.push_back(record);
    return success();
  }

  plan::LayoutOp layout;
  plan::ProgramOp program;
  SymbolTable symbols;
  SectionFile file;
  DenseMap<Value, uint32_t> number;             // of buffers and of weights; looked up, never walked
  DenseMap<Operation *, uint32_t> kernelNumber; // looked up, never walked
  std::vector<batten_plan_t> plans;
  std::vector<batten_buffer_t> buffers;
  std::vector<batten_weight_t> weights;
  std::vector<batten_kernel_t> kernels;
  std::vector<batten_operand_t> operands;
  std::vector<batten_step_t> steps;
  std::vector<batten_plan_output_t> outputs;
};

} // namespace

uint64_t batten::stepScratchBytes(uint32_t domain, uint64_t most) {
  return domain == BATTEN_DOMAIN_TASKS || domain == BATTEN_DOMAIN_PANELS ? most : 0;
}

uint32_t batten::pairWindowOf(plan::KernelOp kernel) {
  auto window = kernel.getKey().getAs<IntegerAttr>("window");
  return window ? static_cast<uint32_t>(window.getInt() + 1) : 0;
}

FailureOr<std::vector<uint8_t>> batten::writePlanBytes(plan::LayoutOp layout) { return PlanWriter(layout).run(); }
