// Kernel keys as MLIR dictionaries. Goes through the text form's visitor order: a dictionary holds exactly the
// attributes that printKernelKey prints.
#include "compiler/kernels/KernelKeyAttr.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <charconv>

using namespace batten;

mlir::DictionaryAttr batten::kernelKeyToAttr(const KernelKey &key, mlir::MLIRContext *context) {
  std::string text = printKernelKey(key);
  mlir::Attribute attribute =
      mlir::parseAttribute(llvm::StringRef(text).drop_until([](char c) { return c == '{'; }), context);
  assert(attribute && "printKernelKey prints what MLIR reads");
  return llvm::cast<mlir::DictionaryAttr>(attribute);
}

/// One attribute in the text form, or nothing where its kind has none.
static std::optional<std::string> attributeText(mlir::Attribute attribute) {
  auto listText = [](auto &&values) {
    std::string text = "[";
    for (int64_t value : values)
      text += (text.size() > 1 ? ", " : "") + std::to_string(value);
    return text + "]";
  };
  if (llvm::isa<mlir::UnitAttr>(attribute))
    return "";
  if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(attribute)) {
    if (integer.getValue().getSignificantBits() > 64)
      return std::nullopt;
    return " = " + std::to_string(integer.getValue().getSExtValue());
  }
  if (auto decimal = llvm::dyn_cast<mlir::FloatAttr>(attribute)) {
    if (!decimal.getType().isF32())
      return std::nullopt;
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), decimal.getValue().convertToFloat()).ptr;
    return " = " + std::string(buffer, end);
  }
  if (auto word = llvm::dyn_cast<mlir::StringAttr>(attribute))
    return (" = \"" + word.getValue() + "\"").str();
  if (auto dense = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attribute))
    return " = " + listText(dense.asArrayRef());
  if (auto array = llvm::dyn_cast<mlir::ArrayAttr>(attribute)) {
    std::vector<int64_t> values;
    for (mlir::Attribute element : array) {
      auto integer = llvm::dyn_cast<mlir::IntegerAttr>(element);
      if (!integer || integer.getValue().getSignificantBits() > 64)
        return std::nullopt;
      values.push_back(integer.getValue().getSExtValue());
    }
    return " = " + listText(values);
  }
  return std::nullopt;
}

llvm::Expected<KernelKey> batten::kernelKeyFromAttr(llvm::StringRef op, mlir::DictionaryAttr attributes) {
  std::string text = (op + " {").str();
  bool first = true;
  for (mlir::NamedAttribute attribute : attributes) {
    std::optional<std::string> value = attributeText(attribute.getValue());
    if (!value) {
      std::string found;
      llvm::raw_string_ostream(found) << attribute.getValue();
      return llvm::createStringError("kernel key " + op + ": attribute '" + attribute.getName().getValue() + "' is " +
                                     found + ", an integer, an f32, a string, a unit or a list of integers wanted");
    }
    text += (first ? "" : ", ") + attribute.getName().str() + *value;
    first = false;
  }
  return parseKernelKey(text + "}");
}
