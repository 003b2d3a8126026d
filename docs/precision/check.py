#!/usr/bin/env python3
"""Checks an answer to an exercise of the course: docs/precision/check.py 4.2 46.5. Prints whether it is
right, and for a wrong one a hint. Exit status: 0 right, 1 wrong, 2 no such exercise or no number.
"""
import math
import sys

import rounding as r

# number: (the answer, relative tolerance, a hint)
EXERCISES = {
    "1.1": (lambda: r.F16.unit(r.F(3000)), 0, "3000 lies between 2^11 and 2^12; f16 has 10 bits of mantissa."),
    "1.2": (lambda: len(list(r.E3M2.values(8, 15.99))), 0, "A binade holds 2^M values."),
    "1.3": (lambda: r.F(1, 2**8), 0, "Half a unit is 2^-(M+1) of the lower end of a binade."),
    "2.1": (lambda: r.F16.round(r.F(2049)), 0, "2049 is in the middle; the even neighbour wins."),
    "2.2": (lambda: r.F16.round(r.F(3, 2**26)) * 2**24, 0, "3 * 2^-26 is 0.75 of the smallest value."),
    "2.3": (lambda: r.F(1, 2**17), 0, "Half of the smallest value of e5m2, which is 2^-16."),
    "3.1": (lambda: r.F(65504), 0, "(2 - 2^-10) 2^15."),
    "3.2": (lambda: r.F(465), 0, "464 is a tie between 448 and 480, and 480 has no code."),
    "3.3": (lambda: r.F(40), 0, "From 2^-24 to 2^15 both ends count."),
    "4.1": (lambda: r.F(2048), 0, "1 is half a unit of which binade?"),
    "4.2": (lambda: 100 * r.swallowed_share(3000), 0.02, "Count significands: docs/precision/lab.py swallowed 3000."),
    "4.3": (lambda: r.F(256), 0, "The same with 7 bits of mantissa."),
    "5.1": (lambda: r.stall(r.F16, 8), 0, "8 is half a unit from 16384 on, and a tie goes to the even side."),
    "5.2": (lambda: r.stall(r.BF16, 1), 0, "2^8 is the first number whose unit is 2."),
    "5.3": (lambda: 64, 0, "Chunks must stay below 2048 terms, and so must their number."),
    "6.1": (lambda: 100 * r.normal_below(-25, -22, 4), 0.02, "2^-25 is 0.75 deviations below the centre."),
    "6.2": (lambda: r.F(1024), 0, "0.1% lie below 3.09 deviations: 2^-34.4."),
    "6.3": (lambda: r.F(2**13), 0, "2^13 * 4 = 2^15 is held, 2^14 * 4 = 2^16 is not."),
    "7.1": (lambda: r.F(1), 0, "1/40 unit is below half a unit."),
    "7.2": (lambda: r.F(1, 40), 0, "The probability is the distance in units."),
    "7.3": (lambda: r.walk("compensated", 400, r.F(1, 2**7) / 40)[-1], 0.004, "400 times 1/40 unit of 2^-7."),
    "8.1": (lambda: 100, 0, "1e-4 is 1/78 of a unit of bf16 at 1."),
    "8.2": (lambda: 1, 0, "Steps of Adam have the size of the rate; half a unit at 0.25 is 2^-10."),
    "8.3": (lambda: r.F(1, 2**8), 0, "Half a unit: below it every update is lost."),
    "9.1": (lambda: r.F(448), 0, "The largest value of e4m3fn."),
    "9.2": (lambda: r.F(1, 2**7), 0, "floor(log2 3) - 8."),
    "9.3": (lambda: r.F(17, 4), 0, "32 elements of 4 bits and one scale of 8 bits."),
    "10.1": (lambda: 11, 0, "exp(11) is 59874, exp(12) is 162755."),
    "10.2": (lambda: r.F(1023), 0, "8^2 = 64, and 65504 / 64 = 1023.5."),
    "10.3": (lambda: 3, 0, "norm, loss and reduction return to f32 inside; contractions do not."),
}


def right(number, given):
    wanted, tolerance, _ = EXERCISES[number]
    value = float(wanted())
    return math.isclose(given, value, rel_tol=tolerance, abs_tol=0.0) if tolerance else given == value


def parse(words):
    """A number, also as 2^-25 or 3/4."""
    if "^" in words:
        base, power = words.split("^")
        return float(base) ** float(power)
    top, _, bottom = words.partition("/")
    return float(top) / float(bottom or 1)


def main(words):
    if len(words) != 2 or words[0] not in EXERCISES:
        print("check.py EXERCISE ANSWER; exercises: " + ", ".join(EXERCISES), file=sys.stderr)
        return 2
    try:
        given = parse(words[1].rstrip("%"))
    except (ValueError, ZeroDivisionError, OverflowError):
        print(f"got '{words[1]}', expected a number, also as 2^-25 or 3/4", file=sys.stderr)
        return 2
    if right(words[0], given):
        print(f"{words[0]}: right")
        return 0
    print(f"{words[0]}: not yet. {EXERCISES[words[0]][2]}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
