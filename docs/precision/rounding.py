"""Rounding to small binary formats, in exact arithmetic: what the figures and exercises of the course
compute with. It shares no code with Binade, so that the two check each other."""
import fractions
import math
import random

F = fractions.Fraction


class Format:
    """(1 + m / 2^M) 2^(e - bias), subnormals below 2^(1 - bias), overflow above `largest`."""

    def __init__(self, exponent_bits, mantissa_bits, largest=None):
        self.mantissa_bits = mantissa_bits
        self.bias = 2**(exponent_bits - 1) - 1
        self.min_exponent = 1 - self.bias
        ieee = F(2**(mantissa_bits + 1) - 1, 2**mantissa_bits) * 2**self.bias
        self.largest = F(largest) if largest else ieee

    def unit(self, x):
        """The gap between the values around x."""
        exponent = math.frexp(float(x))[1] - 1 if x else self.min_exponent
        return F(2) ** (max(exponent, self.min_exponent) - self.mantissa_bits)

    def round(self, x, rng=None):
        """To nearest even, or with a generator stochastically. Overflow gives the infinity."""
        x = F(x)
        unit = self.unit(abs(x))
        whole, rest = divmod(abs(x), unit)
        rest /= unit
        up = rng.random() < rest if rng else rest > F(1, 2) or (rest == F(1, 2) and whole % 2 == 1)
        y = (whole + up) * unit
        return math.copysign(math.inf, x) if y > self.largest else (y if x >= 0 else -y)

    def values(self, low, high):
        """The values from low to high, of which none is negative."""
        x = self.round(low)
        while x <= high:
            if x >= low:
                yield x
            x += self.unit(x)


F16 = Format(5, 10)
BF16 = Format(8, 7)
F32 = Format(8, 23)
E4M3 = Format(4, 3, 448)
E5M2 = Format(5, 2)
E3M2 = Format(3, 2, 28)
E2M1 = Format(2, 1, 6)


def swallowed_share(ratio):
    """Of all f16 significands, moved up and down by |w| / ratio: the share that stays as it was."""
    hits = 0
    for significand in range(1024, 2048):
        weight = F(significand, 1024)
        update = weight / F(ratio)
        hits += (F16.round(weight + update) == weight) + (F16.round(weight - update) == weight)
    return hits / 2048


def ring_errors(form, ranks, carried=False, tree=False, elements=256, seed=1):
    """The relative errors of the partial sums of an all-reduce of normal numbers, which each rank first
    rounds to the format: [(ranks summed, error)] after each hop of a ring, or each level of a tree. Carried
    in f32, a partial sum is rounded to the format only at the end."""
    rng = random.Random(seed)
    given = [[form.round(rng.gauss(0, 1)) for _ in range(elements)] for _ in range(ranks)]
    sent = F32 if carried else form
    errors = []

    def note(count, sums, exact):
        squares = sum(float(s - e) ** 2 for s, e in zip(sums, exact))
        errors.append((count, math.sqrt(squares / sum(float(e) ** 2 for e in exact))))

    if tree:
        sums, exact, count = given, given, 1
        while len(sums) > 1:
            sums = [[sent.round(a + b) for a, b in zip(*pair)] for pair in zip(sums[::2], sums[1::2])]
            exact = [[a + b for a, b in zip(*pair)] for pair in zip(exact[::2], exact[1::2])]
            count *= 2
            note(count, sums[0], exact[0])
        return errors
    sums, exact = given[0], given[0]
    for hop, rank in enumerate(given[1:]):
        last = hop == ranks - 2
        sums = [(form if last else sent).round(s + x) for s, x in zip(sums, rank)]
        exact = [e + x for e, x in zip(exact, rank)]
        note(hop + 2, sums, exact)
    return errors


def running_sums(terms, order, form=F16, chunk=64):
    """The partial sums of f16 accumulators, one per term, for an order of the sum."""
    total, lost, sums, part = F(0), F(0), [], F(0)
    for i, term in enumerate(terms):
        if order == "kahan":
            y = form.round(F(term) - lost)
            t = form.round(total + y)
            lost = form.round(form.round(t - total) - y)
            total = t
            sums.append(float(total))
        elif order == "chunks":
            part = form.round(part + F(term))
            sums.append(float(form.round(total + part)))
            if (i + 1) % chunk == 0:
                total, part = form.round(total + part), F(0)
        else:
            total = form.round(total + F(term))
            sums.append(float(total))
    return sums


def walk(kind, steps, update, seed=1, noise=0):
    """A bf16 weight of 1 under `steps` updates, each `update` plus noise between -noise and noise."""
    rng = random.Random(seed)
    signs = random.Random(seed + 1)
    weight, rest, exact, path = F(1), F(0), F(1), []
    for _ in range(steps):
        change = F(update) + F(noise) * F(signs.uniform(-1, 1))
        exact += change
        if kind == "stochastic":
            weight = BF16.round(weight + change, rng)
        elif kind == "compensated":
            wanted = weight + rest + change
            weight = BF16.round(wanted)
            rest = BF16.round(wanted - weight)
        elif kind == "nearest":
            weight = BF16.round(weight + change)
        else:
            weight = exact
        path.append(float(weight))
    return path


def normal_below(limit, centre, spread):
    """The share of numbers with normal log2 magnitude that lie below 2^limit."""
    return 0.5 * (1 + math.erf((limit - centre) / (spread * math.sqrt(2))))


def block_error(outlier, blocks):
    """32 numbers of which one is `outlier` times larger, in E4M3 with a scale for all of them, and 32
    others beside them: the relative error of the others, with one scale, or with one per block."""
    rng = random.Random(5)
    first = [F(rng.gauss(0, 1)) for _ in range(32)]
    first[7] *= F(outlier)
    others = [F(rng.gauss(0, 1)) for _ in range(224)]
    largest = max(abs(x) for x in (others if blocks else first + others))
    if blocks:
        scale = F(2) ** (math.frexp(float(largest))[1] - 1 - 8)
    else:
        scale = F(float(largest)) / 448
    squares = sum(float(x) ** 2 for x in others)
    errors = 0.0
    for x in others:
        clipped = max(min(x / scale, F(448)), F(-448))
        errors += float(E4M3.round(clipped) * scale - x) ** 2
    return math.sqrt(errors / squares)


def stall(form, term):
    """Where a sum of equal terms stops to change."""
    total = F(0)
    while True:
        following = form.round(total + F(term))
        if following == total:
            return float(total)
        total = following
