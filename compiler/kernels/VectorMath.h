// Elementwise functions as polynomials with explicit fma, emitted inline: no libm, no reciprocal estimates, the same bits
// on every target. Each is defined on all floats: NaN gives NaN, infinities give the limit. The table of error bounds is
// in README.md; coefficients come from tools/scripts/vector_math_coefficients.py.
#ifndef BATTEN_COMPILER_KERNELS_VECTORMATH_H
#define BATTEN_COMPILER_KERNELS_VECTORMATH_H

#include "compiler/kernels/EmitterContext.h"
#include "compiler/kernels/KernelKey.h"

namespace batten {

/// 2^x for x <= 0 (and up to 127, where nobody asks for it); 0 below -126, so that no result is denormal.
Lanes emitExp2(EmitterContext &e, const Lanes &x);

/// e^x for x <= 0; 0 below -87.3, exactly 1 at 0.
Lanes emitExp(EmitterContext &e, const Lanes &x);

/// ln x for x > 0 that is neither denormal nor infinite, where nobody asks for it; NaN gives NaN.
Lanes emitLog(EmitterContext &e, const Lanes &x);

/// The activation of that kind; the input itself for none.
Lanes emitActivation(EmitterContext &e, ActivationKind kind, const Lanes &x);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_VECTORMATH_H
