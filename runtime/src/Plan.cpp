// See Plan.h. The proof of memory (live ranges) is in PlanMemory.cpp.
#include "Plan.h"

#include "Names.h"

namespace batten::rt {
namespace {

using ull = unsigned long long;

/// A bound on the square cost of hostile plans; real ones have some hundreds.
constexpr u32 kMaxBuffers = 16384, kMaxSteps = 16384;
/// No machine has more; keeps sums of sizes far from 64 bits.
constexpr u64 kMaxArenaBytes = u64{1} << 46;
constexpr u32 kEntryAlignment = 16;

} // namespace

Status Plan::open(const u8 *data, u64 bytes, const PlanSubject &subject, const Report &report) noexcept {
  BATTEN_TRY(view.open(data, bytes, BATTEN_FILE_PLAN, report));
  buffers = view.records<batten_buffer_t>(BATTEN_SECTION_BUFFERS);
  weights = view.records<batten_weight_t>(BATTEN_SECTION_WEIGHTS);
  kernels = view.records<batten_kernel_t>(BATTEN_SECTION_KERNELS);
  operands = view.records<batten_operand_t>(BATTEN_SECTION_OPERANDS);
  steps = view.records<batten_step_t>(BATTEN_SECTION_STEPS);
  outputs = view.records<batten_plan_output_t>(BATTEN_SECTION_PLAN_OUTPUTS);
  BATTEN_TRY(verifyIdentity(subject, report));
  BATTEN_TRY(verifyBuffers(report));
  BATTEN_TRY(verifyWeights(subject, report));
  BATTEN_TRY(verifyKernels(subject, report));
  BATTEN_TRY(verifySteps(report));
  BATTEN_TRY(verifyOutputs(subject, report));
  return verifyLiveRanges(report);
}

Status Plan::verifyIdentity(const PlanSubject &subject, const Report &report) noexcept {
  const Manifest &manifest = *subject.manifest;
  if (view.section(BATTEN_SECTION_PLAN).count != 1)
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, view.section(BATTEN_SECTION_PLAN).count, 1,
                       "one record was expected");
  plan = view.records<batten_plan_t>(BATTEN_SECTION_PLAN).at(0);
  if (plan.kernelAbi != BATTEN_KERNEL_ABI_VERSION)
    return report.fail(BATTEN_VERSION, "PLAN", 0, plan.kernelAbi, BATTEN_KERNEL_ABI_VERSION,
                       "kernel ABI %u, this runtime calls %u: compile again", plan.kernelAbi,
                       BATTEN_KERNEL_ABI_VERSION);
  const batten_target_t target = manifest.targets.at(subject.target);
  Text lane = manifest.text(manifest.lanes.at(subject.lane).name), targetName = manifest.text(target.name), found;
  if (!view.text(plan.lane, &found) || !found.equals(lane))
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, subject.lane, 0, "is not for lane \"%.*s\": mixed up",
                       BATTEN_TEXT(lane));
  if (!view.text(plan.target, &found) || !found.equals(targetName))
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, subject.target, 0, "is not for target \"%.*s\": mixed up",
                       BATTEN_TEXT(targetName));
  const batten_bucket_t bucket = manifest.bucket(subject.lane, subject.bucket);
  if (plan.tokens != bucket.tokens || plan.seqs != bucket.seqs || plan.markers != bucket.markers)
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, plan.tokens, bucket.tokens,
                       "is for bucket %ux%ux%u, the manifest has %ux%ux%u here: mixed up", plan.tokens, plan.seqs,
                       plan.markers, bucket.tokens, bucket.seqs, bucket.markers);
  struct Made {
    const char *what;
    const u8 *digest;
    u32 file;
  };
  for (const Made &made :
       {Made{"image", plan.imageDigest, target.image}, Made{"pack", plan.commonDigest, target.commonPack},
        Made{"pack", plan.panelsDigest, target.panelsPack}}) {
    const batten_file_t file = manifest.files.at(made.file);
    Text path = manifest.text(file.path);
    if (std::memcmp(made.digest, file.digest, sizeof file.digest) != 0)
      return report.fail(BATTEN_CORRUPT, "PLAN", 0, made.file, 0, "was made for another %s than %.*s: mixed up",
                         made.what, BATTEN_TEXT(path));
  }
  if (plan.arenaBytes > kMaxArenaBytes || plan.arenaBytes % BATTEN_ALIGNMENT != 0 ||
      plan.scratchBytes > kMaxArenaBytes || plan.scratchBytes % BATTEN_ALIGNMENT != 0)
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, plan.arenaBytes, kMaxArenaBytes,
                       "arena of %llu and scratch of %llu bytes: too large or no multiple of %u", ull{plan.arenaBytes},
                       ull{plan.scratchBytes}, BATTEN_ALIGNMENT);
  return BATTEN_OK;
}

