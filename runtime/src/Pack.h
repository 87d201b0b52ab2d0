// A pack's head, verified: the table of its tensors. The weights' bytes mean nothing here; any value is one.
#ifndef BATTEN_RT_PACK_H
#define BATTEN_RT_PACK_H

#include "Reader.h"

namespace batten::rt {

/// Bytes of a tensor by the layout rules of format.h, 0 where rows, cols, layout or element make no tensor or the size
/// passes 64 bits.
[[nodiscard]] u64 tensorBytes(u32 layout, u32 elem, u32 rows, u32 cols) noexcept;

class Pack {
public:
  /// Proves the head of a pack file of which data holds all bytes. file is its FILES record, pack which of the two it must be.
  /// Errors: CORRUPT, VERSION, OUT_OF_MEMORY.
  [[nodiscard]] Status open(const u8 *data, u32 pack, const batten_file_t &file, bool accelerated,
                            const Report &report) noexcept;
  /// Index of the tensor that starts at this offset of the file, or tensors.count.
  [[nodiscard]] u64 find(u64 offset) const noexcept;

  FileView view;
  Records<batten_tensor_t> tensors;
};

} // namespace batten::rt

#endif // BATTEN_RT_PACK_H
