// Decision checkpoints: a ModernBERT encoder, layers over a type of each sequence, a score for each marker, two logits for
// each sequence. The encoder itself is Encoder's.
#ifndef BATTEN_COMPILER_GRAPH_DECISION_H
#define BATTEN_COMPILER_GRAPH_DECISION_H

#include "compiler/graph/Encoder.h"

#include <string>
#include <vector>

namespace batten {

/// Types of sequences that a decision checkpoint tells apart: the rows of its type table.
inline constexpr int64_t kDecisionTypes = 3;

/// Adds lanes to a builder: `decide` (logits [markers, 1], act [seqs, 2]), `embed` (pooled [seqs, hidden]: the mean of each
/// sequence's encoder rows) and `encode` (hidden [tokens, hidden]), on one set of weights, and their names to `lanes`.
/// Weights are named by what such checkpoints have; `temperature` must be there and is read by no lane. The config must have
/// decisionLayers.
///
/// Source: the reference's decision graph; norms of the head have eps 1e-5, its attention sees all keys without rotary
///         positions, its inner layers have relu and are 4 times as wide, gelu is the erf form.
void buildDecisionLanes(GraphBuilder &builder, const ModelConfig &config, const Encoder &encoder,
                        std::vector<std::string> &lanes);

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_DECISION_H