Status Plan::verifyBuffers(const Report &report) noexcept {
  if (buffers.count > kMaxBuffers)
    return report.fail(BATTEN_CORRUPT, "BUFFERS", 0, buffers.count, kMaxBuffers, "%llu buffers", ull{buffers.count});
  for (u32 i = 0; i < buffers.count; ++i) {
    const batten_buffer_t buffer = buffers.at(i);
    if (buffer.rowKind > BATTEN_ROWS_ONE || elemBytes(buffer.elem) == 0 || buffer.width == 0)
      return report.fail(BATTEN_CORRUPT, "BUFFERS", i, buffer.rowKind, BATTEN_ROWS_ONE,
                         "row kind %u, width %u, element type %u", buffer.rowKind, buffer.width, buffer.elem);
    if (view.checksReserved() && buffer.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "BUFFERS", i, buffer.reserved, 0, "reserved field is not 0");
    // Kernels have the stride compiled in: another one in the plan would put rows outside of the buffer.
    if (u64 stride = rowStrideBytes(buffer.width, buffer.elem); buffer.strideBytes != stride)
      return report.fail(BATTEN_CORRUPT, "BUFFERS", i, buffer.strideBytes, stride,
                         "stride of %llu bytes, width %u has %llu", ull{buffer.strideBytes}, buffer.width, ull{stride});
    u64 bytes;
    if (!checkedMul(capacity(buffer.rowKind), buffer.strideBytes, &bytes) || buffer.offset % BATTEN_ALIGNMENT != 0 ||
        !inRange(buffer.offset, bytes, plan.arenaBytes))
      return report.fail(BATTEN_CORRUPT, "BUFFERS", i, buffer.offset, plan.arenaBytes,
                         "%llu rows of %llu bytes at %llu: not aligned or past the arena's %llu bytes",
                         ull{capacity(buffer.rowKind)}, ull{buffer.strideBytes}, ull{buffer.offset},
                         ull{plan.arenaBytes});
  }
  return BATTEN_OK;
}

Status Plan::verifyWeights(const PlanSubject &subject, const Report &report) noexcept {
  for (u32 i = 0; i < weights.count; ++i) {
    const batten_weight_t weight = weights.at(i);
    if (weight.pack > BATTEN_PACK_PANELS)
      return report.fail(BATTEN_CORRUPT, "WEIGHTS", i, weight.pack, BATTEN_PACK_PANELS, "pack %u", weight.pack);
    if (view.checksReserved() && weight.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "WEIGHTS", i, weight.reserved, 0, "reserved field is not 0");
    const Pack &pack = subject.packs[weight.pack];
    const u64 index = pack.find(weight.offset);
    if (index == pack.tensors.count)
      return report.fail(BATTEN_CORRUPT, "WEIGHTS", i, weight.offset, pack.view.bytes(),
                         "no tensor starts at byte %llu of its pack", ull{weight.offset});
    const batten_tensor_t tensor = pack.tensors.at(index);
    Text name, wanted = pack.view.verifiedText(tensor.name);
    if (!view.text(weight.name, &name) || !name.equals(wanted) || weight.layout != tensor.layout ||
        weight.elem != tensor.elem || weight.rows != tensor.rows || weight.cols != tensor.cols ||
        weight.bytes != tensor.bytes)
      return report.fail(
          BATTEN_CORRUPT, "WEIGHTS", i, weight.offset, tensor.offset,
          "differs from tensor \"%.*s\" of its pack in name, layout, element type, shape or size: mixed up",
          BATTEN_TEXT(wanted));
  }
  return BATTEN_OK;
}

