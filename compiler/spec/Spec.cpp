// Parsing batten.toml; see the header. toml++ does the grammar (after checkTomlShape), this file what each key means.
#include "compiler/spec/Spec.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/SpecText.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

// toml++ asserts in a debug build, and tells the optimiser in a release build, that a key begins as a key does. Text such
// as "[[ ]" breaks that, and the code behind copes with it; so the assertion is made to mean nothing in either build.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <set>

namespace batten {

namespace {

/// Typed access to tables with errors at path:line:column. Every accessor names the keys that its table may have.
class Reader {
public:
  explicit Reader(llvm::StringRef path) : path(path.str()) {}

  SpecPlace place(const toml::source_position &at) const {
    return path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
  SpecPlace place(const toml::node &node) const { return place(node.source().begin); }
  SpecPlace place(const toml::key &key) const { return place(key.source().begin); }

  llvm::Error fail(const toml::node &node, const llvm::Twine &text) const {
    return makeError(place(node) + ": " + text);
  }

  llvm::Error checkKeys(const toml::table &table, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known) const {
    const toml::key *unknown = nullptr; // the first in the file, not the first by name
    for (auto &&[key, node] : table)
      if (!llvm::is_contained(known, llvm::StringRef(key.str())) &&
          (!unknown || key.source().begin < unknown->source().begin))
        unknown = &key;
    if (!unknown)
      return llvm::Error::success();
    llvm::StringRef name(unknown->str());
    return makeError(place(*unknown) + ": unknown key " + quoted(name) + " in " + what + didYouMean(name, known) +
                     " (known: " + joined(known) + ")");
  }

  llvm::Expected<std::string> string(const toml::table &table, llvm::StringRef what, llvm::StringRef key,
                                     std::optional<llvm::StringRef> fallback = std::nullopt) const {
    const toml::node *node = table.get(std::string_view(key));
    if (!node && fallback)
      return fallback->str();
    if (!node)
      return fail(table, what + " has no " + quoted(key));
    const toml::value<std::string> *value = node->as_string();
    if (!value || value->get().empty() || value->get().find('\0') != std::string::npos)
      return fail(*node, what + "." + key + ": a string that is not empty wanted");
    return value->get();
  }

  llvm::Expected<std::optional<int64_t>> integer(const toml::table &table, llvm::StringRef what,
                                                 llvm::StringRef key) const {
    const toml::node *node = table.get(std::string_view(key));
    if (!node)
      return std::nullopt;
    const toml::value<int64_t> *value = node->as_integer();
    if (!value)
      return fail(*node, what + "." + key + ": an integer wanted");
    return value->get();
  }

  /// A number of 0 to most.
  llvm::Expected<std::optional<double>> number(const toml::table &table, llvm::StringRef what, llvm::StringRef key,
                                               double most) const {
    const toml::node *node = table.get(std::string_view(key));
    if (!node)
      return std::nullopt;
    std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= 0) || !(*value <= most))
      return fail(*node, what + "." + key + ": a number from 0 " +
                             (most == 1 ? llvm::StringRef("to 1") : llvm::StringRef("on")) + " wanted");
    return *value;
  }

private:
  std::string path;
};

/// A path of a spec, joined to the spec's directory unless absolute.
std::string besideSpec(llvm::StringRef dir, llvm::StringRef path) {
  return path.starts_with("/") ? path.str() : joinPath(dir, path);
}

llvm::Error readModel(const Reader &reader, const toml::table &root, llvm::StringRef dir, Spec &spec) {
  const toml::node *node = root.get("model");
  if (!node)
    return makeError(spec.path + ": no [model]");
  const toml::table *table = node->as_table();
  if (!table)
    return reader.fail(*node, "model: a table wanted");
  if (llvm::Error error = reader.checkKeys(*table, "[model]", {"graph", "checkpoint"}))
    return error;
  for (auto [key, member] : {std::pair("graph", &Spec::graph), std::pair("checkpoint", &Spec::checkpoint)}) {
    llvm::Expected<std::string> value = reader.string(*table, "[model]", key);
    if (!value)
      return value.takeError();
    spec.*member = besideSpec(dir, *value);
  }
  return llvm::Error::success();
}

llvm::Expected<StageSpec> readStage(const Reader &reader, llvm::StringRef name, const SpecPlace &place,
                                    const toml::node &node) {
  StageSpec stage{name.str(), {}, place};
  std::string what = "[stage." + name.str() + "]";
  if (llvm::Error error = checkName(name, "stage", place))
    return std::move(error);
  const toml::table *table = node.as_table();
  if (!table)
    return reader.fail(node, what + ": a table wanted");
  if (llvm::Error error = reader.checkKeys(*table, what, {"buckets"}))
    return std::move(error);
  const toml::node *list = table->get("buckets");
  const toml::array *array = list ? list->as_array() : nullptr;
  if (list && !array)
    return reader.fail(*list, what + ".buckets: an array of tables wanted");
  if (array && array->size() > kMostSpecEntries)
    return reader.fail(*array, what + " has " + llvm::Twine(array->size()) + " buckets, at most " +
                                   llvm::Twine(kMostSpecEntries));
  std::vector<SpecPlace> places;
  for (size_t i = 0; array && i < array->size(); ++i) {
    const toml::node &item = *array->get(i);
    const toml::table *bucket = item.as_table();
    if (!bucket)
      return reader.fail(item, what + ": a bucket { tokens, seqs, markers } wanted");
    if (llvm::Error error = reader.checkKeys(*bucket, "a bucket", {"tokens", "seqs", "markers"}))
      return std::move(error);
    int64_t counts[3] = {0, 0, 0};
    int at = 0;
    for (llvm::StringRef key : {"tokens", "seqs", "markers"}) {
      llvm::Expected<std::optional<int64_t>> count = reader.integer(*bucket, "bucket", key);
      if (!count)
        return count.takeError();
      if (!*count && key != "markers")
        return reader.fail(item, "a bucket without " + quoted(key));
      counts[at++] = count->value_or(0);
    }
    llvm::Expected<Bucket> made = makeBucket(counts[0], counts[1], counts[2], reader.place(item));
    if (!made)
      return made.takeError();
    stage.buckets.push_back(*made);
    places.push_back(reader.place(item));
  }
  if (llvm::Error error = finishStage(stage, places))
    return std::move(error);
  return stage;
}

llvm::Error readStages(const Reader &reader, const toml::table &root, Spec &spec) {
  const toml::node *node = root.get("stage");
  const toml::table *table = node ? node->as_table() : nullptr;
  if (node && !table)
    return reader.fail(*node, "stage: tables [stage.NAME] wanted");
  if (!table || table->empty())
    return makeError(spec.path + ": no [stage.NAME]");
  if (table->size() > kMostSpecEntries)
    return reader.fail(*table, llvm::Twine(table->size()) + " stages, at most " + llvm::Twine(kMostSpecEntries));
  std::vector<std::pair<toml::source_position, StageSpec>> found;
  for (auto &&[key, value] : *table) {
    llvm::Expected<StageSpec> stage = readStage(reader, llvm::StringRef(key.str()), reader.place(key), value);
    if (!stage)
      return stage.takeError();
    found.emplace_back(key.source().begin, std::move(*stage));
  }
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto &[at, stage] : found)
    spec.stages.push_back(std::move(stage));
  return llvm::Error::success();
}

