"""Parity cases of joined and shuffled tensors, running extremes, searches, covariances, windows and losses made of other
ops. generate.py calls it."""
import math

import torch
import torch.nn.functional as F
from generate import Family, REFERENCE, normal, values, whole


def named(function):
    return lambda x, dim: dict(zip(("values", "indices"), function(x, dim)))


REFERENCE |= {
    "hstack": lambda x, y: torch.hstack((x, y)), "vstack": lambda x, y: torch.vstack((x, y)),
    "pixel_shuffle": lambda x, upscale_factor: F.pixel_shuffle(x, upscale_factor),
    "pixel_unshuffle": lambda x, downscale_factor: F.pixel_unshuffle(x, downscale_factor),
    "nansum": lambda x, dim, keepdim: torch.nansum(x, dim, keepdim),
    "nanmean": lambda x, dim, keepdim: torch.nanmean(x, dim, keepdim),
    "cov": lambda x, aweights, fweights, correction: torch.cov(
        x, correction=correction, fweights=fweights, aweights=aweights),
    "corrcoef": lambda x: torch.corrcoef(x),
    "searchsorted": lambda x, v, right: torch.searchsorted(torch.sort(x.detach()).values, v.detach(), right=right),
    "bucketize": lambda x, v, right: torch.bucketize(v.detach(), torch.sort(x.detach()).values, right=right),
    "histc": lambda x, bins, min, max: torch.histc(x.detach(), bins, min, max),
    "unfold": lambda x, kernel, dilation, padding, stride: F.unfold(x, kernel, dilation, padding, stride),
    "fold": lambda x, size, kernel, dilation, padding, stride: F.fold(x, size, kernel, dilation, padding, stride),
    "logcumsumexp": torch.logcumsumexp, "cummax": named(torch.cummax), "cummin": named(torch.cummin),
    "triplet_margin_loss": lambda anchor, positive, negative, **o: F.triplet_margin_loss(anchor, positive, negative, **o),
    "cosine_embedding_loss": lambda x, y, target, **o: F.cosine_embedding_loss(x, y, target, **o),
    "margin_ranking_loss": lambda x, y, target, **o: F.margin_ranking_loss(x, y, target, **o),
    "hinge_embedding_loss": lambda x, target, **o: F.hinge_embedding_loss(x, target, **o),
    "gaussian_nll_loss": lambda x, target, var, **o: F.gaussian_nll_loss(x, target, var, **o),
    "poisson_nll_loss": lambda x, target, **o: F.poisson_nll_loss(x, target, **o),
    "grid_sample": lambda x, grid, mode, padding, corners: F.grid_sample(x, grid, mode, padding, corners),
    "affine_grid": lambda theta, size, corners: F.affine_grid(theta, size, corners),
    "embedding_bag": lambda weight, index, offsets, factors, **o: F.embedding_bag(
        index, weight, offsets, per_sample_weights=factors, **o),
}


def everyday():
    """Ops that training code reaches for."""
    f = Family("everyday")
    moved(f)
    reduced(f)
    searched(f)
    losses(f)
    log_sums(f)
    bags(f)
    grids(f)
    return f


def moved(f):
    for shapes in (((3, 4), (3, 2)), ((3,), (2,)), ((), ()), ((2, 1, 3), (2, 2, 3))):
        f.add("hstack", dict(zip("xy", (normal(*s) for s in shapes))))
    for shapes in (((3, 4), (2, 4)), ((3,), (3,)), ((), ()), ((3, 4), (4,))):
        f.add("vstack", dict(zip("xy", (normal(*s) for s in shapes))))
    for op in ("hstack", "vstack"):
        f.add(op, {"x": normal(3, 4), "y": normal(2, 5)}, error="sizes")
    f.add("pixel_shuffle", {"x": normal(2, 8, 3, 2)}, {"upscale_factor": 2})
    f.add("pixel_shuffle", {"x": normal(3, 9, 2, layout="transposed")}, {"upscale_factor": 1})
    f.add("pixel_shuffle", {"x": normal(2, 6, 3, 2)}, {"upscale_factor": 2}, error="channels")
    f.add("pixel_unshuffle", {"x": normal(2, 3, 6, 9)}, {"downscale_factor": 3})
    f.add("pixel_unshuffle", {"x": normal(3, 5, 4)}, {"downscale_factor": 2}, error="height")
    for kernel, dilation, padding, stride in (([2, 3], [1, 1], [0, 0], [1, 1]), ([2, 2], [2, 1], [1, 2], [2, 3])):
        attrs = {"kernel": kernel, "dilation": dilation, "padding": padding, "stride": stride}
        f.add("unfold", {"x": normal(2, 3, 6, 5)}, attrs, length=6)
        f.add("unfold", {"x": normal(3, 6, 5, layout="transposed")}, attrs, length=6)
        columns = F.unfold(torch.zeros(2, 3, 6, 5), kernel, dilation, padding, stride).shape
        f.add("fold", {"x": normal(*columns)}, {"size": [6, 5], **attrs}, length=6)
        f.add("fold", {"x": normal(*columns[1:])}, {"size": [6, 5], **attrs}, length=6)
    f.add("unfold", {"x": normal(1, 1, 2, 2)}, {"kernel": [3, 1], "dilation": [1, 1], "padding": [0, 0], "stride": [1, 1]},
          error="kernel")


