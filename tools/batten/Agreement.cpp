// See the header.
#include "tools/batten/Agreement.h"

#include "tools/common/Command.h"
#include "tools/common/Text.h"

#include <algorithm>
#include <limits>

namespace batten::tools {

using nlohmann::ordered_json;

void Thresholds::addTo(CLI::App *command) {
  auto option = [&](const char *name, std::optional<double> &value, const char *what, double most) {
    command->add_option(name, value, what)->type_name("X")->check(CLI::Range(0.0, most).description(""));
  };
  constexpr double kAny = std::numeric_limits<double>::max();
  option("--max-abs", maxAbs, "Refuse a larger difference of two elements", kAny);
  option("--max-mean", maxMean, "Refuse a larger mean of the differences", kAny);
  option("--max-rel", maxRel, "Refuse a larger difference, relative to the largest value", kAny);
  option("--min-cosine", minCosine, "Refuse rows of a smaller cosine", 1);
  option("--min-argmax", minArgmax, "Refuse a smaller share of rows with the same best column, 0 to 1", 1);
  option("--margin", margin,
         "For argmax, leave out rows whose two best columns are nearer than this in what is compared with", kAny);
}

ordered_json Thresholds::describe() const {
  ordered_json json = ordered_json::object();
  for (auto [key, value] : {std::pair{"max_abs", maxAbs},
                            {"max_mean", maxMean},
                            {"max_rel", maxRel},
                            {"min_cosine", minCosine},
                            {"min_argmax", minArgmax},
                            {"margin", margin}})
    if (value)
      json[key] = *value;
  return json;
}

std::string agreementPage(const std::vector<ordered_json> &rows, const std::string &indent) {
  auto cell = [](const ordered_json &row, const char *key) -> std::string {
    auto found = row.find(key);
    if (found == row.end() || found->is_null())
      return "-";
    if (found->is_string())
      return printable(found->get<std::string>());
    if (found->is_number_float())
      return std::string_view(key) == "least_cosine" ? fixed(found->get<double>(), 7)
                                                     : significant(found->get<double>());
    return printable(found->dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  };
  Table table("llllrrrrrrr");
  table.add({"lane", "output", "weights", "math", "batches", "rows", "max abs", "mean abs", "max rel", "least cosine",
             "argmax agrees"});
  std::vector<std::string> held;
  for (const ordered_json &row : rows) {
    std::vector<std::string> cells;
    for (const char *key : {"lane", "output", "weights", "math", "batches", "rows", "max_abs", "mean_abs", "max_rel",
                            "least_cosine", "argmax_agreement"})
      cells.push_back(cell(row, key));
    table.add(std::move(cells));
    auto thresholds = row.find("thresholds");
    std::string text;
    if (thresholds != row.end() && thresholds->is_object())
      for (const auto &[key, value] : thresholds->items())
        text += (text.empty() ? "" : ", ") + printable(key) + " " + cell(*thresholds, key.c_str());
    if (std::find(held.begin(), held.end(), text) == held.end())
      held.push_back(text);
  }
  std::string page = table.str(indent);
  for (const std::string &text : held)
    page += indent + "held: " + (text.empty() ? "nothing" : text) + "\n";
  return page;
}

ordered_json OutputAgreement::describe() const {
  bool wide = output.width > 1; // a row of one has no direction and no best column
  return {{"output", output.name},
          {"rows", all.rows},
          {"width", output.width},
          {"bits_differ", all.bitsDiffer},
          {"not_finite", all.notFinite},
          {"max_abs", all.maxAbs},
          {"mean_abs", all.meanAbs()},
          {"max_rel", all.maxRelative()},
          {"least_cosine", wide ? ordered_json(all.leastCosine) : ordered_json()},
          {"argmax_agreement", wide ? ordered_json(all.argmaxAgreement()) : ordered_json()}};
}

Agreement::Agreement(const Lane &a, const Lane &b, const std::string &whereA, const std::string &whereB)
    : lane(a.name) {
  auto shape = [](const Lane::Output &output) {
    return "[" + std::string(rowKindName(output.rowKind)) + ", " + std::to_string(output.width) + "]";
  };
  for (const Lane::Output &output : a.outputs) {
    size_t i = 0;
    while (i < b.outputs.size() && b.outputs[i].name != output.name)
      ++i;
    if (i == b.outputs.size())
      fail(whereB + ": lane " + b.name + " has no output " + output.name + ", which " + whereA + " has");
    if (shape(output) != shape(b.outputs[i]))
      fail("output " + output.name + " is " + shape(output) + " in " + whereA + " and " + shape(b.outputs[i]) + " in " +
           whereB);
    matches.push_back(i);
    all.push_back({output, {}, {}});
  }
}

void Agreement::add(const Outputs &a, const Outputs &b, const std::string &batchName, double margin) {
  batches.push_back(batchName);
  for (size_t o = 0; o < all.size(); ++o) {
    const float *dataA = a.data[o].data(), *dataB = b.data[matches[o]].data();
    const uint32_t rows = a.rows[o], width = all[o].output.width;
    all[o].all.add(dataA, dataB, rows, width, margin);
    all[o].ofBatch.emplace_back().add(dataA, dataB, rows, width, margin);
  }
}

void Agreement::addFailures(const Thresholds &thresholds, std::vector<std::string> &failures) const {
  for (const OutputAgreement &found : all) {
    const std::string name = "lane " + lane + ", output " + found.output.name + ": ";
    // Where there are several batches: the one with the worst figure of its own.
    auto worst = [&](auto figure, bool least) {
      size_t at = 0;
      for (size_t i = 1; i < batches.size(); ++i)
        if (least ? figure(found.ofBatch[i]) < figure(found.ofBatch[at])
                  : figure(found.ofBatch[i]) > figure(found.ofBatch[at]))
          at = i;
      return batches[at];
    };
    auto most = [&](const char *what, auto figure, std::optional<double> bound) {
      if (bound && !(figure(found.all) <= *bound))
        failures.push_back(name + what + " " + significant(figure(found.all)) + ", at most " + significant(*bound) +
                           " wanted; most in " + worst(figure, false));
    };
    auto least = [&](const char *what, auto figure, std::optional<double> bound) {
      if (bound && found.output.width > 1 && !(figure(found.all) >= *bound))
        failures.push_back(name + what + " " + fixed(figure(found.all), 7) + ", at least " + fixed(*bound, 7) +
                           " wanted; least in " + worst(figure, true));
    };
    most("max abs", [](const Difference &d) { return d.maxAbs; }, thresholds.maxAbs);
    most("mean abs", [](const Difference &d) { return d.meanAbs(); }, thresholds.maxMean);
    most("max rel", [](const Difference &d) { return d.maxRelative(); }, thresholds.maxRel);
    least("least cosine", [](const Difference &d) { return d.leastCosine; }, thresholds.minCosine);
    least("argmax agreement", [](const Difference &d) { return d.argmaxAgreement(); }, thresholds.minArgmax);
    if (thresholds.any() && found.all.notFinite)
      failures.push_back(name + std::to_string(found.all.notFinite) +
                         " elements are infinite or not a number on one side, none wanted; most in " +
                         worst([](const Difference &d) { return d.notFinite; }, false));
  }
}

} // namespace batten::tools
