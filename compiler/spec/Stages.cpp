// Which stage a lane uses, where a bucket table or the command line says it.
#include "compiler/spec/Spec.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

namespace batten {

namespace {

/// What the command line says, by lane.
llvm::Error readAssignments(const Spec &spec, const std::vector<std::string> &assignments,
                            std::vector<std::optional<std::string>> &stageOf) {
  std::vector<llvm::StringRef> lanes;
  for (const LaneSpec &lane : spec.lanes)
    lanes.push_back(lane.name);
  for (const std::string &text : assignments) {
    auto [lane, stage] = llvm::StringRef(text).split('=');
    if (lane.empty() || stage.empty())
      return makeError("--stage " + quoted(text) + ": LANE=STAGE wanted");
    size_t at = llvm::find(lanes, lane) - lanes.begin();
    if (at == lanes.size())
      return makeError("--stage " + quoted(text) + ": no lane " + quoted(lane) + didYouMean(lane, lanes) +
                       " (there: " + joined(lanes) + ")");
    if (stageOf[at])
      return makeError("--stage " + quoted(text) + ": lane " + quoted(lane) + " has a stage already, " +
                       quoted(*stageOf[at]));
    stageOf[at] = stage.str();
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error assignStages(Spec &spec, std::optional<std::vector<StageSpec>> table, llvm::StringRef where,
                         const std::vector<std::string> &assignments, std::vector<std::string> &notes) {
  if (!table && assignments.empty())
    return llvm::Error::success();
  std::vector<std::optional<std::string>> stageOf(spec.lanes.size());
  if (llvm::Error error = readAssignments(spec, assignments, stageOf))
    return error;
  std::vector<StageSpec> stages = table ? std::move(*table) : spec.stages;
  std::vector<llvm::StringRef> names;
  for (const StageSpec &stage : stages)
    names.push_back(stage.name);
  std::vector<bool> used(stages.size());
  for (auto [lane, assigned] : llvm::zip(spec.lanes, stageOf)) {
    auto find = [&](llvm::StringRef name) { return static_cast<size_t>(llvm::find(names, name) - names.begin()); };
    size_t at = find(assigned ? *assigned : lane.stage);
    if (assigned && at == names.size())
      return makeError("--stage " + quoted(lane.name + "=" + *assigned) + ": no stage " + quoted(*assigned) +
                       didYouMean(*assigned, names) + " (there: " + joined(names) + ")");
    if (at == names.size())
      at = find(lane.name);
    if (at == names.size() && names.size() == 1)
      at = 0;
    if (at == names.size())
      return makeError(where + ": no stage for lane " + quoted(lane.name) + ": neither " + quoted(lane.stage) +
                       " nor " + quoted(lane.name) + " is among " + joined(names) + "; --stage " + lane.name +
                       "=STAGE names one");
    lane.stage = names[at].str();
    used[at] = true;
  }
  std::vector<StageSpec> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i])
      kept.push_back(std::move(stages[i]));
    else
      notes.push_back("no lane uses stage " + quoted(stages[i].name) + ": left out");
  }
  spec.stages = std::move(kept);
  return llvm::Error::success();
}

} // namespace batten
