// Shape checks before the TOML parser, shared checks, the table form and the spec writer; see the headers.
#include "compiler/spec/SpecText.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>

namespace batten {

static std::string placeText(llvm::StringRef path, size_t line, size_t column) {
  return path.str() + ":" + std::to_string(line) + ":" + std::to_string(column);
}

/// Past a TOML string that opens at i (any of the four kinds); a one-line string ends at its line's end at the latest.
static size_t skipTomlString(llvm::StringRef text, size_t i) {
  char quote = text[i];
  bool multi = text.substr(i, 3) == (quote == '"' ? "\"\"\"" : "'''");
  for (i += multi ? 3 : 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (multi && text.substr(i, 3) == (quote == '"' ? "\"\"\"" : "'''"))
      return i + 3;
    else if (!multi && (text[i] == quote || text[i] == '\n'))
      return i + 1;
  }
  return text.size();
}

llvm::Error checkTomlShape(llvm::StringRef text, llvm::StringRef path) {
  if (text.size() > kMostSpecBytes)
    return makeError(path + ": " + llvm::Twine(text.size()) + " bytes, at most " + llvm::Twine(kMostSpecBytes) +
                     " are read");
  size_t fault = 0;
  if (!llvm::json::isUTF8(text, &fault))
    return makeError(path + ": not UTF-8 at byte " + llvm::Twine(fault));
  size_t line = 1, lineStart = 0, depth = 0, dots = 0;
  auto fail = [&](size_t at, llvm::StringRef what) {
    return makeError(placeText(path, line, at - lineStart + 1) + ": " + what + " beyond " +
                     llvm::Twine(kMostSpecDepth) + " levels");
  };
  for (size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size(); ++i) {
    // TOML has ASCII only outside of strings and comments; toml++'s own check of this runs into code that it calls unreachable.
    if (static_cast<unsigned char>(text[i]) >= 0x80)
      return makeError(placeText(path, line, i - lineStart + 1) +
                       ": a character outside of ASCII, in no string or comment");
    switch (text[i]) {
    case '#':
      i = std::min(text.find('\n', i), text.size()) - 1;
      break;
    case '\n':
      ++line;
      lineStart = i + 1;
      dots = 0;
      break;
    case '"':
    case '\'': {
      size_t end = skipTomlString(text, i);
      llvm::StringRef skipped = text.slice(i, end);
      if (skipped.starts_with("\"\"\"") && skipped.contains('\\') &&
          llvm::any_of(skipped, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
        return makeError(
            placeText(path, line, i - lineStart + 1) +
            ": a multi-line string with a backslash and a character outside of ASCII"); // for the same reason
      if (size_t lines = skipped.count('\n')) {
        line += lines;
        lineStart = i + skipped.rfind('\n') + 1;
        dots = 0;
      }
      i = end - 1;
      break;
    }
    case '[':
    case '{':
      if (++depth > kMostSpecDepth)
        return fail(i, "nesting");
      dots = 0;
      break;
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    case '.':
      if (++dots > kMostSpecDepth)
        return fail(i, "a dotted key");
      break;
    case '=':
    case ',':
      dots = 0;
      break;
    default:
      break;
    }
  }
  return llvm::Error::success();
}

llvm::Error checkName(llvm::StringRef name, llvm::StringRef kind, const SpecPlace &place) {
  bool fine = !name.empty() && name.size() <= 64 && (llvm::isAlnum(name[0]) || name[0] == '_') &&
              llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; });
  if (fine)
    return llvm::Error::success();
  return makeError(place + ": " + kind + " " + quoted(name) +
                   ": 1 to 64 characters of A-Z a-z 0-9 _ . - wanted, the first a letter, a digit or _");
}

llvm::Expected<Bucket> makeBucket(int64_t tokens, int64_t seqs, int64_t markers, const SpecPlace &place) {
  struct Count {
    llvm::StringLiteral key;
    int64_t value, least;
  };
  for (const Count &count : {Count{"tokens", tokens, 1}, Count{"seqs", seqs, 1}, Count{"markers", markers, 0}})
    if (count.value < count.least || count.value > kMostBucketCount)
      return makeError(place + ": " + count.key + " is " + llvm::Twine(count.value) + ", a count within [" +
                       llvm::Twine(count.least) + ", " + llvm::Twine(kMostBucketCount) + "] wanted");
  return Bucket{static_cast<uint32_t>(tokens), static_cast<uint32_t>(seqs), static_cast<uint32_t>(markers)};
}

llvm::Error checkLaneName(llvm::StringRef name, const SpecPlace &place) { return checkName(name, "lane", place); }

llvm::Error checkStage(StageSpec &stage) {
  if (llvm::Error error = checkName(stage.name, "stage", stage.place))
    return error;
  if (stage.buckets.size() > kMostSpecEntries)
    return makeError(stage.place + ": stage " + quoted(stage.name) + " has " + llvm::Twine(stage.buckets.size()) +
                     " buckets, at most " + llvm::Twine(kMostSpecEntries));
  for (const Bucket &bucket : stage.buckets)
    if (llvm::Expected<Bucket> made = makeBucket(bucket.tokens, bucket.seqs, bucket.markers, stage.place); !made)
      return made.takeError();
  return finishStage(stage, std::vector<SpecPlace>(stage.buckets.size(), stage.place));
}

llvm::Error finishStage(StageSpec &stage, const std::vector<SpecPlace> &places) {
  if (stage.buckets.empty())
    return makeError(stage.place + ": stage " + quoted(stage.name) + " has no buckets");
  std::vector<size_t> order(stage.buckets.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(stage.buckets[a], a) < std::pair(stage.buckets[b], b); });
  std::vector<Bucket> sorted;
  for (size_t n = 0; n < order.size(); ++n) {
    const Bucket &bucket = stage.buckets[order[n]];
    if (n && sorted.back() == bucket)
      return makeError(places[order[n]] + ": bucket " + llvm::Twine(bucket.tokens) + " x " + llvm::Twine(bucket.seqs) +
                       " x " + llvm::Twine(bucket.markers) + " of stage " + quoted(stage.name) +
                       " is there twice, first at " + places[order[n - 1]]);
    sorted.push_back(bucket);
  }
  stage.buckets = std::move(sorted);
  return llvm::Error::success();
}

