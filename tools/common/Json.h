// Strict JSON: what RFC 8259 allows, no repeated key, a bound on depth. Over nlohmann-json.
#ifndef BATTEN_TOOLS_COMMON_JSON_H
#define BATTEN_TOOLS_COMMON_JSON_H

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace batten::tools {

/// Parses text, which is one JSON value and blanks.
///
/// Errors: Failure "WHERE: what is wrong", with the byte for a syntax error, the key for a repeated one.
nlohmann::json parseJson(std::string_view text, const std::string &where);

/// The type of a value as a word with its article: "an object", "a number".
std::string typeWord(const nlohmann::json &value);

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_JSON_H
