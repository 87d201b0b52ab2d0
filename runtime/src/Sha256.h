// SHA-256 (FIPS 180-4). Uses the SHA instructions of x86-64 where the caller says that the CPU has them. Incremental; no
// allocation. Not hardened against side channels: it hashes public bytes.
#ifndef BATTEN_RT_SHA256_H
#define BATTEN_RT_SHA256_H

#include "Support.h"

namespace batten::rt {

class Sha256 {
public:
  static constexpr u32 kDigestBytes = 32;

  /// accelerated: the CPU has the SHA instructions (CpuInfo::hasSha). Wrong on such a claim, not merely slow.
  explicit Sha256(bool accelerated) noexcept;
  void update(const void *data, u64 bytes) noexcept;
  /// Writes 32 bytes. The object is spent.
  void finish(u8 *digest) noexcept;

private:
  void compress(const u8 *blocks, u64 count) noexcept;

  u32 state_[8];
  u64 totalBytes_ = 0;
  u32 pendingBytes_ = 0;
  bool accelerated_;
  u8 pending_[64];
};

/// Digest of one block of bytes.
void sha256(const void *data, u64 bytes, bool accelerated, u8 *digest) noexcept;

} // namespace batten::rt

#endif // BATTEN_RT_SHA256_H
