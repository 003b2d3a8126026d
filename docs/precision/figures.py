#!/usr/bin/env python3
"""Writes the ten figures of the course, and that of binade ring-lens: docs/precision/figures.py [FOLDER].

Every number in them is computed here, by rounding.py. tests/system/precision_course_test.py compares the
committed figures with what this program writes, and the numbers in the pages with facts().
"""
import math
import pathlib
import sys

import rounding as r

WIDTH, HEIGHT = 390, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 30, 42
# Text of 11 px at a width of 390: a figure is never scaled below that. Colours are those of a picture
# that reads on white and on black; text and axes follow the reader's mode.
STYLE = """<style>
text{font:11px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:12px}
.a{stroke:#777;fill:none}.g{stroke:#8884;fill:none}.m{stroke:#b8860b;stroke-dasharray:4 3;fill:none}
.s0{stroke:#0b6fc2}.s1{stroke:#c2410c}.s2{stroke:#15803d}.s3{stroke:#8b3fc2}
.f0{fill:#0b6fc2}.f1{fill:#c2410c}.f2{fill:#15803d}.f3{fill:#8b3fc2}.l{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#ddd}.bg{fill:#16181c}.s0{stroke:#58a6ff}.s1{stroke:#ff9e64}
.s2{stroke:#5bd17f}.s3{stroke:#c89bff}.f0{fill:#58a6ff}.f1{fill:#ff9e64}.f2{fill:#5bd17f}.f3{fill:#c89bff}}
</style>"""


def text(x, y, words, anchor="start", more=""):
    words = str(words).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


class Axes:
    """A plot of lines over numbers, one per unit of the axes as given (take logarithms before)."""

    def __init__(self, title, x, y, x_label, x_ticks, y_ticks):
        self.x, self.y = x, y
        self.parts = [text(8, 17, title, more=' class="t"'),
                      text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle")]
        base = HEIGHT - BOTTOM
        for value, words in x_ticks:
            at = self.at_x(value)
            self.parts += [f'<path class="g" d="M{at:.1f} {TOP}V{base}"/>', text(min(at, WIDTH - 4), base + 14, words, "end" if at > WIDTH - 20 else "middle")]
        for value, words in y_ticks:
            at = self.at_y(value)
            self.parts += [f'<path class="g" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>',
                           text(LEFT - 4, at + 4, words, "end")]
        self.parts.append(f'<path class="a" d="M{LEFT} {TOP}V{base}H{WIDTH - RIGHT}"/>')
        self.names = 0

    def at_x(self, value):
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def at_y(self, value):
        return HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - BOTTOM - TOP)

    def line(self, points, style, name, at=None, step=False, dashed=False):
        d, last = "", None
        for x, y in points:
            here = (self.at_x(x), self.at_y(min(max(y, self.y[0]), self.y[1])))
            d += ("M" if not d else "L") + (f"{here[0]:.1f} {last[1]:.1f}L" if step and last else "")
            d += f"{here[0]:.1f} {here[1]:.1f}"
            last = here
        dash = ' stroke-dasharray="9 9"' if dashed else ""
        self.parts.append(f'<path class="l s{style}"{dash} d="{d}"/>')
        spot = at or (LEFT + 8, TOP + 12 + 14 * self.names)
        self.names += 1
        self.parts.append(text(*spot, name, more=f' class="f{style}"'))

    def mark(self, x, words):
        at = self.at_x(x)
        self.parts += [f'<path class="m" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>', text(at + 3, TOP + 10, words)]

    def svg(self):
        return svg(self.parts)


def svg(parts, height=HEIGHT):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img">\n{STYLE}\n<rect class="bg" width="{WIDTH}" height="{height}" '
            'fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def binades():
    """The values of E3M2 from 0 to 28: four per binade, and the binades double."""
    parts = [text(8, 17, "The values of E3M2: every binade holds four", more=' class="t"')]
    for value in r.E3M2.values(0, 28):
        x = 16 + 358 * float(value) / 28
        binade = max(math.frexp(float(value))[1] - 1, -2) if value else -3
        parts.append(f'<path class="l s{binade % 4}" d="M{x:.1f} 50V86"/>')
    for value in (0, 4, 8, 16, 28):
        parts.append(text(16 + 358 * value / 28, 102, value, "middle"))
    for low, row in ((2, 0), (4, 0), (8, 0), (16, 0)):
        x, end = (16 + 358 * v / 28 for v in (low, min(2 * low, 28)))
        parts += [f'<path class="a" d="M{x + 1:.1f} 44H{end - 1:.1f}"/>', text((x + end) / 2, 38, f"2^{int(math.log2(low))}", "middle")]
    parts.append(text(8, 126, "Between 8 and 16 the gap is 2, between 16 and 28 it is 4."))
    return svg(parts, 136)


