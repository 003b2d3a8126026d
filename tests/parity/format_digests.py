#!/usr/bin/env python3
"""Digests of what PyPI's ml_dtypes and gfloat make of many numbers: the expected values of
tests/core/precision/number_formats_test.cpp. Only this script needs them:

    pip install ml_dtypes gfloat numpy
    tests/parity/format_digests.py > tests/core/precision/format_digests.h

Inputs of a format, in this order: all 65,536 bit patterns of f16, all of bf16, then of each two
adjacent values of the format the lower one, the midpoint and the midpoint's f32 neighbours, first
those above zero, then their negatives (for f32 and tf32, whose values are too many, of every 4,099th
pair). A digest is the 64-bit FNV-1a hash of the results as little-endian f32; every NaN counts as
0x7fc00000. Where a format has no NaN, inputs that are NaN are left out.
  nearest:    ml_dtypes (gfloat for tf32, which ml_dtypes has not); overflow as in the format
  saturated:  the same of the inputs clipped to the largest value
  toward_zero, stochastic: gfloat; the random bits of input i are i * 2654435761 mod 2^32
Of e8m0 gfloat rounds only numbers from 2^-127 on: those modes leave out smaller inputs. Between
2^-127 and 1.5 * 2^-127, subnormal in f32, ml_dtypes 0.6.0 rounds to 2^-126, which is not the nearest
value: these 32 inputs are left out.
"""
import sys

import gfloat
import ml_dtypes
import numpy as np

# name: (ml_dtypes, exponent bits, mantissa bits, bias, infinities, high NaNs, -0, signed)
FORMATS = {
    "e4m3": ("float8_e4m3", 4, 3, 7, True, 7, True, True),
    "e4m3fn": ("float8_e4m3fn", 4, 3, 7, False, 1, True, True),
    "e4m3fnuz": ("float8_e4m3fnuz", 4, 3, 8, False, 0, False, True),
    "e4m3b11fnuz": ("float8_e4m3b11fnuz", 4, 3, 11, False, 0, False, True),
    "e5m2": ("float8_e5m2", 5, 2, 15, True, 3, True, True),
    "e5m2fnuz": ("float8_e5m2fnuz", 5, 2, 16, False, 0, False, True),
    "e3m4": ("float8_e3m4", 3, 4, 3, True, 15, True, True),
    "e3m2": ("float6_e3m2fn", 3, 2, 3, False, 0, True, True),
    "e2m3": ("float6_e2m3fn", 2, 3, 1, False, 0, True, True),
    "e2m1": ("float4_e2m1fn", 2, 1, 1, False, 0, True, True),
    "e8m0": ("float8_e8m0fnu", 8, 0, 127, False, 1, False, False),
    "f16": ("float16", 5, 10, 15, True, 1023, True, True),
    "bf16": ("bfloat16", 8, 7, 127, True, 127, True, True),
    "tf32": (None, 8, 10, 127, True, 1023, True, True),
}


def info(name):
    _, e, m, bias, inf, nans, nz, signed = FORMATS[name]
    return gfloat.FormatInfo(
        name=name, k=e + m + signed, precision=m + 1, bias=bias, has_nz=nz,
        domain=gfloat.Domain.Extended if inf else gfloat.Domain.Finite, num_high_nans=nans,
        has_subnormals=signed, is_signed=signed, is_twos_complement=False)


def has_nan(name):
    return FORMATS[name][5] > 0 or not FORMATS[name][6]


def values(name):
    """The finite values from the smallest magnitude on, by formula."""
    _, e, m, bias, inf, nans, nz, signed = FORMATS[name]
    top = 2**(e + m) - nans - inf
    codes = np.arange(top, dtype=np.int64)
    field, part = codes >> m, (codes & (2**m - 1)) / 2.0**m
    normal = np.ldexp(1 + part, (field - bias).astype(int))
    small = np.ldexp(part, 1 - bias)
    return np.where((field == 0) & signed, small, normal)


def inputs(name):
    bits = np.arange(65536, dtype=np.uint32)
    f16 = bits.astype(np.uint16).view(np.float16).astype(np.float32)
    bf16 = (bits << 16).view(np.float32)
    table = values(name)
    pairs = np.arange(0, len(table) - 1, 4099 if name == "tf32" else 1)
    low = table[pairs].astype(np.float32)
    middle = ((table[pairs] + table[pairs + 1]) / 2).astype(np.float32)
    near = np.stack([low, middle, np.nextafter(middle, np.float32(0)),
                     np.nextafter(middle, np.float32(np.inf))], 1).ravel()
    x = np.concatenate([f16, bf16, near, -near])
    if name == "e8m0":
        x = x[~((x > 2.0**-127) & (x < 1.5 * 2.0**-127))]
    return x if has_nan(name) else x[~np.isnan(x)]


def digest(result):
    result = np.asarray(result).astype(np.float32)
    bits = result.view(np.uint32).copy()
    bits[np.isnan(result)] = 0x7FC00000
    h = 0xCBF29CE484222325
    for byte in bits.astype("<u4").tobytes():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def nearest(name, x):
    ml = FORMATS[name][0]
    with np.errstate(all="ignore"):
        if ml is None:
            return gfloat.round_ndarray(info(name), x.astype(np.float64))
        kind = np.float16 if ml == "float16" else getattr(ml_dtypes, ml)
        return x.astype(kind).astype(np.float32)


def for_gfloat(name, x):
    return x[(x >= 2.0**-127)] if name == "e8m0" else x


def by_gfloat(name, x, mode, **more):
    x = for_gfloat(name, x)
    with np.errstate(all="ignore"):
        return gfloat.round_ndarray(info(name), x.astype(np.float64), mode, not has_nan(name), **more)


def main():
    rows = []
    for name in FORMATS:
        x = inputs(name)
        largest = np.float32(values(name)[-1])
        kept = for_gfloat(name, x)
        bits = (np.arange(len(kept), dtype=np.uint64) * 2654435761) % 2**32
        bits = bits.astype(np.int64)
        rows.append((name, len(x), digest(nearest(name, x)),
                     digest(nearest(name, np.clip(x, -largest, largest))),
                     digest(by_gfloat(name, x, gfloat.RoundMode.TowardZero)),
                     digest(by_gfloat(name, x, gfloat.RoundMode.Stochastic, srbits=bits,
                                      srnumbits=32))))
    print("// Written by tests/parity/format_digests.py from ml_dtypes "
          f"{ml_dtypes.__version__} and gfloat 0.5.2.")
    print("#pragma once\n#include <cstdint>\n\nnamespace binade {\n")
    print("struct FormatDigests {\n  const char* format;\n  int64_t inputs;\n"
          "  uint64_t nearest, saturated, toward_zero, stochastic;\n};\n")
    print("inline constexpr FormatDigests kFormatDigests[] = {")
    for name, count, *digests in rows:
        print(f'    {{"{name}", {count}, ' + ", ".join(f"0x{d:016x}u" for d in digests) + "},")
    print("};\n\n}  // namespace binade")


if __name__ == "__main__":
    sys.exit(main())
