// What the tests of this room share: a context, golden directories and edited copies of them.
#ifndef BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H
#define BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H

#include "compiler/graph/Import.h"
#include "compiler/spec/Safetensors.h"
#include "dialect/BattenDialect.h"
#include "tests/ErrorText.h"
#include "tests/SafetensorsWriter.h"

#include "mlir/IR/MLIRContext.h"

#include <set>

namespace batten::test {

inline std::string goldenPath(const std::string &name) { return BATTEN_TEST_DATA "/goldens/" + name; }

/// A test with a context that knows the dialect; diagnostics that reach it fail the test.
class GraphTest : public ::testing::Test {
protected:
  GraphTest() { context.loadDialect<BattenDialect>(); }

  ImportedModel import(const std::string &dir) {
    llvm::Expected<ImportedModel> model = importGraph(context, dir);
    if (model)
      return std::move(*model);
    ADD_FAILURE() << dir << ": " << llvm::toString(model.takeError());
    return {};
  }
  std::string refusal(const std::string &dir) { return errorText(importGraph(context, dir)); }

  mlir::MLIRContext context;
};

/// A copy of a golden directory that a test may edit.
inline void copyGolden(const std::string &name, const TempDir &dir) {
  std::filesystem::copy(goldenPath(name), dir.path(), std::filesystem::copy_options::recursive);
}

/// Replaces text in a file of a directory; the text must be there.
inline void editFile(const TempDir &dir, const std::string &file, const std::string &from, const std::string &to) {
  std::string text = readFile(dir.path(file));
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " is not in " << file;
  dir.write(file, text.replace(at, from.size(), to));
}

/// "embed(embedding: seqs x 32) encode(hidden: tokens x 32)"
inline std::string lanesText(ImportedModel &model) {
  std::string text;
  for (GraphOp graph : model.module->getOps<GraphOp>()) {
    text += (text.empty() ? "" : " ") + graph.getSymName().str() + "(";
    for (size_t i = 0; i < graph.getResultTypes().size(); ++i) {
      mlir::Type type = graph.getResultTypes()[i];
      text += (i ? ", " : "") + mlir::cast<mlir::StringAttr>(graph.getResultNames()[i]).getValue().str() + ": " +
              stringifyRowKind(getRowKind(type)).str() + " x " + std::to_string(getWidth(type));
    }
    text += ")";
  }
  return text;
}

inline std::string fact(const ImportedModel &model, const std::string &key) {
  for (const auto &[name, value] : model.facts)
    if (name == key)
      return value;
  return "(none)";
}

inline std::set<std::string> weightTensors(ImportedModel &model) {
  std::set<std::string> names;
  for (WeightOp weight : model.module->getOps<WeightOp>())
    names.insert((weight.getDir() + (weight.getDir().empty() ? "" : "/") + weight.getTensor()).str());
  return names;
}

inline std::vector<std::string> unusedTensors(ImportedModel &model) {
  std::set<std::string> used = weightTensors(model);
  std::vector<std::string> unused;
  for (const Checkpoint::Tensor &tensor : model.checkpoint->tensors()) {
    std::string name = tensor.dir + (tensor.dir.empty() ? "" : "/") + tensor.stored->name;
    if (!used.count(name))
      unused.push_back(name);
  }
  return unused;
}

/// All tensors of a file, with their bytes, for writing them again under other names.
inline SafetensorsWriter rewritten(const std::string &path,
                                   llvm::function_ref<std::string(const std::string &)> rename) {
  SafetensorsFile file = llvm::cantFail(SafetensorsFile::open(path));
  SafetensorsWriter writer;
  for (const StoredTensor &tensor : file.tensors()) {
    std::string name = rename(tensor.name), bytes(tensor.bytes, '\0');
    llvm::cantFail(file.read(tensor, 0, tensor.bytes, reinterpret_cast<uint8_t *>(bytes.data())));
    if (!name.empty())
      writer.add(name, tensor.dtype, tensor.shape, bytes);
  }
  return writer;
}

/// Writes a golden's tensors again, under other names; an empty name leaves one out.
inline void rename(const TempDir &dir, const std::string &golden,
                   llvm::function_ref<std::string(const std::string &)> newName) {
  dir.write("model.safetensors", rewritten(goldenPath(golden + "/model.safetensors"), newName).bytes());
}

inline int countOps(ImportedModel &model, llvm::StringRef lane, llvm::StringRef op) {
  int count = 0;
  model.module->lookupSymbol(lane)->walk([&](mlir::Operation *each) { count += each->getName().getStringRef() == op; });
  return count;
}

} // namespace batten::test

#endif // BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H
