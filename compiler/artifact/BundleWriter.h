// A bundle directory that appears as a whole or not at all. Files go into a directory beside the output; commit makes them
// lasting and puts that directory in the output's place in one step. A kill leaves the old bundle or none; what it leaves
// besides is removed by the next writer to that parent directory.
//
//   PARENT/.batten-tmp-<16 hex digits>   being written, or an old bundle being removed; its writer holds a flock on it
//   PARENT/NAME.batten                   the output: renameat2(EXCHANGE), or NOREPLACE where there is none
//
// Where the file system knows no exchange, the old bundle is moved aside first: for a moment there is none.
// A reader that has opened the old directory can find files of it gone: it opens the output again (or holds a shared flock
// on the directory while it opens files, which keeps the old one from being removed).
#ifndef BATTEN_COMPILER_ARTIFACT_BUNDLEWRITER_H
#define BATTEN_COMPILER_ARTIFACT_BUNDLEWRITER_H

#include "compiler/artifact/BundleSink.h"

namespace batten {

class BundleWriter : public BundleSink {
public:
  /// Begins a bundle that is to replace `output`. A symbolic link is followed: what it names is replaced.
  ///
  /// Errors: the parent is missing or not writable; the output is there and is no bundle (a directory with a manifest).
  static llvm::Expected<std::unique_ptr<BundleWriter>> begin(llvm::StringRef output);

  BundleWriter(const BundleWriter &) = delete;
  BundleWriter &operator=(const BundleWriter &) = delete;
  /// Removes what was written, unless commit has succeeded.
  ~BundleWriter() override;

  llvm::Expected<std::unique_ptr<BundleFile>> create(llvm::StringRef path, uint64_t expectedBytes) override;

  /// The directory that is being written, for a look at the bundle before commit.
  std::string stagingPath() const;

  /// Replaces the output. Errors: as begin, and any failure to make the files lasting; the output is then untouched.
  llvm::Error commit();

private:
  BundleWriter() = default;
  llvm::Error makeStaging();
  llvm::Error checkOutput() const;
  llvm::Error exchange();
  void removeStale() const;

  std::string output;  ///< as given, for texts
  std::string parent;  ///< path of the directory that holds it
  std::string name;    ///< its name there
  std::string staging; ///< name of the directory being written, "" once committed
  int parentFd = -1;
  int stagingFd = -1;
};

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_BUNDLEWRITER_H