Status Plan::verifyKernels(const PlanSubject &subject, const Report &report) noexcept {
  const batten_target_t target = subject.manifest->targets.at(subject.target);
  BATTEN_TRY(
      verifyNames(view, BATTEN_SECTION_KERNELS, kernels.count, [&](u32 i) { return kernels.at(i).name; }, report));
  for (u32 i = 0; i < kernels.count; ++i) {
    const batten_kernel_t kernel = kernels.at(i);
    Text key;
    if (!view.text(kernel.key, &key))
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, kernel.key.offset, view.section(BATTEN_SECTION_STRINGS).count,
                         "its key is no UTF-8 or leaves the strings");
    if (kernel.entry < target.codeOffset || kernel.entryBytes == 0 || kernel.entry % kEntryAlignment != 0 ||
        !inRange(kernel.entry - target.codeOffset, kernel.entryBytes, target.codeBytes))
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, kernel.entry, target.codeOffset + target.codeBytes,
                         "entry of %llu bytes at %llu: not aligned to %u or outside of the image's code",
                         ull{kernel.entryBytes}, ull{kernel.entry}, kEntryAlignment);
    if (kernel.domain > BATTEN_DOMAIN_ONE)
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, kernel.domain, BATTEN_DOMAIN_ONE, "domain %u", kernel.domain);
    const bool panels = kernel.domain == BATTEN_DOMAIN_PANELS, tasks = kernel.domain == BATTEN_DOMAIN_TASKS;
    if (panels != (kernel.panels != 0) || panels != (kernel.slabRows != 0) || tasks != (kernel.heads != 0))
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, kernel.domain, BATTEN_DOMAIN_ONE,
                         "domain %u with %u panels, slabs of %u rows, %u heads", kernel.domain, kernel.panels,
                         kernel.slabRows, kernel.heads);
    if (kernel.operandCount == 0 || kernel.operandCount > BATTEN_KERNEL_OPERANDS || kernel.mayOverwrite > 1)
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, kernel.operandCount, BATTEN_KERNEL_OPERANDS,
                         "%u operands, may overwrite %u", kernel.operandCount, kernel.mayOverwrite);
    // Units are counted in 32 bits: the largest batch of the bucket must not pass them.
    u64 units = 0;
    bool fits = true;
    u64 rows = plan.tokens > plan.seqs ? plan.tokens : plan.seqs;
    rows = rows > plan.markers ? rows : plan.markers;
    if (panels)
      fits = checkedMul(ceilDiv(rows, kernel.slabRows), kernel.panels, &units);
    if (tasks)
      fits = checkedMul(u64{plan.tokens} / BATTEN_TASK_ROWS + plan.seqs + 1, kernel.heads, &units);
    if (!fits || units > UINT32_MAX)
      return report.fail(BATTEN_CORRUPT, "KERNELS", i, units, UINT32_MAX, "more work units than 32 bits count");
  }
  return BATTEN_OK;
}

