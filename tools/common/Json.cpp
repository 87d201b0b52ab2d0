// nlohmann-json keeps the last of two equal keys silently; the callback here refuses the second instead.
#include "tools/common/Json.h"

#include "tools/common/Output.h"
#include "tools/common/Text.h"

#include <set>

namespace batten::tools {

using nlohmann::json;

namespace {
constexpr int kMaxDepth = 64;
} // namespace

json parseJson(std::string_view text, const std::string &where) {
  std::vector<std::set<std::string>> keys;
  auto callback = [&](int depth, json::parse_event_t event, json &value) {
    if (depth > kMaxDepth)
      fail(where + ": nested deeper than " + std::to_string(kMaxDepth));
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(where + ": key \"" + printable(value.get<std::string>()) + "\" occurs twice");
    return true;
  };
  // nlohmann-json takes a NUL for the end of the text: what follows would be left out silently.
  if (size_t nul = text.find('\0'); nul != text.npos)
    fail(where + ": not JSON: wrong at byte " + std::to_string(nul + 1));
  try {
    return json::parse(text.begin(), text.end(), callback);
  } catch (const json::parse_error &error) {
    fail(where + ": not JSON: wrong at byte " + std::to_string(error.byte));
  }
}

std::string typeWord(const json &value) {
  switch (value.type()) {
  case json::value_t::null:
    return "null";
  case json::value_t::object:
    return "an object";
  case json::value_t::array:
    return "an array";
  case json::value_t::string:
    return "a string";
  case json::value_t::boolean:
    return "a boolean";
  case json::value_t::number_float:
    return "a fraction";
  default:
    return "a number";
  }
}

} // namespace batten::tools
