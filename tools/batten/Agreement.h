// How far outputs of a lane are from those of another bundle, over batches, and against thresholds: the one definition for
// `batten compare` and for the gate of `batten compile`.
#ifndef BATTEN_TOOLS_BATTEN_AGREEMENT_H
#define BATTEN_TOOLS_BATTEN_AGREEMENT_H

#include "tools/batten/Batches.h"
#include "tools/batten/Difference.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace batten::tools {

/// What is refused; what is absent is not held. Units: margin and the two differences are in the outputs' own unit.
struct Thresholds {
  std::optional<double> maxAbs, maxMean, maxRel, minCosine, minArgmax;
  std::optional<double> margin; ///< of argmax: leaves out rows whose two best columns are nearer than this
  bool any() const { return maxAbs || maxMean || maxRel || minCosine || minArgmax; }
  /// Adds their options to a command.
  void addTo(CLI::App *command);
  /// {"max_abs": ..}: those that are there.
  nlohmann::ordered_json describe() const;
};

/// Key of the manifest's notes that hold what a gate has measured: a JSON object a note.
inline constexpr char kAgreementNote[] = "agreement";
/// A table of such objects, and what was held. Takes any object: the bytes of a bundle may hold what they like.
std::string agreementPage(const std::vector<nlohmann::ordered_json> &rows, const std::string &indent);

/// One output of a lane, over batches.
struct OutputAgreement {
  Lane::Output output;
  Difference all;
  std::vector<Difference> ofBatch;

  /// {"output", "rows", "width", "bits_differ", .., "argmax_agreement"}; cosine and argmax are null where the width is 1.
  nlohmann::ordered_json describe() const;
};

/// Agreement of a lane of b with the lane of the same name of a, of which b must have every output in the same shape.
class Agreement {
public:
  /// Errors: Failure where b lacks an output or has it in another shape; where is the name of each side.
  Agreement(const Lane &a, const Lane &b, const std::string &whereA, const std::string &whereB);

  /// Compares what both lanes gave for a batch.
  void add(const Outputs &a, const Outputs &b, const std::string &batchName, double margin);
  const std::vector<OutputAgreement> &outputs() const { return all; }
  /// A line for each threshold that an output breaks, all batches together; names the batch where it is worst.
  void addFailures(const Thresholds &thresholds, std::vector<std::string> &failures) const;

private:
  std::string lane;
  std::vector<size_t> matches; ///< index in b of each output of a
  std::vector<OutputAgreement> all;
  std::vector<std::string> batches;
};

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_AGREEMENT_H
