// See Bundle.h. Manifest and plans are copied and then checked, so that nobody changes them afterwards; packs are mapped
// (or read); the image is copied into sealed memory, hashed on the way, and mapped R+X from there.
#include "Bundle.h"

#include <cstdio>

namespace batten::rt {
namespace {

using ull = unsigned long long;

/// A manifest is some kilobytes; the bound keeps a wrong file from being read whole.
constexpr u64 kMaxManifestBytes = u64{64} << 20;
constexpr const char *kManifestName = "manifest.bin";

u32 bitCount(u64 bits) noexcept {
  u32 count = 0;
  for (; bits; bits &= bits - 1)
    ++count;
  return count;
}

} // namespace

Status Bundle::open(const batten_bundle_options_t &options, batten_error_t &error) noexcept {
  cpu_ = CpuInfo::detect();
  load_ = options.load;
  mapImage_ = options.mapImage;
  BATTEN_TRY(readManifest(options, error));
  BATTEN_TRY(source.bind(manifest_, Report(error, textOf(kManifestName))));
  BATTEN_TRY(chooseTarget(options, error));
  for (u32 pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS})
    BATTEN_TRY(loadPack(target_, pack, files_, true, error));
  BATTEN_TRY(loadPlans(target_, files_, error));
  // Last: nothing is mapped executable for a bundle that is refused.
  if (options.inspectOnly)
    BATTEN_TRY(checkImage(target_, error));
  else
    BATTEN_TRY(loadCode(target_, files_.code, error));
  for (u64 i = 0; i < files_.plans.count(); ++i)
    planBytesTotal_ += files_.plans[i].view.bytes();
  return options.level == BATTEN_VERIFY_FULL ? verifyFull(error) : BATTEN_OK;
}

Status Bundle::readManifest(const batten_bundle_options_t &options, batten_error_t &error) noexcept {
  const Report report(error, textOf(kManifestName));
  SourceFile file;
  BATTEN_TRY(source.openManifest(file, report));
  if (file.bytes > kMaxManifestBytes)
    return report.fail(BATTEN_CORRUPT, "", 0, file.bytes, kMaxManifestBytes, "%llu bytes, a manifest has %llu at most",
                       ull{file.bytes}, ull{kMaxManifestBytes});
  if (!manifestBytes_.create(file.bytes))
    return report.outOfMemory(file.bytes);
  BATTEN_TRY(readFile(file, manifestBytes_.data(), file.bytes, 0, report));
  sha256(manifestBytes_.data(), file.bytes, cpu_.hasSha, manifestDigest_);
  if (options.manifestDigest && std::memcmp(manifestDigest_, options.manifestDigest, sizeof manifestDigest_) != 0)
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0,
                       "its SHA-256 is not the one that was expected: another or a changed bundle");
  return manifest_.open(manifestBytes_.data(), file.bytes, cpu_.hasSha, report);
}

// The supported target with the most features; the first among equals. To inspect, the first one will do.
Status Bundle::chooseTarget(const batten_bundle_options_t &options, batten_error_t &error) noexcept {
  const Report report(error, textOf(kManifestName));
  const char *name = options.target;
  u32 best = UINT32_MAX, first = UINT32_MAX;
  char reasons[320] = "";
  size_t used = 0;
  for (u32 i = 0; i < manifest_.targets.count; ++i) {
    const batten_target_t target = manifest_.targets.at(i);
    const Text targetName = manifest_.text(target.name);
    if (name && !targetName.equals(textOf(name)))
      continue;
    first = first == UINT32_MAX ? i : first;
    if (!targetRuns(cpu_, target.arch, target.features)) {
      char missing[128];
      featureNames(target.features & ~cpu_.features, missing, sizeof missing);
      int written = std::snprintf(reasons + used, sizeof reasons - used, "%s%.*s needs %s", used ? "; " : "",
                                  BATTEN_TEXT(targetName), target.arch == cpu_.arch ? missing : "another architecture");
      used += written < 0 ? 0 : static_cast<size_t>(written);
      used = used < sizeof reasons - 1 ? used : sizeof reasons - 1;
    } else if (best == UINT32_MAX || bitCount(target.features) > bitCount(manifest_.targets.at(best).features)) {
      best = i;
    }
  }
  if (best == UINT32_MAX && options.inspectOnly)
    best = first;
  if (best == UINT32_MAX && used == 0)
    return report.fail(BATTEN_BAD_ARGUMENT, "TARGETS", 0, 0, manifest_.targets.count, "has no target \"%.100s\"", name);
  if (best == UINT32_MAX)
    return report.fail(BATTEN_UNSUPPORTED, "TARGETS", 0, cpu_.features, manifest_.targets.at(0).features,
                       "no target runs on this machine: %s", reasons);
  target_ = best;
  return BATTEN_OK;
}

