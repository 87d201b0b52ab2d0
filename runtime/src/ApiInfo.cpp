// The C API: what a bundle tells about itself. Every record was verified at open; only the caller's indices are checked.
#include "ApiSupport.h"

using namespace batten::rt;

namespace {

const Manifest *manifestOf(const batten_bundle_t *bundle) noexcept { return bundle ? &bundle->manifest() : nullptr; }

// The plan, or null where lane or bucket are out of range.
const Plan *planOf(const batten_bundle_t *bundle, u32 lane, u32 bucket) noexcept {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || lane >= manifest->lanes.count || bucket >= manifest->bucketCount(lane))
    return nullptr;
  return &bundle->plan(lane, bucket);
}

} // namespace

extern "C" {

void batten_bundle_get_info(const batten_bundle_t *bundle, batten_bundle_info_t *info) {
  if (!info)
    return;
  *info = {};
  if (!bundle)
    return;
  const Manifest &manifest = bundle->manifest();
  info->laneCount = static_cast<u32>(manifest.lanes.count);
  info->stageCount = static_cast<u32>(manifest.stages.count);
  info->targetCount = static_cast<u32>(manifest.targets.count);
  info->fileCount = static_cast<u32>(manifest.files.count);
  info->noteCount = static_cast<u32>(manifest.notes.count);
  info->selfTestCount = static_cast<u32>(manifest.selfTests.count);
  info->target = bundle->target();
  info->formatMajor = manifest.view.header().major;
  info->formatMinor = manifest.view.header().minor;
  info->kernelAbi = manifest.producer.kernelAbi;
  info->producer = manifest.text(manifest.producer.name).toC();
  info->producerVersion = manifest.text(manifest.producer.version).toC();
  info->llvmVersion = manifest.text(manifest.producer.llvm).toC();
  std::memcpy(info->manifestDigest, bundle->manifestDigest(), sizeof info->manifestDigest);
}

batten_status_t batten_bundle_get_lane(const batten_bundle_t *bundle, uint32_t lane, batten_lane_info_t *info) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !info || lane >= manifest->lanes.count)
    return BATTEN_BAD_ARGUMENT;
  const batten_lane_t record = manifest->lanes.at(lane);
  *info = {};
  info->name = manifest->text(record.name).toC();
  info->stage = record.stage;
  info->bucketCount = manifest->bucketCount(lane);
  info->outputCount = record.outputCount;
  info->readsTypes = record.inputs & BATTEN_INPUT_TOKEN_TYPES;
  info->readsMarkers = record.inputs & BATTEN_INPUT_MARKERS;
  info->readsSeqTypes = record.inputs & BATTEN_INPUT_SEQ_TYPES;
  info->idCount = record.idCount;
  info->typeCount = record.typeCount;
  info->seqTypeCount = record.seqTypeCount;
  info->maxSeqTokens = record.maxSeqTokens;
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_output(const batten_bundle_t *bundle, uint32_t lane, uint32_t output,
                                         batten_output_info_t *info) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !info || lane >= manifest->lanes.count || output >= manifest->lanes.at(lane).outputCount)
    return BATTEN_BAD_ARGUMENT;
  const batten_output_t record = manifest->outputs.at(manifest->lanes.at(lane).firstOutput + u64{output});
  *info = {manifest->text(record.name).toC(), record.rowKind, record.width, record.elem};
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_bucket(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket,
                                         batten_bucket_info_t *info) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !info || lane >= manifest->lanes.count || bucket >= manifest->bucketCount(lane))
    return BATTEN_BAD_ARGUMENT;
  const batten_bucket_t record = manifest->bucket(lane, bucket);
  *info = {record.tokens, record.seqs, record.markers};
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_stage_name(const batten_bundle_t *bundle, uint32_t stage, batten_text_t *name) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !name || stage >= manifest->stages.count)
    return BATTEN_BAD_ARGUMENT;
  *name = manifest->text(manifest->stages.at(stage).name).toC();
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_target(const batten_bundle_t *bundle, uint32_t target, batten_target_info_t *info) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !info || target >= manifest->targets.count)
    return BATTEN_BAD_ARGUMENT;
  const batten_target_t record = manifest->targets.at(target);
  *info = {};
  info->name = manifest->text(record.name).toC();
  info->arch = record.arch;
  info->weights = record.weights;
  info->math = record.math;
  info->features = record.features;
  info->supported = targetRuns(bundle->cpu(), record.arch, record.features);
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_file(const batten_bundle_t *bundle, uint32_t file, batten_file_info_t *info) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !info || file >= manifest->files.count)
    return BATTEN_BAD_ARGUMENT;
  const batten_file_t record = manifest->files.at(file);
  *info = {};
  info->path = manifest->text(record.path).toC();
  info->kind = record.kind;
  info->bytes = record.bytes;
  std::memcpy(info->digest, record.digest, sizeof info->digest);
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_note(const batten_bundle_t *bundle, uint32_t note, batten_text_t *key,
                                       batten_text_t *value) {
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !key || !value || note >= manifest->notes.count)
    return BATTEN_BAD_ARGUMENT;
  *key = manifest->text(manifest->notes.at(note).key).toC();
  *value = manifest->text(manifest->notes.at(note).value).toC();
  return BATTEN_OK;
}

