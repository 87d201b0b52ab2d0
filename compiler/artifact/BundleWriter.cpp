// See the header. All names are resolved below two directory descriptors, so that renamed parents don't matter.
#include "compiler/artifact/BundleWriter.h"
#include "compiler/spec/Text.h"

#include "batten/format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace batten {

namespace {

constexpr llvm::StringLiteral kStagingPrefix = ".batten-tmp-";
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

std::string reason() { return std::strerror(errno); }

/// Removes a directory and what is below it. Errors are left: what stays is stale, and tried again by the next writer.
void removeTree(int dirFd, const char *name, int depth) {
  int fd = ::openat(dirFd, name, kDirectoryFlags);
  DIR *directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (!directory) {
    if (fd >= 0)
      ::close(fd);
    return;
  }
  while (dirent *entry = ::readdir(directory)) {
    llvm::StringRef child = entry->d_name;
    if (child == "." || child == "..")
      continue;
    if (::unlinkat(fd, entry->d_name, 0) != 0 && depth > 0)
      removeTree(fd, entry->d_name, depth - 1);
  }
  ::closedir(directory);
  ::unlinkat(dirFd, name, AT_REMOVEDIR);
}

class DirectoryFile : public BundleFile {
public:
  DirectoryFile(std::string path, std::string shown, int fd)
      : BundleFile(std::move(path)), shown(std::move(shown)), fd(fd) {}
  ~DirectoryFile() override {
    if (fd >= 0)
      ::close(fd);
  }

private:
  llvm::Error put(const uint8_t *data, size_t bytes) override {
    for (size_t done = 0; done < bytes;) {
      ssize_t wrote = ::write(fd, data + done, bytes - done);
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote < 0)
        return makeError(shown + ": cannot write " + llvm::Twine(bytes - done) + " bytes: " + reason());
      done += static_cast<size_t>(wrote);
    }
    return llvm::Error::success();
  }
  llvm::Error finish() override {
    bool failed = ::fchmod(fd, 0644) != 0 || ::fsync(fd) != 0;
    std::string why = failed ? reason() : "";
    if (::close(std::exchange(fd, -1)) != 0 && !failed) {
      failed = true;
      why = reason();
    }
    if (failed)
      return makeError(shown + ": cannot make the file lasting: " + why);
    return llvm::Error::success();
  }

  std::string shown;
  int fd;
};

bool isStagingName(llvm::StringRef name) {
  return name.consume_front(kStagingPrefix) && name.size() == 16 && llvm::all_of(name, llvm::isHexDigit);
}

} // namespace

llvm::Expected<std::unique_ptr<BundleWriter>> BundleWriter::begin(llvm::StringRef output) {
  std::unique_ptr<BundleWriter> writer(new BundleWriter());
  writer->output = output.str();
  std::string path = output.rtrim('/').str();
  if (path.empty() || path.size() != std::strlen(path.c_str()))
    return makeError(quoted(output) + ": no path of a bundle");
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    char resolved[PATH_MAX];
    if (!::realpath(path.c_str(), resolved))
      return makeError(writer->output + ": the link can't be followed: " + reason());
    path = resolved;
  }
  size_t slash = path.rfind('/');
  writer->parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  writer->name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (!isPlainName(writer->name))
    return makeError(writer->output + ": no path of a bundle");
  writer->parentFd = ::open(writer->parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (writer->parentFd < 0)
    return makeError(writer->output + ": cannot open the directory " + writer->parent + ": " + reason());
  if (llvm::Error error = writer->checkOutput())
    return std::move(error);
  writer->removeStale();
  if (llvm::Error error = writer->makeStaging())
    return std::move(error);
  return std::move(writer);
}

llvm::Error BundleWriter::makeStaging() {
  // A name may be taken, or a cleaner may lock or remove the directory between making and locking it: then another one.
  for (int attempt = 0; attempt < 64; ++attempt) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random))
      return makeError(output + ": no random name: " + reason());
    std::string candidate = kStagingPrefix.str() + llvm::utohexstr(random, /*LowerCase=*/true, 16);
    if (::mkdirat(parentFd, candidate.c_str(), 0700) != 0) {
      if (errno == EEXIST)
        continue;
      return makeError(output + ": cannot make a directory in " + parent + ": " + reason());
    }
    int fd = ::openat(parentFd, candidate.c_str(), kDirectoryFlags);
    if (fd < 0)
      continue;
    struct stat made, named;
    bool lost = (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || ::fstat(fd, &made) != 0 ||
                ::fstatat(parentFd, candidate.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || made.st_ino != named.st_ino;
    if (!lost && ::fchmod(fd, 0755) == 0) {
      staging = candidate;
      stagingFd = fd;
      return llvm::Error::success();
    }
    ::close(fd);
  }
  return makeError(output + ": cannot make a directory in " + parent + " to write to");
}

