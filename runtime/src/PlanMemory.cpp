// Plan's proof of memory. Walks the steps once with the list of live buffers sorted by offset: a buffer enters at the step
// that writes it first and leaves behind the last step that touches it; outputs stay to the end. Live buffers never overlap,
// so a new one has to be compared with its two neighbours only.
#include "Plan.h"

namespace batten::rt {
namespace {

using ull = unsigned long long;
constexpr u32 kNever = UINT32_MAX;

struct Range {
  u32 first, last; // steps
};

/// Live buffers by offset.
class LiveList {
public:
  struct Entry {
    u64 begin, end;
    u32 buffer;
  };

  [[nodiscard]] bool create(u64 capacity) noexcept { return entries_.create(capacity); }
  [[nodiscard]] u64 bytes() const noexcept { return bytes_; }

  /// Index of the buffer that overlaps, or kNever and the entry is in.
  [[nodiscard]] u32 insert(const Entry &entry) noexcept {
    u64 at = lowerBound(entry.begin);
    if (at > 0 && entries_[at - 1].end > entry.begin)
      return entries_[at - 1].buffer;
    if (at < count_ && entries_[at].begin < entry.end)
      return entries_[at].buffer;
    std::memmove(entries_.data() + at + 1, entries_.data() + at, (count_ - at) * sizeof(Entry));
    entries_[at] = entry;
    ++count_;
    bytes_ += entry.end - entry.begin;
    return kNever;
  }
  void remove(u64 begin, u32 buffer) noexcept {
    u64 at = lowerBound(begin);
    if (at == count_ || entries_[at].buffer != buffer)
      return; // read twice by one step: gone already
    bytes_ -= entries_[at].end - entries_[at].begin;
    --count_;
    std::memmove(entries_.data() + at, entries_.data() + at + 1, (count_ - at) * sizeof(Entry));
  }

private:
  [[nodiscard]] u64 lowerBound(u64 begin) const noexcept {
    u64 low = 0, high = count_;
    while (low < high) {
      u64 middle = low + (high - low) / 2;
      if (entries_[middle].begin < begin)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  Array<Entry> entries_;
  u64 count_ = 0, bytes_ = 0;
};

} // namespace

Status Plan::verifyLiveRanges(const Report &report) noexcept {
  Array<Range> ranges;
  LiveList live;
  if (!ranges.create(buffers.count) || !live.create(buffers.count))
    return report.outOfMemory(buffers.count * sizeof(LiveList::Entry));
  for (u64 i = 0; i < buffers.count; ++i)
    ranges[i] = {kNever, 0};

  auto forBuffers = [&](const batten_step_t &step, auto visit) {
    for (u64 k = step.firstOperand; k < u64{step.firstOperand} + step.operandCount; ++k)
      if (const batten_operand_t operand = operands.at(k); operand.kind == BATTEN_OPERAND_BUFFER)
        visit(operand);
  };
  for (u32 i = 0; i < steps.count; ++i) {
    u32 unwritten = kNever;
    forBuffers(steps.at(i), [&](const batten_operand_t &operand) {
      Range &range = ranges[operand.index];
      if (range.first == kNever) {
        if (operand.access != BATTEN_ACCESS_WRITE)
          unwritten = operand.index;
        range.first = i;
      }
      range.last = i;
    });
    if (unwritten != kNever)
      return report.fail(BATTEN_CORRUPT, "STEPS", i, unwritten, buffers.count,
                         "reads buffer %u before any step writes it", unwritten);
  }
  for (u32 i = 0; i < outputs.count; ++i) {
    Range &range = ranges[outputs.at(i).buffer];
    if (range.first == kNever)
      return report.fail(BATTEN_CORRUPT, "PLAN_OUTPUTS", i, outputs.at(i).buffer, buffers.count,
                         "no step writes buffer %u", outputs.at(i).buffer);
    range.last = kNever;
  }

  u64 peak = 0;
  for (u32 i = 0; i < steps.count; ++i) {
    u32 entering = kNever, overlapped = kNever;
    forBuffers(steps.at(i), [&](const batten_operand_t &operand) {
      const batten_buffer_t buffer = buffers.at(operand.index);
      if (ranges[operand.index].first != i || bufferBytes(buffer) == 0 || entering != kNever)
        return;
      entering = operand.index;
      overlapped = live.insert({buffer.offset, buffer.offset + bufferBytes(buffer), operand.index});
    });
    if (overlapped != kNever)
      return report.fail(BATTEN_CORRUPT, "BUFFERS", entering, buffers.at(entering).offset, overlapped,
                         "shares bytes with buffer %u, which is live at step %u", overlapped, i);
    peak = live.bytes() > peak ? live.bytes() : peak;
    forBuffers(steps.at(i), [&](const batten_operand_t &operand) {
      if (ranges[operand.index].last == i)
        live.remove(buffers.at(operand.index).offset, operand.index);
    });
  }
  if (plan.lowerBoundBytes != peak)
    return report.fail(BATTEN_CORRUPT, "PLAN", 0, plan.lowerBoundBytes, peak,
                       "lower bound of %llu bytes, its steps have %llu live at most", ull{plan.lowerBoundBytes},
                       ull{peak});
  return BATTEN_OK;
}

} // namespace batten::rt
