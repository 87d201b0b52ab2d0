// What the tests of this room share: a context, golden directories and edited copies of them.
#ifndef BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H
#define BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H

#include "compiler/graph/Import.h"
#include "dialect/BattenDialect.h"
#include "tests/ErrorText.h"

#include "mlir/IR/MLIRContext.h"

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

} // namespace batten::test

#endif // BATTEN_TESTS_GRAPH_GRAPHTESTSUPPORT_H