batten_status_t batten_bundle_find_lane(const batten_bundle_t *bundle, const char *name, uint32_t *lane,
                                        batten_error_t *error) {
  ErrorSlot slot(error);
  const Manifest *manifest = manifestOf(bundle);
  if (!manifest || !name || !lane)
    return slot.badArgument("batten_bundle_find_lane: an argument is NULL");
  char names[300] = "";
  size_t used = 0;
  for (u32 i = 0; i < manifest->lanes.count; ++i) {
    const Text found = manifest->text(manifest->lanes.at(i).name);
    if (found.equals(textOf(name))) {
      *lane = i;
      return BATTEN_OK;
    }
    if (used + 3 < sizeof names) {
      copyText(names + used, sizeof names - used, textOf(used ? ", " : ""));
      used += std::strlen(names + used);
      copyText(names + used, sizeof names - used, found);
      used += std::strlen(names + used);
    }
  }
  return Report(slot.get(), {})
      .fail(BATTEN_BAD_ARGUMENT, "", 0, 0, manifest->lanes.count, "no lane \"%.100s\"; the bundle has %s", name, names);
}

batten_status_t batten_bundle_get_plan(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket,
                                       batten_plan_info_t *info) {
  const Plan *plan = planOf(bundle, lane, bucket);
  if (!plan || !info)
    return BATTEN_BAD_ARGUMENT;
  *info = {};
  info->stepCount = static_cast<u32>(plan->steps.count);
  info->bufferCount = static_cast<u32>(plan->buffers.count);
  info->weightCount = static_cast<u32>(plan->weights.count);
  info->kernelCount = static_cast<u32>(plan->kernels.count);
  info->arenaBytes = plan->plan.arenaBytes;
  info->lowerBoundBytes = plan->plan.lowerBoundBytes;
  info->scratchBytes = plan->plan.scratchBytes;
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_step(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket, uint32_t step,
                                       batten_step_info_t *info) {
  const Plan *plan = planOf(bundle, lane, bucket);
  if (!plan || !info || step >= plan->steps.count)
    return BATTEN_BAD_ARGUMENT;
  const batten_step_t record = plan->steps.at(step);
  const batten_kernel_t kernel = plan->kernels.at(record.kernel);
  *info = {};
  info->label = plan->text(record.label).toC();
  info->kernel = plan->text(kernel.name).toC();
  info->key = plan->text(kernel.key).toC();
  info->domain = kernel.domain;
  info->rowKind = record.rowKind;
  info->operandCount = record.operandCount;
  info->flopsPerRow = record.flopsPerRow;
  info->flopsPerPair = record.flopsPerPair;
  info->bytesPerRow = record.bytesPerRow;
  info->pairWindow = record.pairWindow;
  info->scratchBytes = record.scratchBytes;
  for (u32 i = 0; i < record.operandCount; ++i) {
    const batten_operand_t operand = plan->operands.at(u64{record.firstOperand} + i);
    if (operand.kind != BATTEN_OPERAND_WEIGHT)
      continue;
    // A table is read by row (bytesPerRow), the other weights wholly.
    const batten_weight_t weight = plan->weights.at(operand.index);
    info->weightBytes += weight.layout == BATTEN_LAYOUT_TABLE ? 0 : weight.bytes;
  }
  return BATTEN_OK;
}

batten_status_t batten_bundle_get_operand(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket, uint32_t step,
                                          uint32_t operand, batten_operand_info_t *info) {
  const Plan *plan = planOf(bundle, lane, bucket);
  if (!plan || !info || step >= plan->steps.count || operand >= plan->steps.at(step).operandCount)
    return BATTEN_BAD_ARGUMENT;
  const batten_operand_t record = plan->operands.at(plan->steps.at(step).firstOperand + u64{operand});
  *info = {};
  info->isWeight = record.kind == BATTEN_OPERAND_WEIGHT;
  info->access = record.access;
  if (info->isWeight) {
    const batten_weight_t weight = plan->weights.at(record.index);
    info->name = plan->text(weight.name).toC();
    info->rowKind = BATTEN_ROWS_ONE;
    info->width = weight.cols;
    info->elem = weight.elem;
    info->offset = weight.offset;
    info->bytes = weight.bytes;
  } else {
    const batten_buffer_t buffer = plan->buffers.at(record.index);
    info->name = {"", 0};
    info->buffer = record.index;
    info->rowKind = buffer.rowKind;
    info->width = buffer.width;
    info->elem = buffer.elem;
    info->offset = buffer.offset;
    info->bytes = plan->bufferBytes(buffer);
    info->strideBytes = buffer.strideBytes;
  }
  return BATTEN_OK;
}

} // extern "C"
