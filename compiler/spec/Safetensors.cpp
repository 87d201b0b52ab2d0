// Header parsing. Offsets of StoredTensor are relative to the data until checkCoverage has seen them all.
#include "compiler/spec/Safetensors.h"
#include "compiler/spec/Json.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <limits>

namespace batten {

/// Bits of an element, or 0 for a dtype that the format does not have.
static unsigned dtypeBits(llvm::StringRef dtype) {
  return llvm::StringSwitch<unsigned>(dtype)
      .Case("F4", 4)
      .Cases({"F6_E2M3", "F6_E3M2"}, 6)
      .Cases({"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ"}, 8)
      .Cases({"I16", "U16", "F16", "BF16"}, 16)
      .Cases({"I32", "U32", "F32"}, 32)
      .Cases({"I64", "U64", "F64", "C64"}, 64)
      .Default(0);
}

static llvm::Expected<StoredTensor> parseEntry(llvm::StringRef name, const llvm::json::Value &value,
                                               llvm::StringRef path) {
  StoredTensor tensor;
  tensor.name = name.str();
  auto fail = [&](const llvm::Twine &text) { return makeError(path + ": tensor " + quoted(name) + ": " + text); };
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return fail(describeJson(value) + " found, an object wanted");
  std::optional<llvm::StringRef> dtype = object->getString("dtype");
  if (!dtype)
    return fail("dtype is missing or not a string");
  tensor.dtype = dtype->str();
  unsigned bits = dtypeBits(*dtype);
  if (bits == 0)
    return fail("unknown dtype " + quoted(*dtype));

  const llvm::json::Array *shape = object->getArray("shape");
  if (!shape)
    return fail("shape is missing or not an array");
  int64_t elements = 1;
  bool overflow = false;
  for (const llvm::json::Value &dimension : *shape) {
    std::optional<int64_t> size = dimension.getAsInteger();
    if (!size || *size < 0)
      return fail("shape has " + describeJson(dimension) + ", an integer of at least 0 wanted");
    tensor.shape.push_back(*size);
    overflow |= __builtin_mul_overflow(elements, *size, &elements);
  }
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) {
    elements = 0;
    overflow = false;
  }
  int64_t totalBits = 0;
  overflow |= __builtin_mul_overflow(elements, static_cast<int64_t>(bits), &totalBits);
  if (overflow)
    return fail("shape " + dimsText(tensor.shape) + " of " + *dtype + " overflows 63 bits");
  if (totalBits % 8)
    return fail("shape " + dimsText(tensor.shape) + " of " + *dtype + " is no whole number of bytes");
  tensor.elements = elements;

  const llvm::json::Array *offsets = object->getArray("data_offsets");
  if (!offsets || offsets->size() != 2)
    return fail("data_offsets is not an array of two integers");
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin)
    return fail("data_offsets [" + describeJson((*offsets)[0]) + ", " + describeJson((*offsets)[1]) +
                "], 0 <= begin <= end wanted");
  tensor.offset = static_cast<uint64_t>(*begin);
  tensor.bytes = static_cast<uint64_t>(*end - *begin);
  if (tensor.bytes != static_cast<uint64_t>(totalBits) / 8)
    return fail("shape " + dimsText(tensor.shape) + " of " + *dtype + " is " + llvm::Twine(totalBits / 8) +
                " bytes, data_offsets [" + llvm::Twine(*begin) + ", " + llvm::Twine(*end) + "] give " +
                llvm::Twine(tensor.bytes));
  return tensor;
}

static std::string rangeText(const StoredTensor &tensor) {
  return quoted(tensor.name) + " [" + std::to_string(tensor.offset) + ", " +
         std::to_string(tensor.offset + tensor.bytes) + ")";
}

