// Reads plan files into IR. Three steps: bounds of sections, records with their indices and what the text form implies,
// then ops. The first fault ends it, with section, record, what was found and what was wanted.
#include "compiler/artifact/PlanBytes.h"
#include "compiler/layout/RowStride.h"

#include "batten/format.h"
#include "batten/kernel.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <cstring>
#include <map>

using namespace mlir;
using namespace batten;

namespace {

constexpr uint32_t kMaxKeyBytes = 1024; // also bounds how deep a key's text can nest

constexpr std::pair<uint32_t, StringRef> kSections[] = {
    {BATTEN_SECTION_STRINGS, "STRINGS"}, {BATTEN_SECTION_PLAN, "PLAN"},
    {BATTEN_SECTION_BUFFERS, "BUFFERS"}, {BATTEN_SECTION_WEIGHTS, "WEIGHTS"},
    {BATTEN_SECTION_KERNELS, "KERNELS"}, {BATTEN_SECTION_OPERANDS, "OPERANDS"},
    {BATTEN_SECTION_STEPS, "STEPS"},     {BATTEN_SECTION_PLAN_OUTPUTS, "PLAN_OUTPUTS"},
};
StringRef sectionName(uint32_t kind) {
  for (auto [known, name] : kSections)
    if (known == kind)
      return name;
  return "?";
}

class PlanReader {
public:
  PlanReader(ArrayRef<uint8_t> bytes, StringRef fileName, MLIRContext *context)
      : bytes(bytes), context(context), location(FileLineColLoc::get(context, fileName, 0, 0)) {}

  OwningOpRef<ModuleOp> run() {
    context->loadDialect<BattenDialect, plan::PlanDialect>();
    if (failed(readHeader()) || failed(readSections()) || failed(readRecords()))
      return {};
    OwningOpRef<ModuleOp> module(ModuleOp::create(location));
    if (failed(build(*module)) || failed(mlir::verify(*module)))
      return {};
    return module;
  }

private:
  InFlightDiagnostic error() { return emitError(location); }
  InFlightDiagnostic error(uint32_t section, uint64_t index) {
    return emitError(location) << "section " << sectionName(section) << ", record " << index << ": ";
  }
  LogicalResult want(uint32_t section, uint64_t index, StringRef field, uint64_t found, uint64_t wanted) {
    if (found == wanted)
      return success();
    return error(section, index) << field << " is " << found << ", " << wanted << " wanted";
  }
  LogicalResult below(uint32_t section, uint64_t index, StringRef field, uint64_t found, uint64_t limit) {
    if (found < limit)
      return success();
    return error(section, index) << field << " is " << found << ", less than " << limit << " wanted";
  }

  LogicalResult readHeader() {
    if (bytes.size() < sizeof(header))
      return error() << "header: the file has " << bytes.size() << " bytes, at least " << sizeof(header) << " wanted";
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (std::memcmp(header.magic, BATTEN_MAGIC, sizeof(header.magic)) != 0)
      return error() << "header: the magic number is not that of a Batten file";
    if (header.kind != BATTEN_FILE_PLAN)
      return error() << "header: kind is " << header.kind << ", " << uint32_t(BATTEN_FILE_PLAN) << " (plan) wanted";
    if (header.major != BATTEN_FORMAT_MAJOR || (header.neededFeatures & ~BATTEN_KNOWN_FEATURES) != 0)
      return error() << "header: format version " << header.major << "." << header.minor << ", features "
                     << header.neededFeatures << "; this build reads " << BATTEN_FORMAT_MAJOR << "."
                     << BATTEN_FORMAT_MINOR << ", features " << BATTEN_KNOWN_FEATURES;
    if (header.fileBytes != bytes.size())
      return error() << "header: the file has " << bytes.size() << " bytes, " << header.fileBytes << " stated";
    if (header.headerBytes < sizeof(header) || header.headerBytes > bytes.size() ||
        header.sectionCount > (bytes.size() - header.headerBytes) / sizeof(batten_section_t))
      return error() << "header: " << header.headerBytes << " bytes of header and " << header.sectionCount
                     << " sections don't fit " << bytes.size() << " bytes";
    std::vector<uint8_t> copy(bytes.begin(), bytes.end());
    std::memset(copy.data() + offsetof(batten_file_header_t, digest), 0, sizeof(header.digest));
    if (std::array<uint8_t, 32> digest = llvm::SHA256::hash(copy);
        std::memcmp(digest.data(), header.digest, digest.size()) != 0)
      return error() << "header: the digest is not that of the bytes";
    return success();
  }

