// What an imported model's config and modules say, for people: the facts that `inspect` shows.
#ifndef BATTEN_COMPILER_GRAPH_FACTS_H
#define BATTEN_COMPILER_GRAPH_FACTS_H

#include "compiler/graph/Encoder.h"
#include "compiler/graph/Import.h"
#include "compiler/spec/SentenceModules.h"

#include <optional>

namespace batten {

/// All facts in order; values that are the family's default say so, with the key that config.json lacks.
Facts factsOf(const ModelConfig &config, const Encoder &encoder, const std::optional<SentenceModules> &modules);

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_FACTS_H
