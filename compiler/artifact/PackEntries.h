// The packed weights of a module as the packer's plain structs, and where the packer put them back into the module: the
// one place where plan.packed meets compiler/layout.
#ifndef BATTEN_COMPILER_ARTIFACT_PACKENTRIES_H
#define BATTEN_COMPILER_ARTIFACT_PACKENTRIES_H

#include "compiler/layout/PackLayout.h"
#include "dialect/PlanDialect.h"

#include <vector>

namespace batten {

/// Every plan.packed of the module, in module order, which is the order of first use. The module must have been verified
/// and its packed weights must have expressions.
std::vector<layout::PackEntry> packEntries(mlir::ModuleOp module);

/// Records offset and bytes of the entries of one pack on the module's plan.packed of their names.
void setPackOffsets(mlir::ModuleOp module, const std::vector<layout::PackEntry> &entries,
                    const layout::PackLayout &placed);

/// Records the packs' digests (hex SHA-256) on all programs.
void setPackDigests(mlir::ModuleOp module, llvm::StringRef common, llvm::StringRef panels);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_PACKENTRIES_H
