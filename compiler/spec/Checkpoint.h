// The tensors of a model directory: one model.safetensors, or shards named by model.safetensors.index.json, and module
// directories such as 2_Dense with files of their own. Only files that the directory names are read; others are reported.
//
// Names from inside files (shards, modules) must be plain names of the directory; what they name may be a symbolic link,
// since hub caches are made of links. The path that the caller gives is the caller's and not restricted.
#ifndef BATTEN_COMPILER_SPEC_CHECKPOINT_H
#define BATTEN_COMPILER_SPEC_CHECKPOINT_H

#include "compiler/spec/Safetensors.h"

#include <memory>
#include <optional>

namespace batten {

class Checkpoint {
public:
  struct Tensor {
    std::string dir;  ///< "" or a module's directory
    std::string file; ///< name in that directory
    const StoredTensor *stored = nullptr;
  };

  /// Opens a model directory, a .safetensors file, or an index file. With a directory, `encoderDir` names the plain
  /// sub-directory that holds the encoder's weights (older sentence-transformers layouts: 0_Transformer); its tensors then
  /// belong to dir `encoderDir`.
  ///
  /// Errors: nothing to open (with the paths tried); an index of the wrong form, with file names that are not plain, files
  /// that are missing or broken, or tensors that its files don't have; whatever SafetensorsFile::open refuses. Where
  /// several files are at fault all are listed, the first one last.
  static llvm::Expected<std::unique_ptr<Checkpoint>> open(llvm::StringRef path, llvm::StringRef encoderDir = "");

  /// Adds the tensors of a sub-directory. Twice the same does nothing. Errors: as open; a name that is not plain; nothing
  /// is added then.
  llvm::Error addDirectory(llvm::StringRef dir);

  /// All tensors, in the order of dir (as opened), then name.
  const std::vector<Tensor> &tensors() const { return all; }
  /// Nothing where there is no such tensor.
  const Tensor *lookup(llvm::StringRef dir, llvm::StringRef name) const;
  /// The directory that holds the files.
  const std::string &directory() const { return root; }
  /// Files and tensors that are there and not read, one text each.
  const std::vector<std::string> &notes() const { return noteTexts; }
  /// Path of the file that holds a tensor, as given to open plus names.
  std::string pathOf(const Tensor &tensor) const;

  /// Reads bytes [begin, begin + count) of a tensor of this checkpoint, within its bounds. Errors: the read fails.
  llvm::Error read(const Tensor &tensor, uint64_t begin, uint64_t count, uint8_t *out) const;

private:
  struct File {
    std::string dir;
    std::string name;
    SafetensorsFile file;
  };

  Checkpoint() = default;
  llvm::Error openDirectory(llvm::StringRef dir);
  llvm::Error openSingle(llvm::StringRef dir, llvm::StringRef name);
  llvm::Error openIndex(llvm::StringRef dir, llvm::StringRef name);
  void noteStrays(llvm::StringRef dir, llvm::ArrayRef<std::string> used);
  void addTensor(llvm::StringRef dir, const File &file, const StoredTensor &stored);
  void sortTensors();

  std::string root;
  std::vector<std::string> dirs;
  std::vector<std::unique_ptr<File>> files;
  std::vector<Tensor> all;
  std::vector<const File *> fileOf; ///< parallel to all
  std::vector<std::string> noteTexts;
};

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_CHECKPOINT_H