Status Bundle::loadPack(u32 target, u32 pack, TargetFiles &files, bool inUse, batten_error_t &error) const noexcept {
  const batten_target_t record = manifest_.targets.at(target);
  const u32 index = pack == BATTEN_PACK_COMMON ? record.commonPack : record.panelsPack;
  const Report report = reportOf(index, error);
  SourceFile file;
  BATTEN_TRY(source.open(manifest_, index, file, report));
  if (file.blob) {
    files.packData[pack] = file.blob;
  } else if (load_ == BATTEN_LOAD_READ && inUse) {
    BATTEN_TRY(os::mapMemory(file.bytes, files.packMemory[pack], report));
    BATTEN_TRY(readFile(file, files.packMemory[pack].data(), file.bytes, 0, report));
    files.packData[pack] = files.packMemory[pack].data();
  } else {
    BATTEN_TRY(os::mapFile(file.file, file.bytes, files.packMemory[pack], report));
    files.packData[pack] = files.packMemory[pack].data();
  }
  return files.packs[pack].open(files.packData[pack], pack, manifest_.files.at(index), cpu_.hasSha, report);
}

Status Bundle::loadCode(u32 target, os::Mapping &code, batten_error_t &error) const noexcept {
  const batten_target_t record = manifest_.targets.at(target);
  const batten_file_t image = manifest_.files.at(record.image);
  const Report report = reportOf(record.image, error);
  SourceFile file;
  u8 digest[Sha256::kDigestBytes];
  int osError = 0;
  BATTEN_TRY(source.open(manifest_, record.image, file, report));
  os::Fd sealed;
  if (!mapImage_ && os::createMemoryFile(sealed)) {
    BATTEN_TRY(hashFile(file, cpu_.hasSha, digest, report,
                        [&](const u8 *data, u64 bytes) { return os::writeAll(sealed, data, bytes, report); }));
    BATTEN_TRY(checkFileDigest(digest, image, report));
    if (os::seal(sealed) && os::mapCode(sealed, record.codeOffset, record.codeBytes, code, &osError))
      return BATTEN_OK;
  }
  // Sealed memory is denied here, or the file itself is wanted: a map of the file, hashed as it is now.
  if (file.blob)
    return report.failOs(BATTEN_UNSUPPORTED, osError, "map code from sealed memory");
  BATTEN_TRY(hashFile(file, cpu_.hasSha, digest, report, [](const u8 *, u64) { return BATTEN_OK; }));
  BATTEN_TRY(checkFileDigest(digest, image, report));
  if (!os::mapCode(file.file, record.codeOffset, record.codeBytes, code, &osError))
    return report.failOs(BATTEN_IO, osError, "map code");
  return BATTEN_OK;
}

Status Bundle::checkImage(u32 target, batten_error_t &error) const noexcept {
  const u32 index = manifest_.targets.at(target).image;
  const Report report = reportOf(index, error);
  SourceFile file;
  u8 digest[Sha256::kDigestBytes];
  BATTEN_TRY(source.open(manifest_, index, file, report));
  BATTEN_TRY(hashFile(file, cpu_.hasSha, digest, report, [](const u8 *, u64) { return BATTEN_OK; }));
  return checkFileDigest(digest, manifest_.files.at(index), report);
}

