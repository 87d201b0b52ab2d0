// The first step at which two bundles, or two targets of one, give other bits. Both sides run the batch twice: once for a
// digest of each step, and once more for the rows of the step that differs, so that memory holds one step.
#ifndef BATTEN_TOOLS_BATTEN_STEPCOMPARE_H
#define BATTEN_TOOLS_BATTEN_STEPCOMPARE_H

#include "tools/batten/Trace.h"

#include <nlohmann/json.hpp>

namespace batten::tools {

/// One of the two that are compared.
struct Side {
  const batten_bundle_t *bundle;
  const Engine *engine;
  Lane lane;
};

/// Compares the steps of a run of batch on both. Steps are matched by label, equal labels by their order.
///
/// Gives {"steps": number that match, "same_bits": bool}, and where it applies
///   "parts_at": {"step", "a", "b"}  where the lists of labels part; a or b is null where its list has ended
///   "first": {"label", "step_a", "step_b", "kernel_a", "kernel_b", "rows_a", "rows_b", "width_a", "width_b"} of the first
///       matched step in a's order that differs, and unless it is in the kind of rows or the width also {"row", "column",
///       "sequence", "index" (of the row inside its sequence), "a", "b", "bits_a", "bits_b", "apart", "bits_differ",
///       "elements", "max_abs"}
/// Errors: as runTraced.
nlohmann::ordered_json compareSteps(const Side &a, const Side &b, const Batch &batch, const std::string &where);
/// compareSteps' answer as lines of text.
std::string stepsPage(const nlohmann::ordered_json &steps);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_STEPCOMPARE_H