  LogicalResult readSections() {
    uint64_t end = header.headerBytes + uint64_t(header.sectionCount) * sizeof(batten_section_t);
    for (uint32_t index = 0; index < header.sectionCount; ++index) {
      batten_section_t section;
      std::memcpy(&section, bytes.data() + header.headerBytes + index * sizeof(section), sizeof(section));
      if (section.offset % BATTEN_ALIGNMENT || section.offset < end || section.offset > bytes.size())
        return error() << "section table, entry " << index << ": offset is " << section.offset << ", a multiple of "
                       << BATTEN_ALIGNMENT << " from " << end << " to " << bytes.size() << " wanted";
      if (section.recordBytes == 0 || section.count > (bytes.size() - section.offset) / section.recordBytes)
        return error() << "section table, entry " << index << ": " << section.count << " records of "
                       << section.recordBytes << " bytes don't fit " << bytes.size() - section.offset << " bytes";
      end = section.offset + section.count * section.recordBytes;
      if (!sections.insert({section.kind, section}).second)
        return error() << "section table, entry " << index << ": section " << sectionName(section.kind)
                       << " is there twice";
    }
    return success();
  }

  template <typename RecordT> LogicalResult read(uint32_t kind, std::vector<RecordT> &records) {
    auto found = sections.find(kind);
    if (found == sections.end())
      return error() << "section " << sectionName(kind) << " is missing";
    const batten_section_t &section = found->second;
    if (section.recordBytes < sizeof(RecordT))
      return error() << "section " << sectionName(kind) << ": records have " << section.recordBytes
                     << " bytes, at least " << sizeof(RecordT) << " wanted";
    records.resize(section.count);
    for (uint64_t index = 0; index < section.count; ++index)
      std::memcpy(&records[index], bytes.data() + section.offset + index * section.recordBytes, sizeof(RecordT));
    return success();
  }

  LogicalResult text(uint32_t section, uint64_t index, StringRef field, batten_string_t string, StringRef &out) {
    const batten_section_t &strings = sections.at(BATTEN_SECTION_STRINGS);
    if (string.offset > strings.count || string.bytes > strings.count - string.offset)
      return error(section, index) << field << " is at " << string.offset << " with " << string.bytes
                                   << " bytes, STRINGS has " << strings.count;
    out = StringRef(reinterpret_cast<const char *>(bytes.data()) + strings.offset + string.offset, string.bytes);
    return success();
  }

  LogicalResult readRecords() {
    std::vector<uint8_t> strings;
    if (failed(read(BATTEN_SECTION_STRINGS, strings)) || failed(read(BATTEN_SECTION_PLAN, plans)) ||
        failed(read(BATTEN_SECTION_BUFFERS, buffers)) || failed(read(BATTEN_SECTION_WEIGHTS, weights)) ||
        failed(read(BATTEN_SECTION_KERNELS, kernels)) || failed(read(BATTEN_SECTION_OPERANDS, operands)) ||
        failed(read(BATTEN_SECTION_STEPS, steps)) || failed(read(BATTEN_SECTION_PLAN_OUTPUTS, outputs)))
      return failure();
    if (plans.size() != 1)
      return error() << "section PLAN: " << plans.size() << " records, one wanted";
    if (sections.at(BATTEN_SECTION_STRINGS).recordBytes != 1)
      return error() << "section STRINGS: records have " << sections.at(BATTEN_SECTION_STRINGS).recordBytes
                     << " bytes, 1 wanted";
    return want(BATTEN_SECTION_PLAN, 0, "kernelAbi", plans[0].kernelAbi, BATTEN_KERNEL_ABI_VERSION);
  }

  LogicalResult build(ModuleOp module) {
    OpBuilder builder(context);
    builder.setInsertionPointToEnd(module.getBody());
    for (auto [index, weight] : llvm::enumerate(weights))
      if (failed(buildPacked(builder, index, weight)))
        return failure();
    for (auto [index, kernel] : llvm::enumerate(kernels))
      if (failed(buildKernel(builder, index, kernel)))
        return failure();
    return buildProgram(builder);
  }

