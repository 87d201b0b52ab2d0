#!/usr/bin/env python3
"""Derives the polynomial coefficients of compiler/kernels/VectorMath.cpp: weighted minimax fits (Remez exchange) in high
precision, rounded to f32. Prints them lowest degree first, with the error of the unrounded fit. Needs mpmath.
Not part of the build."""
from mpmath import cos, erfc, lu_solve, log, log1p, matrix, mp, mpf, nstr, pi, sqrt, tanh
import struct

mp.dps = 60


def remez(target, weight, low, high, count, iterations=40, grid=3000):
    """Coefficients c that make the largest |weight(x) * (target(x) - sum c_i x^i)| on [low, high] smallest."""
    middle, half = (mpf(low) + mpf(high)) / 2, (mpf(high) - mpf(low)) / 2
    points = [middle - half * cos(pi * (mpf(i) + mpf(1) / 2) / (count + 1)) for i in range(count + 1)]
    samples = [middle - half * cos(pi * mpf(i) / grid) for i in range(grid + 1)]
    wanted = [target(x) for x in samples]
    weights = [weight(x) for x in samples]
    for _ in range(iterations):
        a, y = matrix(count + 1, count + 1), matrix(count + 1, 1)
        for i, x in enumerate(points):
            for j in range(count):
                a[i, j] = x**j
            a[i, count] = (-1) ** i / weight(x)
            y[i] = target(x)
        solution = lu_solve(a, y)
        c = [solution[j] for j in range(count)]
        errors = []
        for x, t, w in zip(samples, wanted, weights):
            value = mpf(0)
            for coefficient in reversed(c):
                value = value * x + coefficient
            errors.append(w * (t - value))
        extrema = []
        for i, e in enumerate(errors):
            if extrema and (e > 0) == (errors[extrema[-1]] > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > count + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        worst = max(abs(e) for e in errors)
        if len(extrema) < count + 1:
            break
        points = [samples[i] for i in extrema]
        if worst < abs(solution[count]) * mpf("1.001"):
            break
    return c, worst


def show(name, c, worst):
    print(f"{name}: largest weighted error {nstr(worst, 3)}")
    for value in c:
        rounded = struct.unpack("f", struct.pack("f", float(value)))[0]
        print(f"  {rounded!r:26} {rounded.hex()}")


ln2, tiny = log(mpf(2)), mpf(10) ** -30

# exp2: 2^f = 1 + f * p(f), relative error, |f| <= 1/2
show("exp2", *remez(lambda f: (mpf(2) ** f - 1) / f if f else ln2, lambda f: abs(f) / mpf(2) ** f + tiny, -0.5, 0.5, 6))

# gelu: log2(erfc(t / sqrt 2) / 2) = -1 + t * p(t), error relative to max(1, |.|), which f32 can't hold better
tail = lambda t: log(erfc(t / sqrt(mpf(2))) / 2) / ln2
show("gelu tail", *remez(lambda t: (tail(t) + 1) / t if t else -sqrt(2 / pi) / ln2,
                         lambda t: t / max(mpf(1), abs(tail(t))) + tiny, 0, 6, 10))

# tanh: tanh(x) = x + x * u * p(u), u = x^2, relative error, |x| <= 5/8
show("tanh", *remez(lambda u: (tanh(sqrt(u)) / sqrt(u) - 1) / u if u > mpf(10) ** -20 else mpf(-1) / 3,
                    lambda u: u / (tanh(sqrt(u)) / sqrt(u) if u else 1) + tiny, 0, 25.0 / 64, 5))

# log: log(1 + f) = f + f^2 * p(f), relative error, 1 + f between the roots of 1/2 and 2
show("log", *remez(lambda f: (log1p(f) - f) / (f * f) if abs(f) > mpf(10) ** -15 else mpf(-1) / 2,
                   lambda f: (f * f / abs(log1p(f)) if f else 0) + tiny, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 9))
