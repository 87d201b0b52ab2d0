// See Sha256.h. Two compression functions, portable and SHA-NI; both are tested against the standard's vectors.
#include "Sha256.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace batten::rt {
namespace {

alignas(64) constexpr u32 kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

inline u32 rotateRight(u32 x, int n) { return (x >> n) | (x << (32 - n)); }
inline u32 loadBig(const u8 *p) { return u32{p[0]} << 24 | u32{p[1]} << 16 | u32{p[2]} << 8 | u32{p[3]}; }

void compressPortable(u32 *state, const u8 *block, u64 count) noexcept {
  for (; count > 0; --count, block += 64) {
    u32 w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = loadBig(block + 4 * i);
    for (int i = 16; i < 64; ++i) {
      u32 a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (rotateRight(a, 7) ^ rotateRight(a, 18) ^ (a >> 3)) + w[i - 7] +
             (rotateRight(b, 17) ^ rotateRight(b, 19) ^ (b >> 10));
    }
    u32 s[8];
    std::memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; ++i) {
      u32 t1 = s[7] + (rotateRight(s[4], 6) ^ rotateRight(s[4], 11) ^ rotateRight(s[4], 25)) +
               ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
      u32 t2 = (rotateRight(s[0], 2) ^ rotateRight(s[0], 13) ^ rotateRight(s[0], 22)) +
               ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      for (int j = 7; j > 0; --j)
        s[j] = s[j - 1];
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (int j = 0; j < 8; ++j)
      state[j] += s[j];
  }
}

#if defined(__x86_64__)
[[gnu::target("sha,sse4.1,ssse3")]] void compressShaNi(u32 *state, const u8 *block, u64 count) noexcept {
  const __m128i bigEndian = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state));
  __m128i cdgh = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state + 4));
  low = _mm_shuffle_epi32(low, 0xB1);
  cdgh = _mm_shuffle_epi32(cdgh, 0x1B);
  __m128i abef = _mm_alignr_epi8(low, cdgh, 8);
  cdgh = _mm_blend_epi16(cdgh, low, 0xF0);
  for (; count > 0; --count, block += 64) {
    const __m128i abefBefore = abef, cdghBefore = cdgh;
    __m128i w[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 16 * i)), bigEndian);
      } else {
        __m128i t = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
        t = _mm_add_epi32(t, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(t, w[(i + 3) & 3]);
      }
      __m128i k = _mm_add_epi32(w[i & 3], _mm_load_si128(reinterpret_cast<const __m128i *>(kRound + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0E));
    }
    abef = _mm_add_epi32(abef, abefBefore);
    cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  low = _mm_shuffle_epi32(abef, 0x1B);
  cdgh = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state), _mm_blend_epi16(low, cdgh, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4), _mm_alignr_epi8(cdgh, low, 8));
}
#endif

} // namespace

Sha256::Sha256(bool accelerated) noexcept
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      accelerated_(accelerated) {}

void Sha256::compress(const u8 *blocks, u64 count) noexcept {
#if defined(__x86_64__)
  if (accelerated_)
    return compressShaNi(state_, blocks, count);
#endif
  compressPortable(state_, blocks, count);
}

void Sha256::update(const void *data, u64 bytes) noexcept {
  const u8 *p = static_cast<const u8 *>(data);
  totalBytes_ += bytes;
  if (pendingBytes_) {
    u64 taken = 64 - pendingBytes_ < bytes ? 64 - pendingBytes_ : bytes;
    std::memcpy(pending_ + pendingBytes_, p, taken);
    pendingBytes_ += static_cast<u32>(taken);
    p += taken, bytes -= taken;
    if (pendingBytes_ < 64)
      return;
    compress(pending_, 1);
    pendingBytes_ = 0;
  }
  if (u64 blocks = bytes / 64) {
    compress(p, blocks);
    p += blocks * 64, bytes %= 64;
  }
  if (bytes)
    std::memcpy(pending_, p, bytes);
  pendingBytes_ = static_cast<u32>(bytes);
}

void Sha256::finish(u8 *digest) noexcept {
  u64 bits = totalBytes_ * 8;
  pending_[pendingBytes_++] = 0x80;
  if (pendingBytes_ > 56) {
    std::memset(pending_ + pendingBytes_, 0, 64 - pendingBytes_);
    compress(pending_, 1);
    pendingBytes_ = 0;
  }
  std::memset(pending_ + pendingBytes_, 0, 56 - pendingBytes_);
  for (int i = 0; i < 8; ++i)
    pending_[56 + i] = static_cast<u8>(bits >> (56 - 8 * i));
  compress(pending_, 1);
  for (int i = 0; i < 32; ++i)
    digest[i] = static_cast<u8>(state_[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(const void *data, u64 bytes, bool accelerated, u8 *digest) noexcept {
  Sha256 hash(accelerated);
  hash.update(data, bytes);
  hash.finish(digest);
}

} // namespace batten::rt
