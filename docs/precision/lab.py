#!/usr/bin/env python3
"""Small experiments of the course, in exact arithmetic:

  lab.py swallowed RATIO            share of f16 weights that an update of |w| / RATIO leaves as they are
  lab.py sum FORMAT TERM COUNT      a sum of equal terms: f16, bf16, e5m2 or e4m3fn accumulators
  lab.py walk KIND STEPS            a bf16 weight of 1 under updates of 1/40 unit: exact, nearest,
                                    stochastic or compensated
  lab.py flushed SCALE              share of gradients around 2^-22 (deviation 2^4) that f16 flushes
"""
import sys

import rounding as r

FORMATS = {"f16": r.F16, "bf16": r.BF16, "e5m2": r.E5M2, "e4m3fn": r.E4M3}


def main(words):
    import math
    try:
        if words[0] == "swallowed":
            print(f"{100 * r.swallowed_share(r.F(words[1])):.2f}% of the weights do not change")
        elif words[0] == "sum":
            form, term = FORMATS[words[1]], r.F(words[2])
            total = r.F(0)
            for _ in range(int(words[3])):
                total = form.round(total + term)
            print(f"sum {float(total):g}, exact {float(term) * int(words[3]):g}")
        elif words[0] == "walk":
            print(f"{r.walk(words[1], int(words[2]), r.F(1, 2**7) / 40)[-1]:.6g}")
        elif words[0] == "flushed":
            print(f"{100 * r.normal_below(-25 - math.log2(float(words[1])), -22, 4):.3g}%")
        else:
            raise KeyError(words[0])
    except (IndexError, KeyError, ValueError):
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