/// An array of tables such as [[lane]]; calls read for each.
llvm::Error eachTable(const Reader &reader, const toml::table &root, llvm::StringRef key,
                      llvm::function_ref<llvm::Error(const toml::table &)> read) {
  const toml::node *node = root.get(std::string_view(key));
  if (!node)
    return llvm::Error::success();
  const toml::array *array = node->as_array();
  if (!array)
    return reader.fail(*node, key + ": an array of tables [[" + key + "]] wanted");
  if (array->size() > kMostSpecEntries)
    return reader.fail(*node,
                       llvm::Twine(array->size()) + " of [[" + key + "]], at most " + llvm::Twine(kMostSpecEntries));
  for (const toml::node &item : *array) {
    const toml::table *table = item.as_table();
    if (!table)
      return reader.fail(item, key + ": a table wanted");
    if (llvm::Error error = read(*table))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error readLane(const Reader &reader, const toml::table &table, Spec &spec) {
  constexpr llvm::StringLiteral kWhat = "[[lane]]";
  if (llvm::Error error = reader.checkKeys(
          table, kWhat, {"name", "graph", "stage", "id_count", "type_count", "seq_type_count", "max_seq_tokens"}))
    return error;
  LaneSpec lane;
  lane.place = reader.place(table);
  llvm::Expected<std::string> name = reader.string(table, kWhat, "name");
  if (!name)
    return name.takeError();
  lane.name = *name;
  if (llvm::Error error = checkName(lane.name, "lane", lane.place))
    return error;
  llvm::Expected<std::string> graph = reader.string(table, kWhat, "graph", llvm::StringRef("@" + lane.name));
  if (!graph)
    return graph.takeError();
  if (!llvm::StringRef(*graph).starts_with("@") || graph->size() < 2)
    return reader.fail(*table.get("graph"), "lane.graph " + quoted(*graph) + ": a symbol such as \"@embed\" wanted");
  lane.graph = graph->substr(1);
  std::optional<llvm::StringRef> onlyStage;
  if (spec.stages.size() == 1)
    onlyStage = spec.stages.front().name;
  llvm::Expected<std::string> stage = reader.string(table, kWhat, "stage", onlyStage);
  if (!stage)
    return stage.takeError();
  lane.stage = *stage;
  std::vector<llvm::StringRef> stages;
  for (const StageSpec &known : spec.stages)
    stages.push_back(known.name);
  if (!llvm::is_contained(stages, llvm::StringRef(lane.stage)))
    return reader.fail(*table.get("stage"), "lane " + quoted(lane.name) + ": no stage " + quoted(lane.stage) +
                                                didYouMean(lane.stage, stages) + " (there: " + joined(stages) + ")");
  for (const LaneSpec &other : spec.lanes)
    if (other.name == lane.name)
      return reader.fail(table, "lane " + quoted(lane.name) + " is there twice, first at " + other.place);
  for (auto [key, member] :
       {std::pair("id_count", &LaneSpec::idCount), std::pair("type_count", &LaneSpec::typeCount),
        std::pair("seq_type_count", &LaneSpec::seqTypeCount), std::pair("max_seq_tokens", &LaneSpec::maxSeqTokens)}) {
    llvm::Expected<std::optional<int64_t>> value = reader.integer(table, kWhat, key);
    if (!value)
      return value.takeError();
    if (*value && **value < 0)
      return reader.fail(*table.get(key), llvm::StringRef(key) + " is " + llvm::Twine(**value) + ", at least 0 wanted");
    lane.*member = *value;
  }
  spec.lanes.push_back(std::move(lane));
  return llvm::Error::success();
}

llvm::Error readTarget(const Reader &reader, const toml::table &table, Spec &spec) {
  constexpr llvm::StringLiteral kWhat = "[[target]]";
  if (llvm::Error error = reader.checkKeys(table, kWhat, {"cpu", "weights", "math"}))
    return error;
  TargetSpec target;
  target.place = reader.place(table);
  llvm::Expected<std::string> cpu = reader.string(table, kWhat, "cpu");
  if (!cpu)
    return cpu.takeError();
  target.cpu = *cpu;
  for (auto [key, member] : {std::pair("weights", &TargetSpec::weights), std::pair("math", &TargetSpec::math)}) {
    llvm::Expected<std::string> value = reader.string(table, kWhat, key, llvm::StringRef(""));
    if (!value)
      return value.takeError();
    target.*member = *value;
  }
  llvm::Expected<Precision> precision = choosePrecision(target.weights, target.math);
  if (!precision) {
    bool known = !llvm::errorToBool(choosePrecision(target.weights, "").takeError());
    const toml::node *at = table.get(known && !target.math.empty() ? "math" : "weights");
    return reader.fail(*at, llvm::toString(precision.takeError()));
  }
  if (!spec.targets.empty() && *precision != spec.precision)
    return reader.fail(table, "target " + quoted(target.cpu) + " has weights " + quoted(precision->weights) +
                                  " and math " + quoted(precision->math) + ", the first one " +
                                  quoted(spec.precision.weights) + " and " + quoted(spec.precision.math) +
                                  "; a bundle has one precision");
  spec.precision = *precision;
  for (const TargetSpec &other : spec.targets)
    if (other.cpu == target.cpu)
      return reader.fail(table, "target " + quoted(target.cpu) + " is there twice, first at " + other.place);
  spec.targets.push_back(std::move(target));
  return llvm::Error::success();
}

llvm::Error readGate(const Reader &reader, const toml::table &root, llvm::StringRef dir, Spec &spec) {
  constexpr llvm::StringLiteral kWhat = "[gate]";
  const toml::node *node = root.get("gate");
  if (!node)
    return llvm::Error::success();
  const toml::table *table = node->as_table();
  if (!table)
    return reader.fail(*node, "gate: a table wanted");
  GateSpec &gate = spec.gate;
  gate.place = reader.place(*table);
  llvm::SmallVector<llvm::StringRef> known = {"batch", "lane"};
  for (const GateThreshold &threshold : gateThresholds())
    known.push_back(threshold.key);
  if (llvm::Error error = reader.checkKeys(*table, kWhat, known))
    return error;
  if (const toml::node *batches = table->get("batch")) {
    const toml::array *list = batches->as_array();
    for (size_t i = 0; i < (list ? list->size() : 1); ++i) {
      const toml::node &item = list ? *list->get(i) : *batches;
      const toml::value<std::string> *path = item.as_string();
      if (!path || path->get().empty() || path->get().find('\0') != std::string::npos)
        return reader.fail(item, kWhat + ".batch: a path, or an array of paths, wanted");
      gate.batches.push_back(besideSpec(dir, path->get()));
    }
    if (gate.batches.empty())
      return reader.fail(*batches, kWhat + ".batch: at least one path wanted");
  }
  llvm::Expected<std::string> lane = reader.string(*table, kWhat, "lane", llvm::StringRef(""));
  if (!lane)
    return lane.takeError();
  gate.lane = *lane;
  if (!gate.lane.empty() && llvm::none_of(spec.lanes, [&](const LaneSpec &known) { return known.name == gate.lane; })) {
    llvm::SmallVector<llvm::StringRef> names;
    for (const LaneSpec &known : spec.lanes)
      names.push_back(known.name);
    return reader.fail(*table->get("lane"), "no lane " + quoted(gate.lane) + didYouMean(gate.lane, names));
  }
  for (const GateThreshold &threshold : gateThresholds()) {
    llvm::Expected<std::optional<double>> value = reader.number(*table, kWhat, threshold.key, threshold.most);
    if (!value)
      return value.takeError();
    gate.*threshold.value = *value;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Precision> choosePrecision(llvm::StringRef weights, llvm::StringRef math) {
  Precision chosen{weights.str(), math.str()};
  if (math.empty())
    chosen.math = weights == "i8" ? "i8" : "f32";
  if (weights.empty())
    chosen.weights = chosen.math;
  if (!llvm::is_contained({"f32", "f16", "bf16", "i8"}, chosen.weights))
    return makeError("weights " + quoted(weights) + " is unknown, \"f32\", \"f16\", \"bf16\" or \"i8\" wanted");
  if (!llvm::is_contained({"f32", "bf16", "i8"}, chosen.math))
    return makeError("math " + quoted(math) + " is unknown, \"f32\", \"bf16\" or \"i8\" wanted");
  if (chosen.math == "f32" ? chosen.weights == "i8" : chosen.weights != chosen.math)
    return makeError("math " + quoted(chosen.math) + " does not take weights " + quoted(chosen.weights) + ", " +
                     (chosen.math == "f32" ? "\"f32\", \"f16\" or \"bf16\"" : quoted(chosen.math)) + " wanted");
  return chosen;
}

llvm::Expected<Spec> parseSpec(llvm::StringRef text, llvm::StringRef path) {
  if (llvm::Error error = checkTomlShape(text, path))
    return std::move(error);
  toml::parse_result result = toml::parse(std::string_view(text), std::string(path));
  Reader reader(path);
  if (!result) {
    std::string reason(result.error().description());
    return makeError(reader.place(result.error().source().begin) + ": " + reason);
  }
  const toml::table &root = result.table();
  Spec spec;
  spec.path = path.str();
  llvm::StringRef dir = path.contains('/') ? path.rsplit('/').first : llvm::StringRef();
  if (path.starts_with("/") && dir.empty())
    dir = "/";
  if (llvm::Error error = reader.checkKeys(root, "the spec", {"model", "lane", "stage", "target", "gate"}))
    return std::move(error);
  if (llvm::Error error = readModel(reader, root, dir, spec))
    return std::move(error);
  if (llvm::Error error = readStages(reader, root, spec))
    return std::move(error);
  if (llvm::Error error =
          eachTable(reader, root, "lane", [&](const toml::table &table) { return readLane(reader, table, spec); }))
    return std::move(error);
  if (spec.lanes.empty())
    return makeError(spec.path + ": no [[lane]]");
  for (const StageSpec &stage : spec.stages)
    if (llvm::none_of(spec.lanes, [&](const LaneSpec &lane) { return lane.stage == stage.name; }))
      return makeError(stage.place + ": stage " + quoted(stage.name) + " is used by no lane");
  if (llvm::Error error =
          eachTable(reader, root, "target", [&](const toml::table &table) { return readTarget(reader, table, spec); }))
    return std::move(error);
  if (llvm::Error error = readGate(reader, root, dir, spec))
    return std::move(error);
  return spec;
}

llvm::Expected<Spec> readSpec(llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostSpecBytes);
  if (!text)
    return text.takeError();
  return parseSpec(*text, path);
}

} // namespace batten
