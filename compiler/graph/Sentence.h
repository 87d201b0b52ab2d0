// The modules of a sentence-transformers directory as ops on the pooled row.
#ifndef BATTEN_COMPILER_GRAPH_SENTENCE_H
#define BATTEN_COMPILER_GRAPH_SENTENCE_H

#include "compiler/graph/GraphBuilder.h"
#include "compiler/spec/SentenceModules.h"

#include "llvm/Support/Error.h"

namespace batten {

/// Width of the embedding for hidden states of the given width. Errors: a module whose stated width is another one, with
/// both numbers; more poolings than can be joined.
llvm::Expected<int64_t> embeddingWidth(const SentenceModules &modules, int64_t hiddenWidth);

/// The embedding of each sequence of the open lane. embeddingWidth must have succeeded.
mlir::Value sentenceEmbedding(GraphBuilder &builder, mlir::Value hidden, const SentenceModules &modules);

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_SENTENCE_H