def reduced(f):
    holes = ("values", torch.tensor([[1, math.nan, 2.5], [math.nan, math.nan, math.nan], [-1, 0, 4]]))
    for op in ("nansum", "nanmean"):
        for dim, keepdim in ((None, False), ([0], True), ([0, 1], False)):
            f.add(op, {"x": holes}, {"dim": dim, "keepdim": keepdim}, length=9)
        f.add(op, {"x": holes}, {"dim": [1], "keepdim": False}, length=3, special=True, gradient=False)
    for shape in ((3, 6), (7,), (1, 5)):
        for correction in (0, 1):
            f.add("cov", {"x": normal(*shape), "aweights": None, "fweights": None}, {"correction": correction}, length=49)
        # Of one variable the gradient is the rounding of 0.
        f.add("corrcoef", {"x": normal(*shape)}, length=49, gradient=shape[0] == 3)
    f.add("cov", {"x": normal(2, 4), "aweights": values(0.5, 1, 0.25, 2), "fweights": whole(1, 3, 0, 2)},
          {"correction": 1}, length=49)
    f.add("cov", {"x": normal(2, 4), "aweights": None, "fweights": whole(1, 3, 0, 2)}, {"correction": 1}, length=49)
    f.add("cov", {"x": normal(2, 4), "aweights": None, "fweights": whole(1, 3)}, {"correction": 1}, error="weights")
    for op in ("cummax", "cummin"):
        for dim in (0, 1, -1):
            f.add(op, {"x": normal(4, 5)}, {"dim": dim}, length=5)
        f.add(op, {"x": values(1, 3, 3, 2, 3, -1)}, {"dim": 0}, length=6)
        f.add(op, {"x": values(1, math.nan, 3, math.nan, -1)}, {"dim": 0}, special=True, gradient=False)
        f.add(op, {"x": whole(4, -2, 4, 7)}, {"dim": 0})
        f.add(op, {"x": normal()}, {"dim": 0})


def log_sums(f):
    for dim in (0, 1, -1):
        f.add("logcumsumexp", {"x": normal(4, 5)}, {"dim": dim}, length=5)
        # exp(x - y) has the rounding error of y, which is about 30.
        f.add("logcumsumexp", {"x": normal(4, 5, scale=30.0, layout="transposed")}, {"dim": dim}, length=5 * 30)
    f.add("logcumsumexp", {"x": normal()}, {"dim": 0})
    f.add("logcumsumexp", {"x": normal(3, 0)}, {"dim": 1})
    for special in ((-math.inf, -math.inf, 1, math.inf, -2), (1, math.nan, math.inf, 2), (1, -math.inf, 2)):
        f.add("logcumsumexp", {"x": values(*special)}, {"dim": 0}, length=5, special=True, gradient=False)
    f.add("logcumsumexp", {"x": normal(3, 4)}, {"dim": 2}, error="dim out of range")


def bags(f):
    matrix, line = ("values", torch.tensor([[0, 2, 2], [3, 1, 3]])), whole(0, 3, 3, 1, 2, 2, 0)
    for mode in ("sum", "mean", "max"):
        for padding in (None, 3, -4):
            attrs = {"mode": mode, "padding_idx": padding}
            f.add("embedding_bag", {"weight": normal(4, 3), "index": matrix, "offsets": None, "factors": None},
                  {**attrs, "include_last_offset": False}, length=3)
            for offsets in ((0, 0, 3, 7), (0, 2, 6)):
                f.add("embedding_bag", {"weight": normal(4, 3), "index": line, "offsets": whole(*offsets), "factors": None},
                      {**attrs, "include_last_offset": offsets[-1] == 7}, length=7)
    for padding in (None, 2):
        attrs = {"mode": "sum", "padding_idx": padding, "include_last_offset": False}
        f.add("embedding_bag", {"weight": normal(4, 3), "index": matrix, "offsets": None, "factors": normal(2, 3)}, attrs,
              length=3)
        f.add("embedding_bag", {"weight": normal(4, 3), "index": line, "offsets": whole(0, 2, 6), "factors": normal(7)},
              attrs, length=7)
    for wrong in (whole(1, 3), whole(0, 8), None):
        f.add("embedding_bag", {"weight": normal(4, 3), "index": line, "offsets": wrong, "factors": None},
              {"mode": "sum", "padding_idx": None, "include_last_offset": False}, error="offsets")


