// Makes safetensors files for tests, sound ones and broken ones. Plain C++, independent of the reader under test.
#ifndef BATTEN_TESTS_SAFETENSORSWRITER_H
#define BATTEN_TESTS_SAFETENSORSWRITER_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace batten::test {

/// A file of the given header and data; `length` overrides the header length that it states.
inline std::string rawSafetensors(std::string_view header, std::string_view data, const uint64_t *length = nullptr) {
  uint64_t stated = length ? *length : header.size();
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(stated >> (8 * i) & 0xFF);
  return out.append(header).append(data);
}

/// Collects tensors; data follows in the order of adding, the header in that order or in reverse.
class SafetensorsWriter {
public:
  SafetensorsWriter &add(const std::string &name, const std::string &dtype, const std::vector<int64_t> &shape,
                         std::string_view bytes) {
    std::string dims;
    for (int64_t dim : shape)
      dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    entries.push_back("\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + dims + "],\"data_offsets\":[" +
                      std::to_string(data.size()) + "," + std::to_string(data.size() + bytes.size()) + "]}");
    data.append(bytes);
    return *this;
  }
  SafetensorsWriter &addF32(const std::string &name, const std::vector<int64_t> &shape,
                            const std::vector<float> &values) {
    std::string bytes(values.size() * 4, '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return add(name, "F32", shape, bytes);
  }
  /// One more entry of the header as it is.
  SafetensorsWriter &raw(const std::string &entry) {
    entries.push_back(entry);
    return *this;
  }
  std::string header(bool reversed = false) const {
    std::string out;
    for (size_t i = 0; i < entries.size(); ++i)
      out += (i ? "," : "") + entries[reversed ? entries.size() - 1 - i : i];
    return "{" + out + "}";
  }
  /// The file, its header padded with `blanks` spaces.
  std::string bytes(size_t blanks = 0, bool reversed = false) const {
    return rawSafetensors(header(reversed) + std::string(blanks, ' '), data);
  }

private:
  std::vector<std::string> entries;
  std::string data;
};

} // namespace batten::test

#endif // BATTEN_TESTS_SAFETENSORSWRITER_H
