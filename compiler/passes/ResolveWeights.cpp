// resolve-weights: binds batten.weight to what the checkpoint holds. Names match exactly: the importer has found prefixes
// and spellings. All problems are reported together, tensors that nothing asks for among them; the first one closes the report.
#include "compiler/passes/Passes.h"
#include "dialect/BattenDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_RESOLVEWEIGHTS
#include "compiler/passes/Passes.h.inc"

namespace {

std::string keyOf(StringRef dir, StringRef tensor) { return (dir + Twine('\0') + tensor).str(); }

/// The tensor as a user knows it: `tensor "linear.weight" of 2_Dense`.
std::string nameOf(StringRef dir, StringRef tensor) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "tensor \"";
  llvm::printEscapedString(tensor, stream); // as in the graph's text: a name may hold any byte
  stream << '"' << (dir.empty() ? "" : " of ") << dir;
  return text;
}

/// The shape that a weight wants, with the config keys that gave it: `[24, 16] wanted` and
/// ` (intermediate_size = 24, hidden_size = 16)`.
std::pair<std::string, std::string> wantedShape(WeightOp weight) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
  std::string keys;
  if (weight.getDims()) {
    llvm::raw_string_ostream os(keys);
    os << " (";
    llvm::interleaveComma(llvm::zip(*weight.getDims(), shape), os, [&](auto pair) {
      os << cast<StringAttr>(std::get<0>(pair)).getValue() << " = " << std::get<1>(pair);
    });
    os << ")";
  }
  return {shapeText(shape) + " wanted", keys};
}

/// An element type as checkpoints spell it: I64, U8, BOOL, F64.
std::string storedTypeText(Type elem) {
  auto integer = dyn_cast<IntegerType>(elem);
  if (integer && integer.getWidth() == 1)
    return "BOOL";
  if (integer)
    return (integer.isUnsigned() ? "U" : "I") + std::to_string(integer.getWidth());
  std::string text;
  llvm::raw_string_ostream(text) << elem;
  return StringRef(text).upper();
}

/// What is wrong between a weight and the checkpoint; empty if nothing is. Element types are spelled as checkpoints do.
std::string mismatch(WeightOp weight, StoredOp stored) {
  std::string name = nameOf(weight.getDir(), weight.getTensor());
  auto [shape, keys] = wantedShape(weight);
  if (!stored)
    return name + " is missing from the checkpoint: " + shape + keys;
  std::string text = name + " in " + stored.getFile().str() + ": ";
  auto wanted = cast<RankedTensorType>(weight.getType()), found = cast<RankedTensorType>(stored.getType());
  if (wanted.getShape() != found.getShape())
    return text + shape + ", " + shapeText(found.getShape()) + " found" + keys;
  Type elem = found.getElementType();
  if (!elem.isF32() && !elem.isF16() && !elem.isBF16())
    return text + "elements of F32, F16 or BF16 wanted, " + storedTypeText(elem) + " found";
  return {};
}

/// Tensors that no weight names, which tell of a renaming or of other parts than the config states.
std::string unusedText(ArrayRef<std::string> names) {
  constexpr size_t most = 32;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "tensors that no weight names: ";
  llvm::interleaveComma(names.take_front(most), stream, [&](const std::string &name) {
    stream << '"';
    llvm::printEscapedString(name, stream);
    stream << '"';
  });
  if (names.size() > most)
    stream << " and " << names.size() - most << " more";
  return text;
}

struct ResolveWeights : impl::ResolveWeightsBase<ResolveWeights> {
  using ResolveWeightsBase::ResolveWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<StoredOp> tensors;
    for (StoredOp stored : module.getOps<StoredOp>())
      if (!tensors.try_emplace(keyOf(stored.getDir(), stored.getTensor()), stored).second) {
        stored.emitError() << nameOf(stored.getDir(), stored.getTensor()) << " is stored twice";
        return signalPassFailure();
      }

    SmallVector<std::pair<Location, std::string>> problems;
    llvm::StringSet<> used;
    unsigned wanted = 0;
    for (WeightOp weight : module.getOps<WeightOp>()) {
      std::string key = keyOf(weight.getDir(), weight.getTensor());
      used.insert(key);
      if (weight.getStored())
        continue;
      ++wanted;
      StoredOp stored = tensors.lookup(key);
      std::string problem = mismatch(weight, stored);
      if (problem.empty())
        weight.setStored(cast<RankedTensorType>(stored.getType()).getElementType());
      else
        problems.emplace_back(weight.getLoc(), std::move(problem));
    }
    std::vector<std::string> unused;
    for (StoredOp stored : module.getOps<StoredOp>())
      if (StringRef dir = stored.getDir(); !used.contains(keyOf(dir, stored.getTensor())))
        unused.push_back((dir + (dir.empty() ? "" : "/") + stored.getTensor()).str());
    if (!problems.empty() && !unused.empty())
      emitError(problems.front().first) << unusedText(unused);
    for (const auto &[location, text] : problems)
      emitError(location) << text;
    if (problems.size() > 1)
      emitError(problems.front().first) << problems.size() << " of " << wanted
                                        << " weights don't fit the checkpoint; the first: " << problems.front().second;
    if (!problems.empty())
      return signalPassFailure();

    for (StoredOp stored : llvm::make_early_inc_range(module.getOps<StoredOp>()))
      stored.erase();
    if (unused.empty())
      return;
    Builder builder(&getContext());
    SmallVector<Attribute> names;
    for (const std::string &name : unused)
      names.push_back(builder.getStringAttr(name));
    module->setAttr("batten.unused", builder.getArrayAttr(names));
  }
};

} // namespace
} // namespace batten
