// Finding and opening the files of a checkpoint; see the header.
#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/Json.h"
#include "compiler/spec/Text.h"

#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace batten {

static constexpr llvm::StringLiteral kSingle = "model.safetensors";
static constexpr llvm::StringLiteral kIndex = "model.safetensors.index.json";

/// Regular names in a directory, sorted; empty where it can't be read (the open that follows says why).
static std::vector<std::string> listDirectory(llvm::StringRef path) {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(path, code), end; it != end && !code; it.increment(code))
    names.push_back(llvm::StringRef(it->path()).rsplit('/').second.str());
  std::sort(names.begin(), names.end());
  return names;
}

llvm::Expected<std::unique_ptr<Checkpoint>> Checkpoint::open(llvm::StringRef path, llvm::StringRef encoderDir) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  llvm::Error error = llvm::Error::success();
  if (!path.ends_with("/") && (path.ends_with(".safetensors") || path.ends_with(".index.json")) &&
      !llvm::sys::fs::is_directory(path)) {
    llvm::consumeError(std::move(error));
    auto [dir, name] = path.contains('/') ? path.rsplit('/') : std::pair<llvm::StringRef, llvm::StringRef>(".", path);
    checkpoint->root = path.starts_with("/") && dir.empty() ? "/" : dir.str();
    checkpoint->dirs.push_back("");
    error = name.ends_with(".index.json") ? checkpoint->openIndex("", name) : checkpoint->openSingle("", name);
  } else {
    llvm::consumeError(std::move(error));
    checkpoint->root = path.str();
    error = encoderDir.empty() ? checkpoint->openDirectory("") : checkpoint->addDirectory(encoderDir);
  }
  if (error)
    return std::move(error);
  checkpoint->sortTensors();
  return std::move(checkpoint);
}

llvm::Error Checkpoint::addDirectory(llvm::StringRef dir) {
  if (std::find(dirs.begin(), dirs.end(), dir) != dirs.end())
    return llvm::Error::success();
  if (!isPlainName(dir))
    return makeError(root + ": " + quoted(dir) + " is no plain name of a sub-directory");
  size_t dirsBefore = dirs.size(), filesBefore = files.size(), tensorsBefore = all.size(),
         notesBefore = noteTexts.size();
  if (llvm::Error error = openDirectory(dir)) { // what it has added is at the ends
    dirs.resize(dirsBefore);
    all.resize(tensorsBefore);
    fileOf.resize(tensorsBefore);
    files.resize(filesBefore);
    noteTexts.resize(notesBefore);
    return error;
  }
  sortTensors();
  return llvm::Error::success();
}

llvm::Error Checkpoint::openDirectory(llvm::StringRef dir) {
  std::string path = joinPath(root, dir);
  if (!llvm::sys::fs::is_directory(path))
    return makeError(path + ": " + (pathExists(path) ? "not a directory" : "no such directory"));
  dirs.push_back(dir.str());
  if (pathExists(joinPath(path, kIndex)))
    return openIndex(dir, kIndex);
  if (!pathExists(joinPath(path, kSingle))) {
    std::string other;
    for (const std::string &name : listDirectory(path))
      if (llvm::StringRef(name).starts_with("pytorch_model") || llvm::StringRef(name).ends_with(".safetensors"))
        other += (other.empty() ? "; it has " : ", ") + name;
    return makeError(path + ": no weights: neither " + kSingle + " nor " + kIndex + " is there" + other);
  }
  return openSingle(dir, kSingle);
}

llvm::Error Checkpoint::openSingle(llvm::StringRef dir, llvm::StringRef name) {
  llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(joinPath(joinPath(root, dir), name));
  if (!file)
    return file.takeError();
  files.push_back(std::make_unique<File>(File{dir.str(), name.str(), std::move(*file)}));
  for (const StoredTensor &stored : files.back()->file.tensors())
    addTensor(dir, *files.back(), stored);
  noteStrays(dir, {name.str()});
  return llvm::Error::success();
}

