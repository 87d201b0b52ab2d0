// Formatting helpers. No locale: numbers look the same everywhere.
#include "tools/common/Text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace batten::tools {

std::string fixed(double value, int digits) {
  std::array<char, 512> text;
  auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return std::string(text.data(), end);
}

std::string significant(double value) {
  std::array<char, 64> text;
  auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3).ptr;
  return std::string(text.data(), end);
}

std::string humanBytes(uint64_t bytes) {
  if (bytes < 1000)
    return std::to_string(bytes) + " B";
  double value = double(bytes);
  for (const char *unit : {" KB", " MB", " GB"}) {
    value /= 1000;
    if (value < 999.95)
      return fixed(value, 1) + unit;
  }
  return fixed(value / 1000, 1) + " TB";
}

std::string percent(double share) { return fixed(share * 100, 1) + " %"; }

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string clean;
  for (unsigned char c : text) {
    if (c >= 0x20 && c != 0x7f) {
      clean += char(c);
      continue;
    }
    uint8_t byte = c;
    clean += "\\x" + hex({&byte, 1});
  }
  return clean;
}

void appendFloat(std::string &text, float value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  std::array<char, 64> digits;
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

namespace {

/// Levenshtein distance.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

} // namespace

std::vector<std::string> nearNames(std::string_view name, std::span<const std::string> known) {
  std::vector<std::pair<size_t, std::string>> found;
  std::string_view bare = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  for (const std::string &candidate : known) {
    std::string_view other = std::string_view(candidate);
    other.remove_prefix(std::min(other.size(), other.find_first_not_of('-')));
    size_t distance = editDistance(bare, other);
    bool begins = bare.size() >= 2 && other.size() >= 2 && (other.starts_with(bare) || bare.starts_with(other));
    if (begins || (distance <= 2 && distance < std::max(bare.size(), other.size())))
      found.emplace_back(distance, candidate);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto &[distance, candidate] : found)
    names.push_back(candidate);
  if (names.size() > 3)
    names.resize(3);
  return names;
}

std::string didYouMean(std::string_view name, std::span<const std::string> known) {
  std::string text;
  for (const std::string &candidate : nearNames(name, known))
    text += (text.empty() ? "; did you mean " : " or ") + candidate;
  return text.empty() ? text : text + "?";
}

std::string Table::str(std::string_view indent) const {
  std::vector<size_t> widths(alignment.size(), 0);
  // Bytes are counted, less UTF-8's continuation bytes, so that a micro sign keeps the columns straight.
  auto width = [](const std::string &cell) {
    return size_t(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  };
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i]));
  std::string text;
  for (const auto &row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - width(row[i]), ' ');
      line += (i ? "  " : "") + (alignment[i] == 'r' ? pad + row[i] : row[i] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

} // namespace batten::tools
