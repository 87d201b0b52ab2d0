// Reads cases with the compiler's own safetensors reader; cases.json with LLVM's JSON.
#include "tests/golden/Cases.h"
#include "compiler/spec/Safetensors.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstring>

namespace batten::test {

std::string goldenPath(const std::string &directory) { return std::string(BATTEN_TEST_GOLDENS) + "/" + directory; }

std::pair<int64_t, int64_t> PackedBatch::rowsOf(uint32_t rowKind, uint32_t seq) const {
  if (rowKind == 1)
    return {seq, seq + 1};
  const std::vector<int32_t> &offsets = rowKind == 0 ? cu : cuMarkers;
  if (offsets.size() < seq + 2)
    return {offsets.back(), offsets.back()};
  return {offsets[seq], offsets[seq + 1]};
}

void PackedBatch::append(const PackedBatch &other, uint32_t seq) {
  if (seqTypes.empty() && !other.seqTypes.empty())
    seqTypes.resize(seqs(), 0);
  if (!other.seqTypes.empty())
    seqTypes.push_back(other.seqTypes[seq]);
  else if (!seqTypes.empty())
    seqTypes.push_back(0);
  auto [firstMarker, lastMarker] = other.rowsOf(2, seq);
  markers.insert(markers.end(), other.markers.begin() + firstMarker, other.markers.begin() + lastMarker);
  cuMarkers.resize(seqs() + 1, cuMarkers.back());
  cuMarkers.push_back(static_cast<int32_t>(markers.size()));
  int32_t begin = other.cu[seq], end = other.cu[seq + 1];
  if (types.empty() && !other.types.empty())
    types.resize(ids.size(), 0);
  ids.insert(ids.end(), other.ids.begin() + begin, other.ids.begin() + end);
  if (!other.types.empty())
    types.insert(types.end(), other.types.begin() + begin, other.types.begin() + end);
  else if (!types.empty())
    types.resize(ids.size(), 0);
  cu.push_back(cu.back() + (end - begin));
}

namespace {

template <typename T>
llvm::Error readTensor(const SafetensorsFile &file, const StoredTensor &tensor, llvm::StringRef dtype,
                       std::vector<T> &out) {
  if (tensor.dtype != dtype)
    return llvm::createStringError("%s is %s", tensor.name.c_str(), tensor.dtype.c_str());
  out.resize(tensor.elements);
  if (out.empty())
    return llvm::Error::success();
  return file.read(tensor, 0, tensor.bytes, reinterpret_cast<uint8_t *>(out.data()));
}

} // namespace

llvm::Expected<Golden> loadGolden(const std::string &directory) {
  Golden golden;
  golden.directory = directory;
  auto file = SafetensorsFile::open(goldenPath(directory) + "/cases.safetensors");
  if (!file)
    return file.takeError();
  std::map<std::string, GoldenCase> cases;
  for (const StoredTensor &tensor : file->tensors()) {
    auto [name, rest] = llvm::StringRef(tensor.name).split('/');
    GoldenCase &entry = cases[name.str()];
    entry.name = name.str();
    llvm::Error error = llvm::Error::success();
    if (rest == "token_ids") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.ids));
    } else if (rest == "token_types") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.types));
    } else if (rest == "cu_seqlens") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.cu));
    } else if (rest == "markers") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.markers));
    } else if (rest == "cu_markers") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.cuMarkers));
    } else if (rest == "seq_types") {
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "I32", entry.batch.seqTypes));
    } else if (rest.starts_with("trace/") || rest.starts_with("kime/")) {
      continue; // hidden states within, and another system's outputs
    } else if (rest.consume_front("out/")) {
      Rows &rows = entry.outputs[rest.str()];
      rows.rows = tensor.shape.at(0);
      rows.width = tensor.shape.at(1);
      error = llvm::joinErrors(std::move(error), readTensor(*file, tensor, "F32", rows.values));
    } else {
      error = llvm::joinErrors(std::move(error), llvm::createStringError("unknown tensor %s", tensor.name.c_str()));
    }
    if (error)
      return std::move(error);
  }
  for (auto &[name, entry] : cases)
    golden.cases.push_back(std::move(entry));

  auto buffer = llvm::MemoryBuffer::getFile(goldenPath(directory) + "/cases.json");
  if (!buffer)
    return llvm::errorCodeToError(buffer.getError());
  auto json = llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return json.takeError();
  const llvm::json::Object *root = json->getAsObject();
  const llvm::json::Object *noise = root ? root->getObject("float32_noise") : nullptr;
  if (!noise && !llvm::StringRef(directory).starts_with("laya-")) // those state another system's errors, case by case
    return llvm::createStringError("%s/cases.json has no float32_noise", directory.c_str());
  for (const auto &[output, figures] : noise ? *noise : llvm::json::Object())
    if (const llvm::json::Object *object = figures.getAsObject())
      if (auto value = object->getNumber("abs"))
        golden.noise[output.str()] = *value;
  return golden;
}

} // namespace batten::test