def flush():
    """f16 near zero: what becomes of numbers between 0 and 3 * 2^-24."""
    plot = Axes("f16 near zero, in units of 2^-24", (0, 3), (0, 3), "number before rounding",
                [(i, i) for i in range(4)], [(i, i) for i in range(4)])
    steps = [(i / 64, float(r.F16.round(r.F(i, 64) / 2**24) * 2**24)) for i in range(193)]
    plot.line([(0, 0), (3, 3)], 3, "the number itself", (LEFT + 8, TOP + 28))
    plot.line(steps, 0, "stored in f16", (LEFT + 8, TOP + 42), step=True)
    plot.mark(0.5, "2^-25: the last that becomes 0")
    return plot.svg()


RANGES = [("f32", -149, -126, 128), ("bf16", -133, -126, 128), ("f16", -24, -14, 16), ("e5m2", -16, -14, 16),
          ("e4m3fn", -9, -6, 9), ("e2m1", -1, 0, 3)]


def ranges():
    """The binades of each format, subnormal ones lighter."""
    parts = [text(8, 17, "Where formats have values (powers of two)", more=' class="t"')]
    scale = lambda e: 60 + (e + 150) / 280 * 320  # noqa: E731
    for row, (name, low, normal, high) in enumerate(RANGES):
        y = 34 + 26 * row
        parts.append(text(8, y + 11, name))
        parts.append(f'<rect class="f0" opacity=".45" x="{scale(low):.1f}" y="{y}" width="{scale(normal) - scale(low):.1f}" height="14"/>')
        parts.append(f'<rect class="f0" x="{scale(normal):.1f}" y="{y}" width="{scale(high) - scale(normal):.1f}" height="14"/>')
        if high - low < 60:
            parts.append(text(scale(high) + 4, y + 11, f"{low} to {high}"))
    for e in (-126, -64, 0, 64, 127):
        parts.append(text(scale(e), 204, e, "middle"))
    parts.append(text(8, 222, "Light: subnormal, with fewer digits. Above the end: infinity or NaN."))
    return svg(parts, 232)


def swallowed():
    plot = Axes("f16 weights that do not feel an update", (10, 13), (0, 100), "|weight| / |update|",
                [(k, 2**k) for k in range(10, 14)], [(k, f"{k}%") for k in (0, 25, 50, 75, 100)])
    points = [(k / 16, 100 * r.swallowed_share(r.F(2 ** (k / 16)))) for k in range(160, 209)]
    plot.line(points, 0, "lost", (LEFT + 8, TOP + 30))
    plot.mark(11, "2048")
    plot.mark(12, "4096")
    return plot.svg()


def stalls():
    plot = Axes("Adding 4096 ones with f16 accumulators", (0, 4096), (0, 4200), "terms",
                [(k, k) for k in (0, 1024, 2048, 3072, 4096)], [(k, k) for k in (0, 1024, 2048, 3072, 4096)])
    for style, (order, name) in enumerate((("plain", "one after the other: stalls at 2048"),
                                           ("chunks", "in chunks of 64"), ("kahan", "Kahan"))):
        sums = r.running_sums([1] * 4096, order)
        plot.line([(i + 1, s) for i, s in enumerate(sums) if i % 32 == 31], style, name, dashed=order == "kahan")
    return plot.svg()


CENTRE, SPREAD = -22.0, 4.0  # of log2 |gradient| in the figure


def scales():
    plot = Axes("Share of gradients that f16 loses", (0, 24), (0, 50), "loss scale",
                [(k, f"2^{k}") for k in (0, 8, 16, 24)], [(k, f"{k}%") for k in (0, 10, 20, 30, 40, 50)])
    flushed = [(k, 100 * r.normal_below(-25 - k, CENTRE, SPREAD)) for k in range(25)]
    over = [(k, 100 * (1 - r.normal_below(16 - k, CENTRE, SPREAD))) for k in range(25)]
    plot.line(flushed, 0, "flushed to zero", (LEFT + 60, TOP + 40))
    plot.line([(x, max(y, 0)) for x, y in over], 1, "overflowing (one is enough)", (LEFT + 150, TOP + 120))
    return plot.svg()