  LogicalResult elemType(uint32_t section, uint64_t index, uint32_t elem, Type &type) {
    Builder builder(context);
    if (elem == BATTEN_ELEM_F32)
      type = builder.getF32Type();
    else if (elem == BATTEN_ELEM_F16)
      type = builder.getF16Type();
    else if (elem == BATTEN_ELEM_BF16)
      type = builder.getBF16Type();
    else if (elem == BATTEN_ELEM_I8)
      type = builder.getI8Type();
    else
      return error(section, index) << "elem is " << elem << ", 1 (f32), 2 (f16), 3 (bf16) or 4 (i8) wanted";
    return success();
  }

  LogicalResult buildPacked(OpBuilder &builder, uint64_t index, const batten_weight_t &weight) {
    constexpr uint32_t kSection = BATTEN_SECTION_WEIGHTS;
    StringRef name;
    Type elem, type;
    if (failed(text(kSection, index, "name", weight.name, name)) ||
        failed(elemType(kSection, index, weight.elem, elem)))
      return failure();
    auto emit = [&] { return error(kSection, index); };
    if (weight.layout == BATTEN_LAYOUT_PANELS)
      type = plan::PanelsType::getChecked(emit, context, int64_t(weight.rows), int64_t(weight.cols), elem);
    else if (weight.layout == BATTEN_LAYOUT_DOT_PANELS)
      type = plan::DotPanelsType::getChecked(emit, context, int64_t(weight.rows), int64_t(weight.cols), elem);
    else if (weight.layout == BATTEN_LAYOUT_TABLE)
      type = plan::TableType::getChecked(emit, context, int64_t(weight.rows), int64_t(weight.cols), elem);
    else if (weight.layout == BATTEN_LAYOUT_VECTOR)
      type = plan::VecType::getChecked(emit, context, int64_t(weight.cols), elem);
    else
      return error(kSection, index) << "layout is " << weight.layout
                                    << ", 1 (table), 2 (vector), 3 (panels) or 4 (dot_panels) wanted";
    if (!type)
      return failure();
    if (failed(want(kSection, index, "rows", weight.rows, plan::getWeightShape(type).first)) ||
        failed(want(kSection, index, "pack", weight.pack,
                    isa<plan::PanelsType, plan::DotPanelsType>(type) ? BATTEN_PACK_PANELS : BATTEN_PACK_COMMON)))
      return failure();
    plan::PackedOp::create(builder, location, builder.getStringAttr(name), Attribute(), TypeAttr::get(type),
                           builder.getI64IntegerAttr(weight.offset), builder.getI64IntegerAttr(weight.bytes));
    types.push_back(type);
    names.push_back(name);
    return success();
  }

  LogicalResult buildKernel(OpBuilder &builder, uint64_t index, const batten_kernel_t &kernel) {
    constexpr uint32_t kSection = BATTEN_SECTION_KERNELS;
    StringRef name, key;
    if (failed(text(kSection, index, "name", kernel.name, name)) ||
        failed(text(kSection, index, "key", kernel.key, key)) ||
        failed(below(kSection, index, "key's length", key.size(), kMaxKeyBytes + 1)) ||
        failed(below(kSection, index, "domain", kernel.domain, BATTEN_DOMAIN_ONE + 1)) ||
        failed(below(kSection, index, "mayOverwrite", kernel.mayOverwrite, 2)))
      return failure();
    auto [op, rest] = key.split(' ');
    DictionaryAttr attributes;
    { // the parser's own complaint has no file; ours has
      ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
      attributes = dyn_cast_or_null<DictionaryAttr>(parseAttribute(rest, context));
    }
    if (!attributes || attributes.get("op"))
      return error(kSection, index) << "key is '" << key << "', an op and its attributes in braces wanted";
    NamedAttrList list(attributes);
    list.append("op", builder.getStringAttr(op));
    auto made =
        plan::KernelOp::create(builder, location, builder.getStringAttr(name), list.getDictionary(context),
                               kernel.mayOverwrite ? builder.getUnitAttr() : UnitAttr(),
                               kernel.slabRows ? builder.getI64IntegerAttr(kernel.slabRows) : IntegerAttr(),
                               builder.getI64IntegerAttr(kernel.entry), builder.getI64IntegerAttr(kernel.entryBytes));
    if (failed(mlir::verify(made))) // before its key is asked
      return failure();
    auto domain = static_cast<WorkDomain>(kernel.domain);
    if (failed(want(kSection, index, "panels", kernel.panels, made.getPanels(domain))) ||
        failed(want(kSection, index, "heads", kernel.heads, made.getHeads(domain))))
      return failure();
    kernelNames.push_back(name);
    kernelOps.push_back(made);
    return success();
  }

