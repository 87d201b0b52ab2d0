// Reads lines with read(2) and poll(2): stdio could not tell whether the writer is pausing.
#include "tools/batten/Lines.h"

#include "tools/common/Json.h"
#include "tools/common/Text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <poll.h>
#include <unistd.h>

namespace batten::tools {

using nlohmann::json;

namespace {

constexpr size_t kMaxLineBytes = 16 << 20;

/// Lines of standard input, without their ends; the last may lack one.
class LineReader {
public:
  /// False at the end of the input.
  bool next(std::string &line) {
    while (true) {
      size_t end = buffer.find('\n', scanned);
      if (end != std::string::npos || (ended && begin < buffer.size())) {
        end = std::min(end, buffer.size());
        line.assign(buffer, begin, end - begin);
        begin = scanned = std::min(end + 1, buffer.size());
        if (!line.empty() && line.back() == '\r')
          line.pop_back();
        ++number;
        return true;
      }
      if (ended)
        return false;
      scanned = buffer.size();
      if (scanned - begin > kMaxLineBytes)
        fail("line " + std::to_string(number + 1) + ": longer than " + std::to_string(kMaxLineBytes) + " bytes");
      fill();
    }
  }

  /// No whole line is at hand and the writer has sent no more.
  bool paused() const {
    if (ended || buffer.find('\n', scanned) != std::string::npos)
      return false;
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) == 0;
  }

  uint64_t lineNumber() const { return number; }

private:
  void fill() {
    buffer.erase(0, begin);
    scanned -= begin;
    begin = 0;
    size_t size = buffer.size();
    buffer.resize(size + (64 << 10));
    ssize_t count;
    do
      count = ::read(STDIN_FILENO, buffer.data() + size, buffer.size() - size);
    while (count < 0 && errno == EINTR);
    buffer.resize(size + size_t(std::max<ssize_t>(count, 0)));
    if (count < 0)
      fail(std::string("cannot read standard input: ") + std::strerror(errno));
    ended = count == 0;
  }

  std::string buffer;
  size_t begin = 0, scanned = 0; ///< the line's start; where the search for its end goes on
  uint64_t number = 0;
  bool ended = false;
};

/// A whole number, also where it is written as 1.0, as some writers do.
int32_t readNumber(const json &value, const std::string &where) {
  if (!value.is_number())
    fail(where + " is " + typeWord(value) + ", a whole number is wanted");
  // Doubles hold every number of 32 bits exactly; what is past them need not be exact.
  double number = value.get<double>();
  if (std::abs(number) < 0x1p63 && number != std::trunc(number))
    fail(where + " is " + typeWord(value) + ", a whole number is wanted");
  if (!(number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max()))
    fail(where + " is " + value.dump() + ", past 32 bits");
  return static_cast<int32_t>(number);
}

std::vector<int32_t> readNumbers(const json &value, const std::string &where) {
  if (!value.is_array())
    fail(where + " is " + typeWord(value) + ", an array is wanted");
  std::vector<int32_t> numbers;
  numbers.reserve(value.size());
  for (const json &item : value)
    numbers.push_back(readNumber(item, where + "[" + std::to_string(numbers.size()) + "]"));
  return numbers;
}

Batch::Sequence parseSequence(const std::string &line, const std::string &where) {
  if (line.find_first_not_of(" \t") == std::string::npos)
    fail(where + ": empty; a sequence without tokens is {\"ids\": []}");
  json value = parseJson(line, where);
  if (!value.is_object())
    fail(where + ": " + typeWord(value) + ", an object is wanted");
  const std::vector<std::string> known = {"ids", "types", "markers", "type"};
  for (const auto &[key, item] : value.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(where + ": unknown key \"" + printable(key) + "\"" + didYouMean(key, known));
  if (!value.contains("ids"))
    fail(where + ": ids is missing");
  Batch::Sequence sequence;
  sequence.ids = readNumbers(value["ids"], where + ": ids");
  sequence.hasTypes = value.contains("types");
  if (sequence.hasTypes)
    sequence.types = readNumbers(value["types"], where + ": types");
  if (sequence.hasTypes && sequence.types.size() != sequence.ids.size())
    fail(where + ": " + std::to_string(sequence.types.size()) + " types for " + std::to_string(sequence.ids.size()) +
         " ids");
  sequence.hasMarkers = value.contains("markers");
  if (sequence.hasMarkers)
    sequence.markers = readNumbers(value["markers"], where + ": markers");
  sequence.hasType = value.contains("type");
  if (sequence.hasType)
    sequence.type = readNumber(value["type"], where + ": type");
  return sequence;
}

bool fitsSomeBucket(const Lane &lane, uint64_t tokens, uint64_t seqs, uint64_t markers) {
  return std::any_of(lane.buckets.begin(), lane.buckets.end(), [&](const batten_bucket_info_t &bucket) {
    return tokens <= bucket.tokens && seqs <= bucket.seqs && markers <= bucket.markers;
  });
}

} // namespace

void runLines(const Engine &engine, const Lane &lane) {
  LineReader reader;
  Batch group, single;
  std::string line, text;
  auto answer = [&] {
    if (group.seqCount() == 0)
      return;
    uint64_t last = reader.lineNumber();
    Outputs outputs = runLane(engine, lane, group, "a batch that ends before or at line " + std::to_string(last));
    text.clear();
    appendLines(text, lane, group, outputs);
    group.clear();
    out().write(text);
    out().flush();
  };
  try {
    while (reader.next(line)) {
      std::string where = "line " + std::to_string(reader.lineNumber());
      Batch::Sequence sequence = parseSequence(line, where);
      // The runtime checks the sequence alone, so that the error names this line whatever the batch becomes.
      single.clear();
      single.append(sequence);
      batten_batch_t view = single.view();
      batten_error_t error = {};
      check(batten_check_batch(engine.executor.get(), lane.index, &view, nullptr, &error), error, where);
      if (!fitsSomeBucket(lane, uint64_t(group.tokenCount()) + single.tokenCount(), uint64_t(group.seqCount()) + 1,
                          uint64_t(group.markerCount()) + single.markerCount()))
        answer();
      group.append(sequence);
      if (reader.paused())
        answer();
    }
  } catch (const Failure &) {
    answer();
    throw;
  }
  answer();
}

} // namespace batten::tools
