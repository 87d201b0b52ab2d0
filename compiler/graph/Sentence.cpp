// Pooling, Dense and Normalize of sentence-transformers; see the header. F.normalize divides by max(|x|, 1e-12).
#include "compiler/graph/Sentence.h"
#include "compiler/spec/Text.h"

namespace batten {

llvm::Expected<int64_t> embeddingWidth(const SentenceModules &modules, int64_t hiddenWidth) {
  int64_t width = hiddenWidth;
  for (const SentenceModule &module : modules.modules) {
    std::string where = joinPath(modules.path.substr(0, modules.path.rfind('/')), module.dir) + "/config.json: ";
    switch (module.kind) {
    case SentenceModule::Kind::Pooling:
      if (module.width && *module.width != width)
        return makeError(where + "pooling of width " + llvm::Twine(*module.width) + ", hidden_size is " +
                         llvm::Twine(width));
      width *= static_cast<int64_t>(module.modes.size());
      break;
    case SentenceModule::Kind::Dense:
      if (module.inFeatures != width)
        return makeError(where + "in_features is " + llvm::Twine(module.inFeatures) + ", the row before it has " +
                         llvm::Twine(width) + " columns");
      width = module.outFeatures;
      break;
    case SentenceModule::Kind::Normalize:
      break;
    }
  }
  return width;
}

static mlir::Value dense(GraphBuilder &builder, mlir::Value x, const SentenceModule &module, const std::string &label) {
  LinearSpec spec{{label + ".w", "linear.weight", module.dir},
                  {},
                  module.inFeatures,
                  module.outFeatures,
                  "in_features",
                  "out_features"};
  if (module.bias)
    spec.bias = {label + ".b", "linear.bias", module.dir};
  mlir::Value y =
      builder.activation(label + ".act", builder.linear(label, x, spec), *symbolizeActivation(module.activation));
  if (!module.residual)
    return y;
  if (module.inFeatures != module.outFeatures) {
    spec.weight = {label + ".residual.w", "residual.weight", module.dir};
    spec.bias = {};
    x = builder.linear(label + ".residual", x, spec);
  }
  return builder.add(label + ".add", y, x);
}

mlir::Value sentenceEmbedding(GraphBuilder &builder, mlir::Value hidden, const SentenceModules &modules) {
  mlir::Value x = hidden;
  int denseCount = 0, normCount = 0;
  auto numbered = [](const char *name, int count) { return std::string(name) + (count ? std::to_string(count) : ""); };
  for (const SentenceModule &module : modules.modules) {
    switch (module.kind) {
    case SentenceModule::Kind::Pooling: {
      llvm::SmallVector<mlir::Value> parts;
      for (const std::string &mode : module.modes)
        parts.push_back(
            builder.pool(module.modes.size() == 1 ? "pool" : "pool." + mode, hidden, *symbolizePooling(mode)));
      x = builder.concatCols("pool", parts);
      break;
    }
    case SentenceModule::Kind::Dense:
      x = dense(builder, x, module, numbered("dense", denseCount++));
      break;
    case SentenceModule::Kind::Normalize:
      x = builder.l2Normalize(numbered("normalize", normCount++), x, 1e-12f);
      break;
    }
  }
  return x;
}

} // namespace batten