Status Bundle::loadPlans(u32 target, TargetFiles &files, batten_error_t &error) const noexcept {
  const u32 count = manifest_.plansPerTarget();
  if (!files.plans.create(count) || !files.planBytes.create(count))
    return Report(error, {}).outOfMemory(count * sizeof(Plan));
  for (u32 lane = 0; lane < manifest_.lanes.count; ++lane)
    for (u32 bucket = 0; bucket < manifest_.bucketCount(lane); ++bucket) {
      const u32 plan = manifest_.planIndex(lane, bucket), index = manifest_.planFile(target, plan);
      const batten_file_t record = manifest_.files.at(index);
      const Report report = reportOf(index, error);
      SourceFile file;
      BATTEN_TRY(source.open(manifest_, index, file, report));
      const u8 *data = file.blob;
      if (!data) {
        Bytes bytes;
        if (!bytes.create(file.bytes))
          return report.outOfMemory(file.bytes);
        BATTEN_TRY(readFile(file, bytes.data(), file.bytes, 0, report));
        data = files.planBytes[plan] = bytes.take();
      }
      u8 digest[Sha256::kDigestBytes];
      sha256(data, file.bytes, cpu_.hasSha, digest);
      BATTEN_TRY(checkFileDigest(digest, record, report));
      BATTEN_TRY(files.plans[plan].open(data, file.bytes, {&manifest_, files.packs, target, lane, bucket}, report));
    }
  return BATTEN_OK;
}

// The digests in the files' own headers: the manifest's cover the same bytes, so only the full level looks.
Status Bundle::verifyHeaders(const TargetFiles &files, u32 target, batten_error_t &error) const noexcept {
  const batten_target_t record = manifest_.targets.at(target);
  for (u32 pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS}) {
    const u32 index = pack == BATTEN_PACK_COMMON ? record.commonPack : record.panelsPack;
    BATTEN_TRY(
        files.packs[pack].view.checkDigest(manifest_.files.at(index).headBytes, cpu_.hasSha, reportOf(index, error)));
  }
  for (u32 plan = 0; plan < files.plans.count(); ++plan) {
    const FileView &view = files.plans[plan].view;
    BATTEN_TRY(view.checkDigest(view.bytes(), cpu_.hasSha, reportOf(manifest_.planFile(target, plan), error)));
  }
  return BATTEN_OK;
}

Status Bundle::verifyFull(batten_error_t &error) const noexcept {
  u8 digest[Sha256::kDigestBytes];
  for (u32 i = 0; i < manifest_.files.count; ++i) {
    const Report report = reportOf(i, error);
    SourceFile file;
    BATTEN_TRY(source.open(manifest_, i, file, report));
    BATTEN_TRY(hashFile(file, cpu_.hasSha, digest, report, [](const u8 *, u64) { return BATTEN_OK; }));
    BATTEN_TRY(checkFileDigest(digest, manifest_.files.at(i), report));
  }
  // What was read into memory is what runs.
  const batten_target_t record = manifest_.targets.at(target_);
  for (u32 pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS}) {
    if (load_ != BATTEN_LOAD_READ)
      break;
    const u32 index = pack == BATTEN_PACK_COMMON ? record.commonPack : record.panelsPack;
    sha256(files_.packData[pack], manifest_.files.at(index).bytes, cpu_.hasSha, digest);
    BATTEN_TRY(checkFileDigest(digest, manifest_.files.at(index), reportOf(index, error)));
  }
  BATTEN_TRY(verifyHeaders(files_, target_, error));
  for (u32 target = 0; target < manifest_.targets.count; ++target) {
    if (target == target_)
      continue;
    TargetFiles other;
    for (u32 pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS})
      BATTEN_TRY(loadPack(target, pack, other, false, error));
    BATTEN_TRY(loadPlans(target, other, error));
    BATTEN_TRY(verifyHeaders(other, target, error));
  }
  return BATTEN_OK;
}

} // namespace batten::rt