Status Plan::verifySteps(const Report &report) noexcept {
  if (steps.count == 0 || steps.count > kMaxSteps)
    return report.fail(BATTEN_CORRUPT, "STEPS", 0, steps.count, kMaxSteps, "%llu steps", ull{steps.count});
  for (u32 i = 0; i < operands.count; ++i) {
    const batten_operand_t operand = operands.at(i);
    const u64 bound = operand.kind == BATTEN_OPERAND_BUFFER ? buffers.count : weights.count;
    if (operand.kind > BATTEN_OPERAND_WEIGHT || operand.index >= bound)
      return report.fail(BATTEN_CORRUPT, "OPERANDS", i, operand.index, bound, "kind %u, index %u", operand.kind,
                         operand.index);
    if (operand.access < BATTEN_ACCESS_READ || operand.access > BATTEN_ACCESS_READWRITE ||
        (operand.kind == BATTEN_OPERAND_WEIGHT && operand.access != BATTEN_ACCESS_READ))
      return report.fail(BATTEN_CORRUPT, "OPERANDS", i, operand.access, BATTEN_ACCESS_READWRITE,
                         "access %u of kind %u: weights are only read", operand.access, operand.kind);
    if (view.checksReserved() && operand.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "OPERANDS", i, operand.reserved, 0, "reserved field is not 0");
  }
  for (u32 i = 0; i < steps.count; ++i) {
    const batten_step_t step = steps.at(i);
    Text label;
    if (!view.text(step.label, &label))
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.label.offset, view.section(BATTEN_SECTION_STRINGS).count,
                         "its label is no UTF-8 or leaves the strings");
    if (step.kernel >= kernels.count || step.rowKind > BATTEN_ROWS_ONE)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.kernel, kernels.count, "kernel %u of %llu, row kind %u",
                         step.kernel, ull{kernels.count}, step.rowKind);
    if (step.operandCount == 0 || step.operandCount > BATTEN_KERNEL_OPERANDS ||
        !inRange(step.firstOperand, step.operandCount, operands.count))
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.firstOperand, operands.count, "%u operands from %u on",
                         step.operandCount, step.firstOperand);
    if (step.scratchBytes > plan.scratchBytes || step.scratchBytes % BATTEN_ALIGNMENT != 0)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.scratchBytes, plan.scratchBytes,
                         "scratch of %llu bytes, the plan has %llu", ull{step.scratchBytes}, ull{plan.scratchBytes});
    const batten_kernel_t kernel = kernels.at(step.kernel);
    if (kernel.domain == BATTEN_DOMAIN_TASKS && step.rowKind != BATTEN_ROWS_TOKENS)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.rowKind, BATTEN_ROWS_TOKENS,
                         "tasks over rows that are no tokens");
    const u32 farthest = kernel.domain == BATTEN_DOMAIN_TASKS ? BATTEN_MAX_PAIR_WINDOW : 0;
    if (step.pairWindow > farthest)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.pairWindow, farthest,
                         "a window of %u in domain %u, at most %u is possible", step.pairWindow, kernel.domain,
                         farthest);
    if (view.checksReserved() && step.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, step.reserved, 0, "reserved field is not 0");
    BATTEN_TRY(verifyOperands(i, step, kernel, report));
    if (kernel.domain == BATTEN_DOMAIN_PANELS)
      BATTEN_TRY(verifyPanels(i, step, kernel, report));
  }
  return BATTEN_OK;
}

// Kernels that gather, pool or decide read rows of a finer kind than those that they count: markers are token rows,
// sequences have tokens and markers. Never the other way.
static bool mayRead(u32 counted, u32 read) noexcept {
  return read == counted || read == BATTEN_ROWS_TOKENS || (read == BATTEN_ROWS_MARKERS && counted == BATTEN_ROWS_SEQS);
}