llvm::Error SafetensorsFile::checkCoverage(uint64_t dataBytes, uint64_t headerBytes) const {
  std::vector<const StoredTensor *> order;
  for (const StoredTensor &tensor : entries)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor *a, const StoredTensor *b) {
    return std::tuple(a->offset, a->bytes, llvm::StringRef(a->name)) <
           std::tuple(b->offset, b->bytes, llvm::StringRef(b->name));
  });
  const StoredTensor *furthest = nullptr;
  for (const StoredTensor *tensor : order)
    if (!furthest || tensor->offset + tensor->bytes > furthest->offset + furthest->bytes)
      furthest = tensor;
  uint64_t needed = furthest ? furthest->offset + furthest->bytes : 0;
  if (needed > dataBytes)
    return makeError(path() + ": the header needs " + llvm::Twine(8 + headerBytes + needed) + " bytes, the file has " +
                     llvm::Twine(file.size()) + ": tensor " + rangeText(*furthest) + " of the data is cut off");
  uint64_t at = 0;
  const StoredTensor *previous = nullptr;
  for (const StoredTensor *tensor : order) {
    if (tensor->offset < at)
      return makeError(path() + ": tensors " + rangeText(*previous) + " and " + rangeText(*tensor) +
                       " overlap in the data");
    if (tensor->offset > at)
      return makeError(path() + ": bytes [" + llvm::Twine(at) + ", " + llvm::Twine(tensor->offset) +
                       ") of the data belong to no tensor: a gap between " +
                       (previous ? rangeText(*previous) : "the start") + " and " + rangeText(*tensor));
    at = tensor->offset + tensor->bytes;
    previous = tensor;
  }
  if (at != dataBytes)
    return makeError(path() + ": " + llvm::Twine(dataBytes - at) + " bytes after the last tensor" +
                     (previous ? " " + rangeText(*previous) : "") + ": the header needs " +
                     llvm::Twine(8 + headerBytes + at) + " bytes, the file has " + llvm::Twine(file.size()));
  return llvm::Error::success();
}

llvm::Error SafetensorsFile::parseHeader() {
  uint64_t size = file.size();
  if (size < 8)
    return makeError(path() + ": " + llvm::Twine(size) +
                     " bytes: too short for a safetensors header, which starts with 8 "
                     "bytes of length");
  uint8_t raw[8];
  if (llvm::Error error = file.read(0, 8, raw))
    return error;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | raw[i];
  if (length > size - 8)
    return makeError(path() + ": header length " + llvm::Twine(length) + " is beyond the file size " +
                     llvm::Twine(size));
  if (length > kMostHeaderBytes)
    return makeError(path() + ": header length " + llvm::Twine(length) + ", at most " + llvm::Twine(kMostHeaderBytes) +
                     " bytes are read (file size " + llvm::Twine(size) + ")");
  std::string text(length, '\0');
  if (llvm::Error error = file.read(8, length, reinterpret_cast<uint8_t *>(text.data())))
    return error;
  if (text.empty() || text[0] != '{')
    return makeError(path() + ": the header of " + llvm::Twine(length) + " bytes does not start with '{' at byte 8");
  llvm::Expected<llvm::json::Value> document = parseJson(text, path(), 8);
  if (!document)
    return document.takeError();
  const llvm::json::Object *object = document->getAsObject();
  if (!object)
    return makeError(path() + ": the header is " + describeJson(*document) + ", an object wanted");

  std::vector<llvm::StringRef>
      names; // by name: the hash order of LLVM's object must not choose which error comes first
  for (const auto &entry : *object)
    names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  for (llvm::StringRef name : names) {
    const llvm::json::Value &value = *object->get(name);
    if (name == "__metadata__") {
      const llvm::json::Object *metadata = value.getAsObject();
      if (!metadata)
        return makeError(path() + ": __metadata__ is " + describeJson(value) + ", an object wanted");
      for (const auto &entry : *metadata) {
        std::optional<llvm::StringRef> string = entry.second.getAsString();
        if (!string)
          return makeError(path() + ": __metadata__ has a value that is no string");
        strings[entry.first.str()] = string->str();
      }
      continue;
    }
    llvm::Expected<StoredTensor> tensor = parseEntry(name, value, path());
    if (!tensor)
      return tensor.takeError();
    entries.push_back(std::move(*tensor));
  }
  if (llvm::Error error = checkCoverage(size - 8 - length, length))
    return error;
  for (StoredTensor &tensor : entries)
    tensor.offset += 8 + length;
  return llvm::Error::success();
}

llvm::Expected<SafetensorsFile> SafetensorsFile::open(llvm::StringRef path) {
  llvm::Expected<InputFile> input = InputFile::open(path);
  if (!input)
    return input.takeError();
  SafetensorsFile file(std::move(*input));
  if (llvm::Error error = file.parseHeader())
    return std::move(error);
  return file;
}

const StoredTensor *SafetensorsFile::find(llvm::StringRef name) const {
  auto it = std::lower_bound(entries.begin(), entries.end(), name,
                             [](const StoredTensor &tensor, llvm::StringRef name) { return tensor.name < name; });
  return it != entries.end() && it->name == name ? &*it : nullptr;
}

llvm::Error SafetensorsFile::read(const StoredTensor &tensor, uint64_t begin, uint64_t count, uint8_t *out) const {
  return file.read(tensor.offset + begin, count, out);
}

} // namespace batten