  LogicalResult buildProgram(OpBuilder &builder) {
    const batten_plan_t &record = plans[0];
    StringRef lane, target;
    if (failed(text(BATTEN_SECTION_PLAN, 0, "lane", record.lane, lane)) ||
        failed(text(BATTEN_SECTION_PLAN, 0, "target", record.target, target)))
      return failure();
    auto program = plan::ProgramOp::create(builder, location, lane);
    auto hex = [](const uint8_t (&digest)[32]) { return llvm::toHex(ArrayRef<uint8_t>(digest), /*LowerCase=*/true); };
    program.setTarget(target);
    program.setImageDigest(hex(record.imageDigest));
    program.setCommonDigest(hex(record.commonDigest));
    program.setPanelsDigest(hex(record.panelsDigest));
    builder.setInsertionPointToStart(&program.getBody().front());

    SmallVector<int64_t> offsets;
    for (auto [index, buffer] : llvm::enumerate(buffers))
      if (failed(buildBuffer(builder, index, buffer, offsets)))
        return failure();
    for (auto [type, name] : llvm::zip(types, names))
      weightValues.push_back(plan::WeightRefOp::create(builder, location, type, name));
    for (auto [index, step] : llvm::enumerate(steps))
      if (failed(buildStep(builder, index, step)))
        return failure();
    for (auto [index, output] : llvm::enumerate(outputs)) {
      StringRef name;
      if (failed(text(BATTEN_SECTION_PLAN_OUTPUTS, index, "name", output.name, name)) ||
          failed(below(BATTEN_SECTION_PLAN_OUTPUTS, index, "buffer", output.buffer, buffers.size())))
        return failure();
      plan::OutputOp::create(builder, location, name, bufferValues[output.buffer]);
    }
    int64_t bucket[] = {record.tokens, record.seqs, record.markers};
    plan::LayoutOp::create(builder, location,
                           ("b" + Twine(bucket[0]) + "x" + Twine(bucket[1]) + "x" + Twine(bucket[2])).str(), bucket,
                           offsets, record.arenaBytes, record.lowerBoundBytes, record.scratchBytes);
    return success();
  }

  LogicalResult buildBuffer(OpBuilder &builder, uint64_t index, const batten_buffer_t &buffer,
                            SmallVectorImpl<int64_t> &offsets) {
    constexpr uint32_t kSection = BATTEN_SECTION_BUFFERS;
    Type elem;
    if (failed(below(kSection, index, "rowKind", buffer.rowKind, BATTEN_ROWS_ONE)) ||
        failed(elemType(kSection, index, buffer.elem, elem)))
      return failure();
    auto type = plan::BufType::getChecked([&] { return error(kSection, index); }, context,
                                          static_cast<RowKind>(buffer.rowKind), int64_t(buffer.width), elem);
    if (!type || failed(want(kSection, index, "strideBytes", buffer.strideBytes,
                             layout::rowStrideBytes(buffer.width, elem.getIntOrFloatBitWidth() / 8))))
      return failure();
    bufferValues.push_back(plan::BufferOp::create(builder, location, type));
    offsets.push_back(buffer.offset);
    return success();
  }

