// exp2 and log, and on exp2 the activations. Where a function of -|x| is enough, it is used: exp2 then never overflows.
#include "compiler/kernels/VectorMath.h"

using namespace batten;

/// c[0] + x * (c[1] + x * (..)), by fma.
static Lanes horner(EmitterContext &e, const Lanes &x, llvm::ArrayRef<float> c) {
  unsigned vectors = x.size();
  Lanes value = e.splat(c.back(), vectors);
  for (float coefficient : llvm::reverse(c.drop_back()))
    value = e.fma(value, x, e.splat(coefficient, vectors));
  return value;
}

/// Adding this to x in [-127, 127] rounds it to a whole number n and leaves n + 127 in the low bits.
static constexpr float kShifter = 0x1.8p23f + 127.0f;

/// 2^(n + f) for shifter = kShifter + n and |f| <= 1/2. The power of two is made from bits and multiplied, not added to
/// the exponent: so a NaN in f comes out as one. n = -127 makes the power 0, and with n = -126 what is below 2^-126 is
/// flushed, as everything denormal is in a run: so the result is 0 below -126.
static Lanes exp2Parts(EmitterContext &e, const Lanes &shifter, const Lanes &f) {
  static constexpr float kExp2[] = {1.0f,           0x1.62e43p-1f,   0x1.ebfbdcp-3f, 0x1.c6aee8p-5f,
                                    0x1.3b2d4ep-7f, 0x1.5f3e52p-10f, 0x1.41fbb2p-13f};
  return e.mul(horner(e, f, kExp2), e.asFloats(e.shiftLeft(e.asIntegers(shifter), 23)));
}

Lanes batten::emitExp2(EmitterContext &e, const Lanes &x) {
  unsigned vectors = x.size();
  Lanes magic = e.splat(kShifter, vectors);
  Lanes cut = e.max(e.splat(-127.0f, vectors), x); // in the order that lets NaN through
  Lanes shifter = e.add(cut, magic);
  return exp2Parts(e, shifter, e.sub(cut, e.sub(shifter, magic)));
}

/// x * log2(e) is carried as a sum of two floats, so that a large x costs no precision.
Lanes batten::emitExp(EmitterContext &e, const Lanes &x) {
  constexpr float kLog2EHigh = 0x1.715476p+0f, kLog2ELow = 0x1.4ae0cp-26f;
  constexpr float kLeast = -88.0f; // n is -127 there
  unsigned vectors = x.size();
  Lanes magic = e.splat(kShifter, vectors), high = e.splat(kLog2EHigh, vectors);
  Lanes cut = e.max(e.splat(kLeast, vectors), x);
  Lanes shifter = e.fma(cut, high, magic);
  Lanes f = e.fma(cut, high, e.negate(e.sub(shifter, magic)));
  return exp2Parts(e, shifter, e.fma(cut, e.splat(kLog2ELow, vectors), f));
}

/// x = 2^n * (1 + f) with 1 + f between the roots of 1/2 and 2: n ln 2 + f + f^2 p(f). Near 1, n is 0 and nothing cancels.
Lanes batten::emitLog(EmitterContext &e, const Lanes &x) {
  static constexpr float kLog[] = {-0x1.fffff8p-2f, 0x1.555550p-2f,  -0x1.000426p-2f, 0x1.99a3f2p-3f, -0x1.54276ep-3f,
                                   0x1.22719cp-3f,  -0x1.0f3766p-3f, 0x1.084866p-3f,  -0x1.383020p-4f};
  constexpr int32_t kRootOfHalf = 0x3F3504F3; // its bits
  constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;
  unsigned vectors = x.size();
  Lanes bits = e.asIntegers(x);
  Lanes exponent = e.shiftRight(e.addIntegers(bits, -kRootOfHalf), 23);
  Lanes n = e.toFloats(exponent);
  Lanes f = e.sub(e.asFloats(e.subIntegers(bits, e.shiftLeft(exponent, 23))), e.splat(1.0f, vectors));
  Lanes ofF = e.fma(e.mul(f, f), horner(e, f, kLog), f);
  Lanes result = e.fma(n, e.splat(kLn2High, vectors), e.fma(n, e.splat(kLn2Low, vectors), ofF));
  return e.select(e.isNan(x), x, result);
}

/// x / (1 + e^-v) from decay = e^-|v|, v having the sign of x: the side that is small is computed as such.
/// x is cut off where the result is 0 anyway: -inf * 0 would be NaN.
static Lanes timesSigmoid(EmitterContext &e, const Lanes &x, const Lanes &decay, float cutoff) {
  unsigned vectors = x.size();
  Lanes zero = e.splat(0.0f, vectors), one = e.splat(1.0f, vectors), limit = e.splat(cutoff, vectors);
  Lanes factor = e.div(e.select(e.less(x, zero), decay, one), e.add(one, decay));
  return e.mul(e.select(e.less(x, limit), limit, x), factor);
}