// Inputs first, the output last; one output. In place only as the last input, where the kernel allows it.
Status Plan::verifyOperands(u32 step, const batten_step_t &record, const batten_kernel_t &kernel,
                            const Report &report) noexcept {
  const u64 last = u64{record.firstOperand} + record.operandCount - 1;
  const batten_operand_t output = operands.at(last);
  const bool inPlace = output.access == BATTEN_ACCESS_READWRITE;
  if (output.access == BATTEN_ACCESS_READ)
    return report.fail(BATTEN_CORRUPT, "STEPS", step, last, operands.count, "its last operand is not written");
  if (inPlace && !kernel.mayOverwrite)
    return report.fail(BATTEN_CORRUPT, "STEPS", step, last, operands.count, "in place, which its kernel doesn't allow");
  if (u32 pointers = record.operandCount + inPlace; pointers != kernel.operandCount)
    return report.fail(BATTEN_CORRUPT, "STEPS", step, pointers, kernel.operandCount, "%u operands, its kernel takes %u",
                       pointers, kernel.operandCount);
  for (u64 k = record.firstOperand; k <= last; ++k) {
    const batten_operand_t operand = operands.at(k);
    if (k != last && operand.access != BATTEN_ACCESS_READ)
      return report.fail(BATTEN_CORRUPT, "STEPS", step, k, last, "operand %llu is written, only the last may be",
                         ull{k});
    if (operand.kind != BATTEN_OPERAND_BUFFER)
      continue;
    if (k != last && operand.index == output.index)
      return report.fail(BATTEN_CORRUPT, "STEPS", step, operand.index, buffers.count,
                         "reads buffer %u, which it overwrites", operand.index);
    u32 rowKind = buffers.at(operand.index).rowKind;
    if (k == last ? rowKind != record.rowKind : !mayRead(record.rowKind, rowKind))
      return report.fail(BATTEN_CORRUPT, "STEPS", step, rowKind, record.rowKind,
                         "counts rows of kind %u, buffer %u has kind %u", record.rowKind, operand.index, rowKind);
  }
  return BATTEN_OK;
}

// A panels kernel has one unit for each 32 columns of its weight and of its output.
Status Plan::verifyPanels(u32 step, const batten_step_t &record, const batten_kernel_t &kernel,
                          const Report &report) noexcept {
  const u64 last = u64{record.firstOperand} + record.operandCount - 1;
  u64 found = ceilDiv(buffers.at(operands.at(last).index).width, BATTEN_PANEL_COLS);
  for (u64 k = record.firstOperand; k < last && found == kernel.panels; ++k)
    if (const batten_operand_t operand = operands.at(k); operand.kind == BATTEN_OPERAND_WEIGHT)
      if (const batten_weight_t weight = weights.at(operand.index); isPanels(weight.layout))
        found = ceilDiv(weight.rows, BATTEN_PANEL_COLS);
  if (found != kernel.panels)
    return report.fail(BATTEN_CORRUPT, "STEPS", step, found, kernel.panels,
                       "%llu panels of weight or output, %u of kernel", ull{found}, kernel.panels);
  return BATTEN_OK;
}

Status Plan::verifyOutputs(const PlanSubject &subject, const Report &report) noexcept {
  const Manifest &manifest = *subject.manifest;
  const batten_lane_t lane = manifest.lanes.at(subject.lane);
  if (outputs.count != lane.outputCount)
    return report.fail(BATTEN_CORRUPT, "PLAN_OUTPUTS", 0, outputs.count, lane.outputCount,
                       "%llu outputs, the lane has %u", ull{outputs.count}, lane.outputCount);
  for (u32 i = 0; i < outputs.count; ++i) {
    const batten_plan_output_t output = outputs.at(i);
    if (output.buffer >= buffers.count || (view.checksReserved() && output.reserved != 0))
      return report.fail(BATTEN_CORRUPT, "PLAN_OUTPUTS", i, output.buffer, buffers.count, "buffer %u of %llu",
                         output.buffer, ull{buffers.count});
    const batten_buffer_t buffer = buffers.at(output.buffer);
    const batten_output_t wanted = manifest.outputs.at(lane.firstOutput + u64{i});
    Text name, wantedName = manifest.text(wanted.name);
    if (!view.text(output.name, &name) || !name.equals(wantedName) || buffer.rowKind != wanted.rowKind ||
        buffer.width != wanted.width || buffer.elem != wanted.elem)
      return report.fail(BATTEN_CORRUPT, "PLAN_OUTPUTS", i, buffer.width, wanted.width,
                         "row kind %u, width %u, element type %u, or another name than the manifest's output \"%.*s\"",
                         buffer.rowKind, buffer.width, buffer.elem, BATTEN_TEXT(wantedName));
  }
  return BATTEN_OK;
}

} // namespace batten::rt