llvm::Expected<std::vector<StageSpec>> parseBucketTable(llvm::StringRef text, llvm::StringRef path) {
  if (text.size() > kMostSpecBytes)
    return makeError(path + ": " + llvm::Twine(text.size()) + " bytes, at most " + llvm::Twine(kMostSpecBytes) +
                     " are read");
  std::vector<StageSpec> stages;
  std::vector<std::vector<SpecPlace>> places;
  size_t lineNumber = 0;
  bool first = true;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    ++lineNumber;
    llvm::StringRef body = line.split('#').first;
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::SplitString(body, words, " \t\r");
    if (words.empty())
      continue;
    auto place = [&](llvm::StringRef word) {
      return placeText(path, lineNumber, static_cast<size_t>(word.data() - line.data()) + 1);
    };
    bool header = first && llvm::ArrayRef(words).equals({"stage", "tokens", "seqs", "markers"});
    first = false;
    if (header)
      continue;
    if (words.size() != 4)
      return makeError(place(words[0]) + ": " + llvm::Twine(words.size()) +
                       " columns, four wanted: stage tokens seqs markers");
    if (llvm::Error error = checkName(words[0], "stage", place(words[0])))
      return std::move(error);
    int64_t counts[3];
    for (int i = 0; i < 3; ++i)
      if (words[i + 1].getAsInteger(10, counts[i]))
        return makeError(place(words[i + 1]) + ": " + quoted(words[i + 1]) + " found, a count wanted");
    llvm::Expected<Bucket> bucket = makeBucket(counts[0], counts[1], counts[2], place(words[0]));
    if (!bucket)
      return bucket.takeError();
    auto it = llvm::find_if(stages, [&](const StageSpec &stage) { return stage.name == words[0]; });
    if (it == stages.end()) {
      stages.push_back({words[0].str(), {}, place(words[0])});
      places.emplace_back();
      it = stages.end() - 1;
    }
    it->buckets.push_back(*bucket);
    places[static_cast<size_t>(it - stages.begin())].push_back(place(words[0]));
    if (stages.size() > kMostSpecEntries || it->buckets.size() > kMostSpecEntries)
      return makeError(place(words[0]) + ": more than " + llvm::Twine(kMostSpecEntries) + " stages or buckets of one");
  }
  if (stages.empty())
    return makeError(path + ": no buckets");
  for (size_t i = 0; i < stages.size(); ++i)
    if (llvm::Error error = finishStage(stages[i], places[i]))
      return std::move(error);
  return stages;
}

llvm::Expected<std::vector<StageSpec>> readBucketTable(llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostSpecBytes);
  if (!text)
    return text.takeError();
  return parseBucketTable(*text, path);
}

StageSpec defaultStage(int64_t maxSeqTokens) {
  StageSpec stage;
  stage.name = "text";
  stage.buckets = {{32, 8, 0}, {128, 32, 0}, {512, 64, 0}, {2048, 256, 0}};
  if (maxSeqTokens > 2048) {
    auto tokens = static_cast<uint32_t>(std::min<int64_t>((maxSeqTokens + 63) / 64 * 64, kMostBucketCount));
    stage.buckets.push_back({tokens, std::max<uint32_t>(256, tokens / 8), 0});
  }
  return stage;
}