/// x * Phi(x) as max(x, 0) - t * Q(t), t = |x|: Q(t) = erfc(t / sqrt 2) / 2 is exp2 of a polynomial, whose error counts
/// little, since t * Q(t) <= 0.17. No division. Past t = 6 the polynomial falls faster than log2 of Q does.
static Lanes emitGeluErf(EmitterContext &e, const Lanes &x) {
  static constexpr float kTail[] = {-1.0f,
                                    -0x1.26aeeep+0f,
                                    -0x1.d63720p-2f,
                                    -0x1.ae5164p-5f,
                                    0x1.d03b96p-8f,
                                    -0x1.e2b0acp-14f,
                                    -0x1.d46a94p-13f,
                                    0x1.f75544p-15f,
                                    -0x1.1128f4p-17f,
                                    0x1.3fedb2p-21f,
                                    -0x1.3ff682p-26f};
  constexpr float kZeroFrom = 14.0f; // Q is 0 there; keeps infinity out
  unsigned vectors = x.size();
  Lanes zero = e.splat(0.0f, vectors), most = e.splat(kZeroFrom, vectors);
  Lanes magnitude = e.abs(x);
  Lanes t = e.select(e.less(magnitude, most), magnitude, most);
  Lanes tail = emitExp2(e, horner(e, t, kTail));
  Lanes positive = e.select(e.less(x, zero), zero, x);
  return e.fma(e.negate(t), tail, positive);
}

/// x / (1 + e^(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3).
static Lanes emitGeluTanh(EmitterContext &e, const Lanes &x) {
  constexpr double kLinear = 2.302208198144325; // 2 * sqrt(2 / pi) * log2(e)
  unsigned vectors = x.size();
  Lanes square = e.mul(x, x);
  Lanes slope = e.fma(square, e.splat(float(kLinear * 0.044715), vectors), e.splat(float(kLinear), vectors));
  Lanes v = e.mul(e.abs(x), slope);
  return timesSigmoid(e, x, emitExp2(e, e.negate(v)), -32.0f);
}

static Lanes emitSilu(EmitterContext &e, const Lanes &x) {
  return timesSigmoid(e, x, emitExp(e, e.negate(e.abs(x))), -128.0f);
}

/// 1 / (1 + e^-x): of e^-|x|, so that the small side is computed as such.
static Lanes emitSigmoid(EmitterContext &e, const Lanes &x) {
  unsigned vectors = x.size();
  Lanes zero = e.splat(0.0f, vectors), one = e.splat(1.0f, vectors);
  Lanes decay = emitExp(e, e.negate(e.abs(x)));
  return e.div(e.select(e.less(x, zero), decay, one), e.add(one, decay));
}

/// Odd polynomial up to 5/8, then (1 - q) / (1 + q) with q = e^(-2|x|), and the sign of x.
static Lanes emitTanh(EmitterContext &e, const Lanes &x) {
  static constexpr float kTanh[] = {-0x1.555532p-2f, 0x1.110726p-3f, -0x1.b83c5ap-5f, 0x1.5226980p-6f, -0x1.75e1c0p-8f};
  unsigned vectors = x.size();
  Lanes magnitude = e.abs(x), one = e.splat(1.0f, vectors), zero = e.splat(0.0f, vectors);
  Lanes square = e.mul(x, x);
  Lanes small = e.fma(e.mul(x, square), horner(e, square, kTanh), x);
  Lanes q = emitExp(e, e.mul(magnitude, e.splat(-2.0f, vectors)));
  Lanes large = e.div(e.sub(one, q), e.add(one, q));
  large = e.select(e.less(x, zero), e.negate(large), large);
  return e.select(e.less(magnitude, e.splat(0.625f, vectors)), small, large);
}

static Lanes emitOne(EmitterContext &e, ActivationKind kind, const Lanes &x) {
  switch (kind) {
  case ActivationKind::None:
    return x;
  case ActivationKind::GeluErf:
    return emitGeluErf(e, x);
  case ActivationKind::GeluTanh:
    return emitGeluTanh(e, x);
  case ActivationKind::Relu:
    return e.select(e.less(x, e.splat(0.0f, x.size())), e.splat(0.0f, x.size()), x);
  case ActivationKind::Silu:
    return emitSilu(e, x);
  case ActivationKind::Tanh:
    return emitTanh(e, x);
  case ActivationKind::Sigmoid:
    return emitSigmoid(e, x);
  }
  return x;
}

/// Vectors that go through an activation side by side. Its chain of operations is long: one vector at a time fills a CPU's
/// window with a single chain or two, and more than four don't fit 16 registers.
static constexpr size_t kSideBySide = 4;

Lanes batten::emitActivation(EmitterContext &e, ActivationKind kind, const Lanes &x) {
  Lanes result;
  for (llvm::ArrayRef<mlir::Value> rest = x; !rest.empty();) {
    size_t count = std::min(kSideBySide, rest.size());
    llvm::append_range(result, emitOne(e, kind, Lanes(rest.take_front(count))));
    rest = rest.drop_front(count);
  }
  return result;
}
