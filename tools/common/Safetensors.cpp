// safetensors: 8 bytes of header length (little endian), a JSON object {name: {dtype, shape, data_offsets}}, the data.
#include "tools/common/Safetensors.h"

#include "tools/common/Json.h"
#include "tools/common/Text.h"
#include "tools/common/Output.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace batten::tools {

using nlohmann::json;

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000; // the format's own limit

/// Bytes of an element, 0 for an unknown type.
uint64_t elementBytes(const std::string &dtype) {
  for (auto [name, bytes] : {std::pair<const char *, uint64_t>{"BOOL", 1},
                             {"U8", 1},
                             {"I8", 1},
                             {"F8_E4M3", 1},
                             {"F8_E5M2", 1},
                             {"I16", 2},
                             {"U16", 2},
                             {"F16", 2},
                             {"BF16", 2},
                             {"I32", 4},
                             {"U32", 4},
                             {"F32", 4},
                             {"I64", 8},
                             {"U64", 8},
                             {"F64", 8}})
    if (dtype == name)
      return bytes;
  return 0;
}

std::vector<uint64_t> readCounts(const json &value, const std::string &where) {
  if (!value.is_array())
    fail(where + " is " + typeWord(value) + ", an array of whole numbers is wanted");
  std::vector<uint64_t> counts;
  for (const json &item : value) {
    if (!item.is_number_unsigned())
      fail(where + " holds " + item.dump(-1, ' ', true, json::error_handler_t::replace) +
           ", whole numbers from 0 are wanted");
    counts.push_back(item.get<uint64_t>());
  }
  return counts;
}

StoredTensor readEntry(const std::string &path, const std::string &name, const json &entry, uint64_t dataBegin,
                       uint64_t dataBytes) {
  std::string where = path + ": tensor " + printable(name);
  if (!entry.is_object())
    fail(where + " is " + typeWord(entry) + ", an object is wanted");
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      fail(where + ": " + key + " is missing");
  if (!entry["dtype"].is_string())
    fail(where + ": dtype is " + typeWord(entry["dtype"]) + ", a string is wanted");
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = entry["dtype"].get<std::string>();
  tensor.shape = readCounts(entry["shape"], where + ": shape");
  uint64_t wanted = elementBytes(tensor.dtype);
  if (wanted == 0)
    fail(where + ": unknown dtype " + printable(tensor.dtype));
  bool empty = std::count(tensor.shape.begin(), tensor.shape.end(), 0u) != 0;
  for (uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(wanted, empty ? 0 : extent, &wanted))
      fail(where + ": the shape's product is past 64 bits");
  std::vector<uint64_t> offsets = readCounts(entry["data_offsets"], where + ": data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > dataBytes)
    fail(where + ": data_offsets don't lie in order within the " + std::to_string(dataBytes) + " bytes of data");
  if (offsets[1] - offsets[0] != wanted)
    fail(where + ": " + std::to_string(wanted) + " bytes wanted by dtype and shape, " +
         std::to_string(offsets[1] - offsets[0]) + " given");
  tensor.begin = dataBegin + offsets[0];
  tensor.end = dataBegin + offsets[1];
  return tensor;
}

} // namespace

SafetensorsReader::SafetensorsReader(const std::string &path) : file(path) {
  if (file.bytes() < 8)
    fail(path + ": " + std::to_string(file.bytes()) + " bytes are too few for a safetensors file");
  uint8_t length[8];
  file.read(0, length, 8);
  uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | length[i];
  if (headerBytes > file.bytes() - 8 || headerBytes > kMaxHeaderBytes)
    fail(path + ": header of " + std::to_string(headerBytes) + " bytes stated in a file of " +
         std::to_string(file.bytes()));
  std::string text(size_t(headerBytes), '\0');
  file.read(8, text.data(), text.size());
  json header = parseJson(text, path + ": header");
  if (!header.is_object())
    fail(path + ": header is " + typeWord(header) + ", an object is wanted");

  uint64_t dataBegin = 8 + headerBytes;
  for (const auto &[name, entry] : header.items())
    if (name != "__metadata__")
      entries.push_back(readEntry(path, name, entry, dataBegin, file.bytes() - dataBegin));
  std::sort(entries.begin(), entries.end(), [](const StoredTensor &a, const StoredTensor &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t end = dataBegin;
  std::string before = "the header";
  for (const StoredTensor &tensor : entries) {
    if (tensor.begin != end)
      fail(path + ": " + (tensor.begin < end ? "overlap" : "gap") + " between " + before + " and tensor " +
           printable(tensor.name));
    end = tensor.end;
    before = "tensor " + printable(tensor.name);
  }
  if (end != file.bytes())
    fail(path + ": " + std::to_string(file.bytes() - end) + " bytes after " + before);
}

const StoredTensor *SafetensorsReader::find(const std::string &name) const {
  for (const StoredTensor &tensor : entries)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

std::vector<int32_t> SafetensorsReader::readInt32(const StoredTensor &tensor) const {
  std::string where = path() + ": tensor " + printable(tensor.name);
  if (tensor.dtype != "I32" && tensor.dtype != "I64")
    fail(where + " is " + tensor.dtype + ", I32 or I64 is wanted");
  if (tensor.shape.size() != 1)
    fail(where + " has rank " + std::to_string(tensor.shape.size()) + ", rank 1 is wanted");
  std::vector<int32_t> values(size_t(tensor.shape[0]));
  if (tensor.dtype == "I32") {
    file.read(tensor.begin, values.data(), values.size() * 4);
    return values;
  }
  std::vector<int64_t> wide(values.size());
  file.read(tensor.begin, wide.data(), wide.size() * 8);
  for (size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] < std::numeric_limits<int32_t>::min() || wide[i] > std::numeric_limits<int32_t>::max())
      fail(where + ": element " + std::to_string(i) + " is " + std::to_string(wide[i]) + ", past 32 bits");
    values[i] = int32_t(wide[i]);
  }
  return values;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path, const std::vector<TensorShape> &tensors,
                                     const TensorMetadata &metadata)
    : file(path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto &[key, value] : metadata)
    header["__metadata__"][key] = value;
  uint64_t offset = 0;
  for (const TensorShape &tensor : tensors) {
    uint64_t bytes = tensor.rows * tensor.width * 4;
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", {tensor.rows, tensor.width}}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i)
    length[size_t(i)] = char(text.size() >> (8 * i));
  file.write(length);
  file.write(text);
}

void SafetensorsWriter::write(const float *values, uint64_t count) {
  file.write({reinterpret_cast<const char *>(values), size_t(count) * sizeof(float)});
}

void SafetensorsWriter::commit() { file.commit(); }

void writeSafetensors(const std::string &path, const std::vector<OutputTensor> &tensors) {
  std::vector<TensorShape> shapes;
  for (const OutputTensor &tensor : tensors)
    shapes.push_back({tensor.name, tensor.rows, tensor.width});
  SafetensorsWriter writer(path, shapes);
  for (const OutputTensor &tensor : tensors)
    writer.write(tensor.data, tensor.rows * tensor.width);
  writer.commit();
}

} // namespace batten::tools