llvm::Error BundleWriter::checkOutput() const {
  struct stat info;
  if (::fstatat(parentFd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? llvm::Error::success() : makeError(output + ": cannot look at it: " + reason());
  bool bundle = false;
  int fd = S_ISDIR(info.st_mode) ? ::openat(parentFd, name.c_str(), kDirectoryFlags) : -1;
  if (fd >= 0) {
    int manifest = ::openat(fd, "manifest.bin", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char magic[8];
    bundle = manifest >= 0 && ::read(manifest, magic, 8) == 8 && std::memcmp(magic, BATTEN_MAGIC, 8) == 0;
    if (manifest >= 0)
      ::close(manifest);
    ::close(fd);
  }
  if (bundle)
    return llvm::Error::success();
  return makeError(output + ": is there and is no bundle (" +
                   (S_ISDIR(info.st_mode) ? "a directory without a bundle's manifest.bin" : "not a directory") +
                   "): not replaced");
}

llvm::Expected<std::unique_ptr<BundleFile>> BundleWriter::create(llvm::StringRef path, uint64_t expectedBytes) {
  std::string shown = joinPath(output, path);
  llvm::SmallVector<llvm::StringRef> parts;
  path.split(parts, '/');
  if (!llvm::all_of(parts, isPlainName))
    return makeError(quoted(path) + ": no path of a file of a bundle");
  int at = ::fcntl(stagingFd, F_DUPFD_CLOEXEC, 0);
  for (llvm::StringRef folder : llvm::drop_end(parts)) {
    std::string text = folder.str();
    bool made = at >= 0 && ::mkdirat(at, text.c_str(), 0700) == 0;
    int next = at < 0 ? -1 : ::openat(at, text.c_str(), kDirectoryFlags);
    if (next >= 0 && made && ::fchmod(next, 0755) != 0)
      ::close(std::exchange(next, -1));
    int saved = errno;
    if (at >= 0)
      ::close(at);
    at = next;
    errno = saved;
  }
  if (at < 0)
    return makeError(shown + ": cannot make its directory: " + reason());
  std::string file = parts.back().str();
  ::unlinkat(at, file.c_str(), 0);
  int fd = ::openat(at, file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  int saved = errno;
  ::close(at);
  errno = saved;
  if (fd < 0)
    return makeError(shown + ": cannot make the file: " + reason());
  return std::make_unique<DirectoryFile>(path.str(), shown, fd);
}

std::string BundleWriter::stagingPath() const { return joinPath(parent, staging); }

/// fsync of a directory and those below it: names are lasting only once their directory is.
static bool syncTree(int fd, int depth) {
  int copy = ::openat(fd, ".", kDirectoryFlags);
  DIR *directory = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!directory)
    return false;
  bool fine = true;
  while (dirent *entry = ::readdir(directory)) {
    llvm::StringRef child = entry->d_name;
    if (child == "." || child == ".." || depth == 0)
      continue;
    int below = ::openat(fd, entry->d_name, kDirectoryFlags);
    if (below < 0)
      continue; // a file
    fine &= syncTree(below, depth - 1);
    ::close(below);
  }
  ::closedir(directory);
  return ::fsync(fd) == 0 && fine;
}

llvm::Error BundleWriter::exchange() {
  // Others may make, replace or remove the output meanwhile; each turn takes what it finds.
  for (int attempt = 0; attempt < 256; ++attempt) {
    if (llvm::Error error = checkOutput())
      return error;
    if (::renameat2(parentFd, staging.c_str(), parentFd, name.c_str(), RENAME_NOREPLACE) == 0)
      return llvm::Error::success();
    bool there = errno == EEXIST;
    if (!there && errno != EINVAL && errno != ENOSYS)
      return makeError(output + ": cannot put the new bundle in its place: " + reason());
    if (there && ::renameat2(parentFd, staging.c_str(), parentFd, name.c_str(), RENAME_EXCHANGE) == 0)
      return llvm::Error::success();
    if (errno == ENOENT)
      continue;
    if (errno != EINVAL && errno != ENOSYS)
      return makeError(output + ": cannot put the new bundle in its place: " + reason());
    // No renameat2 here. The old one goes aside under a name that cleaners know.
    std::string aside =
        kStagingPrefix.str() + llvm::utohexstr(static_cast<uint64_t>(::getpid()) << 32 | attempt, true, 16);
    ::renameat(parentFd, name.c_str(), parentFd, aside.c_str());
    if (::renameat(parentFd, staging.c_str(), parentFd, name.c_str()) == 0)
      return llvm::Error::success();
    std::string why = reason();
    ::renameat(parentFd, aside.c_str(), parentFd, name.c_str());
    if (attempt == 255)
      return makeError(output + ": cannot put the new bundle in its place: " + why);
  }
  return makeError(output + ": others keep replacing it");
}

llvm::Error BundleWriter::commit() {
  if (!syncTree(stagingFd, 4))
    return makeError(output + ": cannot make the bundle's directories lasting: " + reason());
  if (llvm::Error error = exchange())
    return error;
  staging.clear();
  ::close(std::exchange(stagingFd, -1)); // the lock: the new bundle may be replaced and removed from now on
  bool lasting = ::fsync(parentFd) == 0;
  std::string why = lasting ? "" : reason();
  removeStale(); // the old bundle has a staging name now
  if (!lasting)
    return makeError(output + ": the new bundle is in place, but its directory could not be made lasting: " + why);
  return llvm::Error::success();
}

void BundleWriter::removeStale() const {
  int copy = ::openat(parentFd, ".", kDirectoryFlags);
  DIR *directory = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!directory) {
    if (copy >= 0)
      ::close(copy);
    return;
  }
  while (dirent *entry = ::readdir(directory)) {
    if (!isStagingName(entry->d_name))
      continue;
    int fd = ::openat(parentFd, entry->d_name, kDirectoryFlags);
    if (fd < 0)
      continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) // no living process writes it, or opens files of it
      removeTree(parentFd, entry->d_name, 4);
    ::close(fd);
  }
  ::closedir(directory);
}

BundleWriter::~BundleWriter() {
  if (!staging.empty())
    removeTree(parentFd, staging.c_str(), 4);
  if (stagingFd >= 0)
    ::close(stagingFd);
  if (parentFd >= 0)
    ::close(parentFd);
}

} // namespace batten
