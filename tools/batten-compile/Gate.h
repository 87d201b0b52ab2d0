// The gate of `batten compile`: how far a new bundle's outputs are from those of f32 weights and f32 math, on the user's
// own batches, against thresholds.
#ifndef BATTEN_TOOLS_BATTENCOMPILE_GATE_H
#define BATTEN_TOOLS_BATTENCOMPILE_GATE_H

#include "compiler/Compile.h"

#include <nlohmann/json.hpp>

namespace batten::tools {

/// Measures the bundle in `directory`, which `request` has made, on the best of its targets that runs here. The reference is
/// the same request with f32 and f32 for that target, compiled into memory; a bundle of f32 and f32 is its own. Markers and
/// sequence types are left out for lanes that don't read them.
///
/// The answer has a row an output and lane: "weights", "math", "lane", "batches", figures as in OutputAgreement::describe,
/// "thresholds". It names no path and no machine: the same inputs give the same rows.
///
/// Errors, texts of an llvm::Error: no target runs here; a batch that can't be read or doesn't fit a lane; an unknown lane;
///         thresholds that are broken, one a line: lane, output, found, wanted, batch.
llvm::Expected<std::vector<nlohmann::ordered_json>> measureGate(const CompileRequest &request,
                                                                const std::string &directory, const GateSpec &gate);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTENCOMPILE_GATE_H
