// Text for people and exact text for machines: sizes, digests, aligned tables, near names. Pure.
#ifndef BATTEN_TOOLS_COMMON_TEXT_H
#define BATTEN_TOOLS_COMMON_TEXT_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace batten::tools {

/// "512 B", "44.0 KB", "90.9 MB": powers of 1000.
std::string humanBytes(uint64_t bytes);
/// With that many digits after the point.
std::string fixed(double value, int digits);
/// Three digits, with an exponent where that is shorter: "0.0123", "1.2e-07".
std::string significant(double value);
/// "12.3 %".
std::string percent(double share);
/// Lower case hexadecimal.
std::string hex(std::span<const uint8_t> bytes);
/// Control characters and broken UTF-8's lead-ins can't reach a terminal: anything below 0x20 and 0x7f becomes \xNN.
std::string printable(std::string_view text);
/// Shortest text that reads back as the same float; "null" for NaN and infinities, which JSON lacks.
void appendFloat(std::string &text, float value);

/// Names that name may have meant, nearest first: at most two edits away, or the one is the other's beginning.
std::vector<std::string> nearNames(std::string_view name, std::span<const std::string> known);
/// "; did you mean a or b?", or "" where nothing is near.
std::string didYouMean(std::string_view name, std::span<const std::string> known);

/// Rows of cells, printed in columns two spaces apart. The first row is the heading.
class Table {
public:
  /// alignment has a letter a column: 'l' or 'r'.
  explicit Table(std::string alignment) : alignment(std::move(alignment)) {}
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  std::string str(std::string_view indent = "  ") const;

private:
  std::string alignment;
  std::vector<std::vector<std::string>> rows;
};

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_TEXT_H
