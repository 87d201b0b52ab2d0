// The batten dialect's ops that look rows up by what the batch says: embeddings, types of sequences, markers. See
// BattenOps.cpp.
#include "dialect/OpSupport.h"

using namespace mlir;
using namespace batten;

//===--- embeddings ----------------------------------------------------------------------------------------------===//

LogicalResult EmbedOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  return inferTable(location, "embed", adaptor.getTable(), types);
}
LogicalResult EmbedOp::verify() { return verifyTable(*this, getTable()); } // embed_c1
DictionaryAttr EmbedOp::getKernelKey() {
  return KeyBuilder(*this, "embed")
      .add("width", tableWidth(getTable()))
      .addFlag("words", true)
      .add("offset", int64_t(0))
      .addStorage(weightElem(getTable()))
      .get();
}
SmallVector<Value> EmbedOp::getKernelInputs() { return {getTable()}; }
int64_t EmbedOp::getFlopsPerRow() { return 0; }
int64_t EmbedOp::getBytesPerRow() { return embedBytes(getTable(), *this); }

LogicalResult EmbedTypesOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  return inferTable(location, "embed_types", adaptor.getTable(), types);
}
LogicalResult EmbedTypesOp::verify() { return verifyTable(*this, getTable()); } // embed_types_c1
DictionaryAttr EmbedTypesOp::getKernelKey() {
  return KeyBuilder(*this, "embed")
      .add("width", tableWidth(getTable()))
      .addFlag("types", true)
      .add("offset", int64_t(0))
      .addStorage(weightElem(getTable()))
      .get();
}
SmallVector<Value> EmbedTypesOp::getKernelInputs() { return {getTable()}; }
int64_t EmbedTypesOp::getFlopsPerRow() { return 0; }
int64_t EmbedTypesOp::getBytesPerRow() { return embedBytes(getTable(), *this); }

LogicalResult EmbedPositionsOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  return inferTable(location, "embed_positions", adaptor.getTable(), types);
}
LogicalResult EmbedPositionsOp::verify() {
  if (failed(verifyTable(*this, getTable()))) // embed_positions_c1
    return failure();
  return verifyOffset(*this, getOffset(), tableRows(getTable())); // embed_positions_c2
}
DictionaryAttr EmbedPositionsOp::getKernelKey() {
  return KeyBuilder(*this, "embed")
      .add("width", tableWidth(getTable()))
      .addFlag("positions", true)
      .add("offset", getOffset())
      .addStorage(weightElem(getTable()))
      .get();
}
SmallVector<Value> EmbedPositionsOp::getKernelInputs() { return {getTable()}; }
int64_t EmbedPositionsOp::getFlopsPerRow() { return 0; }
int64_t EmbedPositionsOp::getBytesPerRow() { return embedBytes(getTable(), *this); }

LogicalResult EmbedSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  for (Value table : {adaptor.getWords(), adaptor.getTypeTable(), adaptor.getPositions()})
    if (table)
      return inferTable(location, "embed_sum", table, types);
  return emitOptionalError(location, "'batten.embed_sum' op has no table");
}
LogicalResult EmbedSumOp::verify() {
  SmallVector<Value> tables = getKernelInputs();
  // embed_sum_c1
  if (tables.size() < 2)
    return emitOpError("sums at least two tables, found ") << tables.size();
  for (Value table : tables)
    if (failed(verifyTable(*this, table)))
      return failure();
  for (Value table : tables)
    if (weightElem(table) != weightElem(tables.front()))
      return emitOpError("table is ") << table.getType() << ", the first one " << tables.front().getType();
  // embed_sum_c2
  if (!getIds() != !getWords() || !getTypes() != !getTypeTable() || !getSegments() != !getPositions())
    return emitOpError("has a table without its indices or indices without their table");
  // embed_sum_c3
  for (Value table : tables)
    if (tableWidth(table) != getWidth(getType()))
      return emitOpError("table is ") << tableWidth(table) << " wide, the first one " << getWidth(getType());
  // embed_sum_c4
  return verifyOffset(*this, getOffset(), getPositions() ? tableRows(getPositions()) : 1);
}
DictionaryAttr EmbedSumOp::getKernelKey() {
  KeyBuilder key(*this, "embed");
  key.add("width", getWidth(getType()))
      .addFlag("words", !!getWords())
      .addFlag("types", !!getTypeTable())
      .addFlag("positions", !!getPositions())
      .add("offset", getPositions() ? getOffset() : 0)
      .addStorage(weightElem(getKernelInputs().front()));
  return key.get();
}
SmallVector<Value> EmbedSumOp::getKernelInputs() {
  SmallVector<Value> tables;
  for (Value table : {getWords(), getTypeTable(), getPositions()})
    if (table)
      tables.push_back(table);
  return tables;
}
int64_t EmbedSumOp::getBytesPerRow() { return embedBytes(getKernelInputs(), *this); }
int64_t EmbedSumOp::getFlopsPerRow() { return (getKernelInputs().size() - 1) * getWidth(getType()); }

LogicalResult AddTypeOp::verify() {
  // add_type_c1
  if (failed(verifyF32(*this, "table", getTable())))
    return failure();
  // add_type_c2
  if (tableWidth(getTable()) != getWidth(getType()))
    return emitOpError("table is ") << tableWidth(getTable()) << " wide, rows are " << getWidth(getType());
  return success();
}
DictionaryAttr AddTypeOp::getKernelKey() {
  return KeyBuilder(*this, "add_type").add("width", getWidth(getType())).get();
}
SmallVector<Value> AddTypeOp::getKernelInputs() { return {getTable(), getX()}; }
std::optional<unsigned> AddTypeOp::getOverwritableOperand() { return 0; }
int64_t AddTypeOp::getFlopsPerRow() { return getWidth(getType()); }
int64_t AddTypeOp::getBytesPerRow() { return embedBytes(ValueRange{getTable(), getTable()}, *this); }

//===--- markers -------------------------------------------------------------------------------------------------===//

LogicalResult GatherMarkersOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "gather_markers", adaptor.getX(), x)))
    return failure();
  types.push_back(getRowsType(context, RowKind::markers, getWidth(x)));
  return success();
}
DictionaryAttr GatherMarkersOp::getKernelKey() {
  return KeyBuilder(*this, "gather_markers").add("width", getWidth(getType())).get();
}
SmallVector<Value> GatherMarkersOp::getKernelInputs() { return {getX()}; }
int64_t GatherMarkersOp::getFlopsPerRow() { return 0; }

LogicalResult DecisionFeaturesOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "decision_features", adaptor.getX(), x)))
    return failure();
  types.push_back(getRowsType(context, RowKind::seqs, getWidth(x) + kDecisionFeatures));
  return success();
}
LogicalResult DecisionFeaturesOp::verify() {
  // decision_features_c1
  if (getWidth(getLogits().getType()) != 1)
    return emitOpError("logits are ") << getWidth(getLogits().getType()) << " wide, one a marker wanted";
  return success();
}
DictionaryAttr DecisionFeaturesOp::getKernelKey() {
  return KeyBuilder(*this, "decision_features").add("width", getWidth(getX().getType())).get();
}
SmallVector<Value> DecisionFeaturesOp::getKernelInputs() { return {getX(), getLogits()}; }
int64_t DecisionFeaturesOp::getFlopsPerRow() { return 0; }