DRIFT_STEPS, DRIFT = 400, r.F(1, 2**7) / 40


def drift():
    top = float(1 + DRIFT_STEPS * DRIFT)
    plot = Axes("A bf16 weight of 1, updated by 1/40 unit", (0, DRIFT_STEPS), (0.99, top + 0.05), "steps",
                [(k, k) for k in (0, 100, 200, 300, 400)], [(1, "1"), (1.04, "1.04"), (1.08, "1.08"), (1.12, "1.12")])
    for style, kind in enumerate(("exact", "nearest", "stochastic", "compensated")):
        path = r.walk(kind, DRIFT_STEPS, DRIFT)
        plot.line([(i + 1, v) for i, v in enumerate(path) if i % 4 == 3], (3, 1, 0, 2)[style], kind)
    return plot.svg()


NOISE = r.F(1, 2**7) * 3  # of the noisy walk


def harm():
    plot = Axes("The same drift under noise of 3 units", (0, DRIFT_STEPS), (0.6, 1.8), "steps",
                [(k, k) for k in (0, 100, 200, 300, 400)], [(v, v) for v in (0.8, 1.0, 1.2, 1.4, 1.6)])
    for style, kind in ((3, "exact"), (1, "nearest")):
        path = r.walk(kind, DRIFT_STEPS, DRIFT, noise=NOISE)
        plot.line([(i + 1, v) for i, v in enumerate(path) if i % 4 == 3], style, kind)
    return plot.svg()


def blocks():
    plot = Axes("Error of the values beside an outlier, E4M3", (0, 24), (0, 100), "outlier / other values",
                [(k, f"2^{k}") for k in (0, 6, 12, 18, 24)], [(k, f"{k}%") for k in (0, 25, 50, 75, 100)])
    tensor = [(k, 100 * r.block_error(2**k, False)) for k in range(25)]
    own = [(k, 100 * r.block_error(2**k, True)) for k in range(25)]
    plot.line(tensor, 1, "one scale per tensor", (LEFT + 20, TOP + 60))
    plot.line(own, 0, "one per block of 32", (LEFT + 20, HEIGHT - BOTTOM - 16))
    return plot.svg()


# log2 of the largest result for inputs below 2^3 in magnitude and 4096 terms.
GROWTH = [("add", 4.0), ("multiply", 6.0), ("matmul, 4096 terms", 18.0), ("sum, 4096 terms", 15.0),
          ("sum of squares", 18.0), ("exp", 8 * math.log2(math.e)), ("x cubed", 9.0)]


def ops():
    parts = [text(8, 17, "Largest result for inputs up to 8", more=' class="t"')]
    at = lambda e: 130 + e / 20 * 240  # noqa: E731
    for row, (name, exponent) in enumerate(GROWTH):
        y = 34 + 24 * row
        style = 1 if exponent >= 16 else 0
        parts.append(text(8, y + 11, name))
        parts.append(f'<rect class="f{style}" x="130" y="{y}" width="{at(exponent) - 130:.1f}" height="14"/>')
    parts.append(f'<path class="m" d="M{at(16):.1f} 28V204"/>')
    parts.append(text(at(16) - 4, 218, "2^16: f16 ends", "end"))
    return svg(parts, 226)


RING_RANKS = 64


def ring():
    plot = Axes(f"Error of an all-reduce over {RING_RANKS} ranks", (0, 6), (-28, -6), "ranks summed so far",
                [(k, 2**k) for k in range(7)], [(k, f"2^{k}") for k in (-24, -20, -16, -12, -8)])
    for style, form, more, name, at in ((1, r.BF16, {}, "bf16, ring", 46), (0, r.F16, {}, "f16, ring", 71),
                                        (2, r.F16, {"tree": True}, "f16, tree", 98),
                                        (3, r.F16, {"carried": True}, "f16, sent in f32, rounded at the end", 182)):
        points = [(math.log2(count), math.log2(max(error, 2**-40))) for count, error in r.ring_errors(form, RING_RANKS, **more)]
        plot.line(points, style, name, (LEFT + 66, at), dashed="tree" in more)
    return plot.svg()


FIGURES = {"01-binade": binades, "02-flush": flush, "03-range": ranges, "04-swallowed": swallowed,
           "05-stall": stalls, "06-scale": scales, "07-drift": drift, "08-harm": harm, "09-blocks": blocks,
           "10-ops": ops, "ring-lens": ring}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "figures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (folder / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
