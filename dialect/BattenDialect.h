// The batten dialect in C++: what a graph computes, as ops on rows. Everything that touches graphs includes this page.
// Definitions are in BattenDialect.td and BattenOps.td; `cmake --build ... --target batten_dialect_doc` writes the page.
#ifndef BATTEN_DIALECT_BATTENDIALECT_H
#define BATTEN_DIALECT_BATTENDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <array>
#include <optional>

#include "dialect/Enums.h.inc"

namespace batten {

/// The version of the graph dialect that this build reads and writes (`batten.version`).
constexpr int32_t kDialectVersion = 1;
/// Attribute of a graph that is not the same one for longer sequences: tokens of the longest that it takes.
constexpr llvm::StringLiteral kMaxSeqTokensAttr = "batten.max_seq_tokens";
/// Most operands of concat_cols: a kernel takes 8 pointers.
constexpr unsigned kMaxConcatCols = 6;
/// Columns that decision_features adds to a row.
constexpr int64_t kDecisionFeatures = 4;

/// Whether this is `tensor<?xWxf32, #batten.rows<kind>>`; any kind where none is given.
bool isRows(mlir::Type type, std::optional<RowKind> kind = std::nullopt);
/// Whether this is a weight of the rank: constant sizes of at least 1, of f32, f16, bf16 or i8, without an encoding.
bool isWeight(mlir::Type type, unsigned rank);
/// `tensor<?xWxf32, #batten.rows<kind>>`.
mlir::RankedTensorType getRowsType(mlir::MLIRContext *context, RowKind kind, int64_t width);
/// Row kind of a value of rows. The type must satisfy isRows.
RowKind getRowKind(mlir::Type rows);
/// Width of a value of rows. The type must satisfy isRows.
int64_t getWidth(mlir::Type rows);
/// Bytes of one row of each operand and result that is rows: the default of KernelOpInterface::getBytesPerRow.
int64_t activationBytesPerRow(mlir::Operation *op);
/// A type's shape as error texts show it: "[24, 16]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Prints buckets as `[[32, 8, 0], [128, 32, 0]]`; the stage's part of the assembly format.
void printBuckets(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr buckets);
mlir::ParseResult parseBuckets(mlir::OpAsmParser &parser, mlir::ArrayAttr &buckets);

} // namespace batten

#include "dialect/Interfaces.h.inc"

#include "dialect/BattenDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/BattenAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/BattenTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/BattenOps.h.inc"

#endif // BATTEN_DIALECT_BATTENDIALECT_H