std::vector<StageSpec> markerStages(const StageSpec &stage) {
  StageSpec state = stage, question = stage;
  state.name = "state";
  question.name = "question";
  for (Bucket &bucket : question.buckets)
    bucket.markers = bucket.tokens;
  return {state, question};
}

llvm::Error checkLimits(const LaneSpec &lane, int64_t idCount, int64_t typeCount, int64_t seqTypeCount,
                        int64_t maxSeqTokens) {
  struct Limit {
    llvm::StringLiteral key, meaning;
    std::optional<int64_t> asserted;
    int64_t actual;
  };
  for (const Limit &limit :
       {Limit{"id_count", "rows of the embedding table", lane.idCount, idCount},
        Limit{"type_count", "rows of the token type table", lane.typeCount, typeCount},
        Limit{"seq_type_count", "rows of the sequence type table", lane.seqTypeCount, seqTypeCount},
        Limit{"max_seq_tokens", "tokens of the longest sequence", lane.maxSeqTokens, maxSeqTokens}})
    if (limit.asserted && *limit.asserted != limit.actual)
      return makeError(lane.place + ": lane " + quoted(lane.name) + " asserts " + limit.key + " = " +
                       llvm::Twine(*limit.asserted) + ", the model has " + llvm::Twine(limit.actual) + " " +
                       limit.meaning);
  return llvm::Error::success();
}

static std::string tomlString(llvm::StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += "\\u00" + llvm::utohexstr(static_cast<unsigned char>(c), /*LowerCase=*/true, 2);
    else
      out += c;
  }
  return out + "\"";
}

std::string printSpec(const Spec &spec) {
  std::string out =
      "[model]\ngraph = " + tomlString(spec.graph) + "\ncheckpoint = " + tomlString(spec.checkpoint) + "\n";
  for (const LaneSpec &lane : spec.lanes)
    out += "\n[[lane]]\nname = " + tomlString(lane.name) + "\ngraph = " + tomlString("@" + lane.graph) +
           "\nstage = " + tomlString(lane.stage) + "\n";
  for (const StageSpec &stage : spec.stages) {
    bool bare = !llvm::StringRef(stage.name).contains('.'); // names have no other character that a bare key can't have
    out += "\n[stage." + (bare ? stage.name : tomlString(stage.name)) + "]\nbuckets = [\n";
    for (const Bucket &bucket : stage.buckets) {
      out += "  { tokens = " + std::to_string(bucket.tokens) + ", seqs = " + std::to_string(bucket.seqs);
      out += (bucket.markers ? ", markers = " + std::to_string(bucket.markers) : "") + " },\n";
    }
    out += "]\n";
  }
  for (const TargetSpec &target : spec.targets)
    for (auto [key, value] : {std::pair("\n[[target]]\ncpu", &target.cpu), std::pair("weights", &target.weights),
                              std::pair("math", &target.math)})
      if (!value->empty())
        out += std::string(key) + " = " + tomlString(*value) + "\n";
  if (!spec.gate.isGiven())
    return out;
  out += "\n[gate]\n";
  std::string batches;
  for (const std::string &batch : spec.gate.batches)
    batches += (batches.empty() ? "" : ", ") + tomlString(batch);
  if (!batches.empty())
    out += "batch = [" + batches + "]\n";
  if (!spec.gate.lane.empty())
    out += "lane = " + tomlString(spec.gate.lane) + "\n";
  for (const GateThreshold &threshold : gateThresholds())
    if (const std::optional<double> &value = spec.gate.*threshold.value) {
      char digits[32]; // the shortest text that reads back as the same number takes up to 24
      out += (threshold.key + " = ").str();
      out.append(digits, std::to_chars(digits, std::end(digits), *value).ptr).append("\n");
    }
  return out;
}

llvm::ArrayRef<GateThreshold> gateThresholds() {
  constexpr double kAny = std::numeric_limits<double>::max();
  static constexpr GateThreshold kThresholds[] = {
      {"max_abs", &GateSpec::maxAbs, kAny},    {"max_mean", &GateSpec::maxMean, kAny},
      {"max_rel", &GateSpec::maxRel, kAny},    {"min_cosine", &GateSpec::minCosine, 1},
      {"min_argmax", &GateSpec::minArgmax, 1}, {"margin", &GateSpec::margin, kAny},
  };
  return kThresholds;
}

GateSpec GateSpec::overriddenBy(const GateSpec &stronger) const {
  GateSpec merged = *this;
  if (!stronger.batches.empty())
    merged.batches = stronger.batches;
  if (!stronger.lane.empty())
    merged.lane = stronger.lane;
  for (const GateThreshold &threshold : gateThresholds())
    if (stronger.*threshold.value)
      merged.*threshold.value = stronger.*threshold.value;
  return merged;
}

} // namespace batten