  LogicalResult buildStep(OpBuilder &builder, uint64_t index, const batten_step_t &step) {
    constexpr uint32_t kSection = BATTEN_SECTION_STEPS;
    StringRef label;
    if (failed(text(kSection, index, "label", step.label, label)) ||
        failed(below(kSection, index, "kernel", step.kernel, kernels.size())) ||
        failed(below(kSection, index, "firstOperand", step.firstOperand, operands.size() + 1)) ||
        failed(below(kSection, index, "operandCount", step.operandCount,
                     std::min<uint64_t>(operands.size() - step.firstOperand, BATTEN_KERNEL_OPERANDS) + 1)))
      return failure();
    SmallVector<Value> groups[BATTEN_ACCESS_READWRITE + 1]; // by access
    constexpr uint32_t kOrder[] = {0, 0, 2, 1};             // reads, then in place, then writes
    uint32_t last = 0;
    for (uint64_t at = step.firstOperand; at < uint64_t(step.firstOperand) + step.operandCount; ++at) {
      const batten_operand_t &operand = operands[at];
      bool weight = operand.kind == BATTEN_OPERAND_WEIGHT;
      if (failed(below(BATTEN_SECTION_OPERANDS, at, "kind", operand.kind, BATTEN_OPERAND_WEIGHT + 1)) ||
          failed(below(BATTEN_SECTION_OPERANDS, at, "index", operand.index, weight ? weights.size() : buffers.size())))
        return failure();
      if (operand.access < BATTEN_ACCESS_READ ||
          operand.access > (weight ? BATTEN_ACCESS_READ : BATTEN_ACCESS_READWRITE))
        return error(BATTEN_SECTION_OPERANDS, at)
               << "access is " << operand.access << ", from 1 to "
               << uint32_t(weight ? BATTEN_ACCESS_READ : BATTEN_ACCESS_READWRITE) << " wanted";
      if (kOrder[operand.access] < last)
        return error(BATTEN_SECTION_OPERANDS, at) << "is read, but follows what its step writes";
      last = kOrder[operand.access];
      groups[operand.access].push_back(weight ? weightValues[operand.index] : bufferValues[operand.index]);
    }
    const batten_kernel_t &kernel = kernels[step.kernel];
    auto made = plan::StepOp::create(
        builder, location, label, FlatSymbolRefAttr::get(context, kernelNames[step.kernel]),
        static_cast<WorkDomain>(kernel.domain), groups[BATTEN_ACCESS_READ], groups[BATTEN_ACCESS_READWRITE],
        groups[BATTEN_ACCESS_WRITE], /*overwrite=*/false, step.flopsPerRow, step.flopsPerPair, step.bytesPerRow);
    if (failed(want(kSection, index, "written operands",
                    groups[BATTEN_ACCESS_READWRITE].size() + groups[BATTEN_ACCESS_WRITE].size(), 1)))
      return failure();
    return failure(
        failed(want(kSection, index, "pairWindow", step.pairWindow,
                    kernel.domain == BATTEN_DOMAIN_TASKS ? pairWindowOf(kernelOps[step.kernel]) : 0)) ||
        failed(want(kSection, index, "kernel's operandCount", kernel.operandCount, made.getPointerCount())) ||
        failed(want(kSection, index, "rowKind", step.rowKind,
                    static_cast<uint32_t>(cast<plan::BufType>(made.getOutput().getType()).getRowKind()))) ||
        failed(want(kSection, index, "scratchBytes", step.scratchBytes,
                    stepScratchBytes(kernel.domain, plans[0].scratchBytes))));
  }

  ArrayRef<uint8_t> bytes;
  MLIRContext *context;
  Location location;
  batten_file_header_t header{};
  std::map<uint32_t, batten_section_t> sections;
  std::vector<batten_plan_t> plans;
  std::vector<batten_buffer_t> buffers;
  std::vector<batten_weight_t> weights;
  std::vector<batten_kernel_t> kernels;
  std::vector<batten_operand_t> operands;
  std::vector<batten_step_t> steps;
  std::vector<batten_plan_output_t> outputs;
  SmallVector<Type> types;                   // of weights
  SmallVector<StringRef> names, kernelNames; // of weights, of kernels
  SmallVector<plan::KernelOp> kernelOps;
  SmallVector<Value> bufferValues, weightValues;
};

} // namespace

OwningOpRef<ModuleOp> batten::readPlanBytes(ArrayRef<uint8_t> bytes, StringRef fileName, MLIRContext *context) {
  return PlanReader(bytes, fileName, context).run();
}
