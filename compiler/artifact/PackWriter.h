// Writes a pack: its head, then each entry's bytes as the packer streams them.
#ifndef BATTEN_COMPILER_ARTIFACT_PACKWRITER_H
#define BATTEN_COMPILER_ARTIFACT_PACKWRITER_H

#include "compiler/artifact/BundleSink.h"
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/WeightPacker.h"

#include "batten/format.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace batten {

/// Paths of the packs below a bundle. Every CPU target reads panels of 32 columns.
inline constexpr llvm::StringLiteral kCommonPackPath = "packs/common.pack";
inline constexpr llvm::StringLiteral kPanelsPackPath = "packs/panels32.pack";

/// Told after each entry: bytes of data done, of total.
using PackProgress = llvm::function_ref<void(uint64_t done, uint64_t total)>;

/// Writes entries as laid out by layout::layoutPack of the same entries.
///
/// Memory: a few blocks of some MiB, whatever the weights' sizes.
/// Errors: the packer's (tensor, row, column), the sink's, a pack of more bytes than its layout says.
llvm::Expected<WrittenFile> writePack(BundleSink &sink, batten_pack_index pack,
                                      const std::vector<layout::PackEntry> &entries, const layout::PackLayout &placed,
                                      layout::TensorSource &source, PackProgress progress);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_PACKWRITER_H
