// A plan, proved: after open the executor runs it without a check. Live ranges are re-derived from the steps' operands; no
// two values that live at once share bytes; every offset, weight, kernel and count is in bounds. It trusts the machine
// code itself: that a kernel touches only its operands is the compiler's promise.
#ifndef BATTEN_RT_PLAN_H
#define BATTEN_RT_PLAN_H

#include "Manifest.h"
#include "Pack.h"

namespace batten::rt {

/// What a plan is proved against.
struct PlanSubject {
  const Manifest *manifest;
  const Pack *packs;        // [2], by batten_pack_index
  u32 target, lane, bucket; // bucket within the lane's stage
};

class Plan {
public:
  /// Proves the bytes of a plan, which outlive the object.
  /// Errors: CORRUPT, VERSION, OUT_OF_MEMORY.
  [[nodiscard]] Status open(const u8 *data, u64 bytes, const PlanSubject &subject, const Report &report) noexcept;

  /// Rows that a buffer of this kind has room for.
  [[nodiscard]] u64 capacity(u32 rowKind) const noexcept {
    return rowKind == BATTEN_ROWS_TOKENS    ? plan.tokens
           : rowKind == BATTEN_ROWS_SEQS    ? plan.seqs
           : rowKind == BATTEN_ROWS_MARKERS ? plan.markers
                                            : 1;
  }
  [[nodiscard]] u64 bufferBytes(const batten_buffer_t &buffer) const noexcept {
    return capacity(buffer.rowKind) * buffer.strideBytes;
  }
  [[nodiscard]] Text text(batten_string_t string) const noexcept { return view.verifiedText(string); }

  FileView view;
  batten_plan_t plan = {};
  Records<batten_buffer_t> buffers;
  Records<batten_weight_t> weights;
  Records<batten_kernel_t> kernels;
  Records<batten_operand_t> operands;
  Records<batten_step_t> steps;
  Records<batten_plan_output_t> outputs;

private:
  [[nodiscard]] Status verifyIdentity(const PlanSubject &subject, const Report &report) noexcept;
  [[nodiscard]] Status verifyBuffers(const Report &report) noexcept;
  [[nodiscard]] Status verifyWeights(const PlanSubject &subject, const Report &report) noexcept;
  [[nodiscard]] Status verifyKernels(const PlanSubject &subject, const Report &report) noexcept;
  [[nodiscard]] Status verifySteps(const Report &report) noexcept;
  [[nodiscard]] Status verifyOperands(u32 step, const batten_step_t &record, const batten_kernel_t &kernel,
                                      const Report &report) noexcept;
  [[nodiscard]] Status verifyPanels(u32 step, const batten_step_t &record, const batten_kernel_t &kernel,
                                    const Report &report) noexcept;
  [[nodiscard]] Status verifyOutputs(const PlanSubject &subject, const Report &report) noexcept;
  [[nodiscard]] Status verifyLiveRanges(const Report &report) noexcept;
};

} // namespace batten::rt

#endif // BATTEN_RT_PLAN_H