llvm::Error Checkpoint::openIndex(llvm::StringRef dir, llvm::StringRef name) {
  std::string directory = joinPath(root, dir), path = joinPath(directory, name);
  llvm::Expected<std::string> text = readTextFile(path, kMostIndexBytes);
  if (!text)
    return text.takeError();
  llvm::Expected<llvm::json::Value> document = parseJson(*text, path);
  if (!document)
    return document.takeError();
  llvm::Expected<JsonObject> object = JsonObject::root(*document, path);
  if (!object)
    return object.takeError();
  llvm::Expected<std::optional<JsonObject>> map = object->child("weight_map");
  if (!map)
    return map.takeError();
  if (!*map)
    return makeError(object->where("weight_map") + " is missing: an object from tensor names to file names wanted");

  std::map<std::string, std::vector<std::string>> byFile; // file -> tensors, both sorted
  std::vector<std::string> faults;
  for (const auto &entry : (*map)->raw()) {
    std::optional<llvm::StringRef> file = entry.second.getAsString();
    if (!file)
      faults.push_back(path + ": weight_map: " + quoted(entry.first) + " is in " + describeJson(entry.second) +
                       ", a file name wanted");
    else if (!isPlainName(*file))
      faults.push_back(path + ": weight_map: " + quoted(entry.first) + " is in " + quoted(*file) +
                       ", which is no plain file name in the index's directory");
    else
      byFile[file->str()].push_back(entry.first.str());
  }
  std::sort(faults.begin(), faults.end());
  if (!faults.empty())
    return joinCauses(std::move(faults));
  if (byFile.empty())
    return makeError(path + ": weight_map names no tensor");

  // All files are opened before any is judged, so that one report names each that is missing or broken.
  std::vector<File *> opened;
  for (auto &[fileName, names] : byFile) {
    std::sort(names.begin(), names.end());
    std::string filePath = joinPath(directory, fileName), count = std::to_string(names.size());
    if (!pathExists(filePath)) {
      faults.push_back(filePath + ": no such file; " + path + " says that it holds " + count +
                       " tensors, so the download is incomplete or the index is stale");
      continue;
    }
    llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(filePath);
    if (!file) {
      faults.push_back(llvm::toString(file.takeError()) + " (" + count + " tensors of " + path + " should be in it)");
      continue;
    }
    std::string missing;
    size_t missingCount = 0;
    for (const std::string &tensor : names)
      if (!file->find(tensor) && ++missingCount <= 3)
        missing += (missing.empty() ? "" : ", ") + quoted(tensor);
    if (missingCount) {
      faults.push_back(path + ": stale index: " + fileName + " lacks " + std::to_string(missingCount) + " of the " +
                       count + " tensors that it should hold: " + missing + (missingCount > 3 ? ", ..." : ""));
      continue;
    }
    files.push_back(std::make_unique<File>(File{dir.str(), fileName, std::move(*file)}));
    opened.push_back(files.back().get());
  }
  if (!faults.empty())
    return joinCauses(std::move(faults));

  std::vector<std::string> used;
  for (File *file : opened) {
    const std::vector<std::string> &names = byFile[file->name];
    used.push_back(file->name);
    for (const StoredTensor &stored : file->file.tensors()) {
      if (std::binary_search(names.begin(), names.end(), stored.name))
        addTensor(dir, *file, stored);
      else
        noteTexts.push_back(joinPath(dir, file->name) + ": tensor " + quoted(stored.name) + " is not in " +
                            joinPath(dir, name) + " for this file: not read");
    }
  }
  noteStrays(dir, used);
  return llvm::Error::success();
}

void Checkpoint::noteStrays(llvm::StringRef dir, llvm::ArrayRef<std::string> used) {
  for (const std::string &name : listDirectory(joinPath(root, dir)))
    if (llvm::StringRef(name).ends_with(".safetensors") && std::find(used.begin(), used.end(), name) == used.end())
      noteTexts.push_back(joinPath(dir, name) + ": not part of the checkpoint: not read");
}

void Checkpoint::addTensor(llvm::StringRef dir, const File &file, const StoredTensor &stored) {
  all.push_back({dir.str(), file.name, &stored});
  fileOf.push_back(&file);
}

void Checkpoint::sortTensors() {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto key = [&](size_t i) {
    return std::pair(std::find(dirs.begin(), dirs.end(), all[i].dir), llvm::StringRef(all[i].stored->name));
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  std::vector<Tensor> sorted;
  std::vector<const File *> sortedFiles;
  for (size_t i : order) {
    sorted.push_back(all[i]);
    sortedFiles.push_back(fileOf[i]);
  }
  all = std::move(sorted);
  fileOf = std::move(sortedFiles);
}

const Checkpoint::Tensor *Checkpoint::lookup(llvm::StringRef dir, llvm::StringRef name) const {
  auto place = [&](llvm::StringRef d) { return std::find(dirs.begin(), dirs.end(), d) - dirs.begin(); };
  auto wanted = std::pair(place(dir), name);
  auto it = std::lower_bound(all.begin(), all.end(), wanted, [&](const Tensor &tensor, const auto &key) {
    return std::pair(place(tensor.dir), llvm::StringRef(tensor.stored->name)) < key;
  });
  return it != all.end() && it->dir == dir && it->stored->name == name ? &*it : nullptr;
}

std::string Checkpoint::pathOf(const Tensor &tensor) const { return joinPath(joinPath(root, tensor.dir), tensor.file); }

llvm::Error Checkpoint::read(const Tensor &tensor, uint64_t begin, uint64_t count, uint8_t *out) const {
  return fileOf[static_cast<size_t>(&tensor - all.data())]->file.read(*tensor.stored, begin, count, out);
}

} // namespace batten