def grids(f):
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                attrs = {"mode": mode, "padding": padding, "corners": corners}
                for image, grid, layout in (((2, 3, 4, 5), (2, 3, 2, 2), "contiguous"), ((1, 2, 3, 1), (1, 4, 5, 2), "transposed")):
                    f.add("grid_sample", {"x": normal(*image), "grid": normal(*grid, scale=0.8, layout=layout)}, attrs,
                          length=12)
                f.add("grid_sample", {"x": normal(1, 1, 1, 1), "grid": normal(1, 2, 2, 2)}, attrs, length=4)
    f.add("grid_sample", {"x": normal(2, 3, 4, 5), "grid": normal(1, 3, 2, 2)},
          {"mode": "bilinear", "padding": "zeros", "corners": False}, error="batches")
    for corners in (False, True):
        for size in ([2, 3, 4, 5], [2, 1, 3 if corners else 1, 2]):
            f.add("affine_grid", {"theta": normal(2, 2, 3)}, {"size": size, "corners": corners}, length=20)
    f.add("affine_grid", {"theta": normal(2, 3, 4)}, {"size": [2, 1, 4, 5], "corners": False}, error="a matrix")


def searched(f):
    for right in (False, True):
        for x, v in ((normal(7), normal(3, 4)), (values(1, 3, 3, 5), values(3, 0, 6, math.nan)), (normal(5), normal()),
                     (whole(1, 3, 3, 5), whole(3, 0, 6))):
            f.add("searchsorted", {"x": x, "v": v}, {"right": right})
            f.add("bucketize", {"x": x, "v": v}, {"right": right})
        f.add("searchsorted", {"x": normal(2, 5), "v": normal(2, 3)}, {"right": right})
    f.add("searchsorted", {"x": normal(2, 5), "v": normal(3, 3)}, {"right": False}, error="leading sizes")
    f.add("bucketize", {"x": normal(2, 5), "v": normal(2, 3)}, {"right": False}, error="boundaries")
    for bins, low, high in ((4, 0, 3), (5, 0, 0), (3, -1, 1)):
        f.add("histc", {"x": values(1, 2, 1, -0.5, 3, 2.25)}, {"bins": bins, "min": low, "max": high})
    f.add("histc", {"x": values(2, 2, 2)}, {"bins": 4, "min": 0, "max": 0})
    f.add("histc", {"x": values(2, 1)}, {"bins": 0, "min": 0, "max": 0}, error="bins")


def losses(f):
    signs = values(1, -1, -1, 1)
    for reduction in ("none", "mean", "sum"):
        for swap in (False, True):
            f.add("triplet_margin_loss", {"anchor": normal(4, 3), "positive": normal(4, 3), "negative": normal(4, 3)},
                  {"margin": 1.5, "p": 2, "eps": 1e-3, "swap": swap, "reduction": reduction}, length=12)
        f.add("cosine_embedding_loss", {"x": normal(4, 3), "y": normal(4, 3), "target": signs},
              {"margin": 0.25, "reduction": reduction}, length=12)
        f.add("margin_ranking_loss", {"x": normal(4), "y": normal(4), "target": signs},
              {"margin": 0.25, "reduction": reduction}, length=4)
        f.add("hinge_embedding_loss", {"x": normal(4), "target": signs}, {"margin": 1, "reduction": reduction}, length=4)
        for full in (False, True):
            f.add("gaussian_nll_loss", {"x": normal(4, 3), "target": normal(4, 3), "var": values(0.5, 2, 1e-7, 1)},
                  {"full": full, "eps": 1e-3, "reduction": reduction}, length=12)
            for log_input in (False, True):
                # With a count of 0, PyTorch's gradient of Stirling's formula is NaN.
                f.add("poisson_nll_loss", {"x": values(0.5, 2, 1.25, 3), "target": values(0.5 if full else 0, 1, 2, 7)},
                      {"log_input": log_input, "full": full, "eps": 1e-3, "reduction": reduction}, length=4)
    f.add("triplet_margin_loss", {"anchor": normal(4, 3), "positive": normal(4, 3), "negative": normal(4, 2)},
          {"margin": 1.5, "p": 2, "eps": 1e-3, "swap": False, "reduction": "mean"}, error="lengths")
