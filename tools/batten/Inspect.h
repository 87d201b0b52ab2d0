// What a bundle says about itself, as JSON; the text page of `batten inspect` is made from the same JSON.
#ifndef BATTEN_TOOLS_BATTEN_INSPECT_H
#define BATTEN_TOOLS_BATTEN_INSPECT_H

#include "tools/batten/Bundle.h"

#include <nlohmann/json.hpp>

#include <string>

namespace batten::tools {

/// Everything that fixes a result, but for the steps of plans.
nlohmann::ordered_json describeBundle(const batten_bundle_t *bundle);

/// "TOKENSxSEQSxMARKERS".
std::string bucketName(const batten_bucket_info_t &bucket);
/// "panels", "rows", "tasks" or "one".
const char *domainName(uint32_t domain);

/// A plan, by "LANE-TOKENSxSEQSxMARKERS", with its steps and operands. FLOP and bytes are those of a full bucket,
/// attention's pairs those of its longest possible sequences.
///
/// Errors: Failure that lists the plans.
nlohmann::ordered_json describePlan(const batten_bundle_t *bundle, const std::string &bundlePath,
                                    const std::string &name);
/// describePlan's answer as a page.
std::string planPage(const nlohmann::ordered_json &plan);

/// Bytes that an executor and its bundle hold, by what they are for.
nlohmann::ordered_json describeMemory(const batten_executor_t *executor);
/// describeMemory's answer as a line.
std::string memoryLine(const nlohmann::ordered_json &memory);

/// Most (query, key) pairs of a bucket: as many sequences of the greatest length as fit. pairWindow as in batten_step_info_t.
uint64_t mostPairs(const Lane &lane, const batten_bucket_info_t &bucket, uint32_t pairWindow);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_INSPECT_H
