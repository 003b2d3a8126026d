"""Cases of bench/*_cases.cpp as calls of PyTorch: make_case gives a function and its arguments."""
import torch
import torch.nn.functional as F

aten = torch.ops.aten
VOCABULARY = 50257
SIDE = 16  # image edge of cases that say "16x16"


class Maker:
    """Draws the operands of one case."""

    def __init__(self, rows, cols, dtype, device):
        self.rows, self.cols, self.dtype, self.device = rows, cols, dtype, device

    def draw(self, *sizes, dtype=None):
        return torch.randn(sizes or (self.rows, self.cols), device=self.device, dtype=torch.float32).to(dtype or self.dtype)

    def image(self, *sizes):
        return self.draw(*sizes).to(memory_format=torch.channels_last)

    def index(self, high, *sizes):
        return torch.randint(high, sizes, device=self.device)


def forward(function):
    return lambda m: (function, (m.draw(),))


def backward(function):
    return lambda m: (function, (m.draw(), m.draw()))


def linear(inputs, outputs):
    def make(m):
        return torch.mm, (m.draw(m.rows, inputs * m.cols), m.draw(inputs * m.cols, outputs * m.cols))
    return make


def attention(is_backward):
    def make(m):
        q, k, v, dout = (m.draw(1, max(1, m.cols // 64), m.rows, 64) for _ in range(4))
        if not is_backward:
            return (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), (q, k, v)
        with torch.enable_grad():
            leaves = [x.requires_grad_() for x in (q, k, v)]
            out = F.scaled_dot_product_attention(*leaves, is_causal=True)
        return (lambda: torch.autograd.grad(out, leaves, dout, retain_graph=True)), ()
    return make


def conv(kind, which):
    """kind: (channels of x, of y, edge, kernel, stride) of rows and cols."""
    def make(m):
        inputs, outputs, edge, kernel, stride = kind(m.cols)
        padding = kernel // 2
        x, w = m.image(m.rows, inputs, edge, edge), m.image(outputs, inputs, kernel, kernel)
        if which == "forward":
            return (lambda x, w: F.conv2d(x, w, None, stride, padding)), (x, w)
        after = (edge + 2 * padding - kernel) // stride + 1
        dy = m.image(m.rows, outputs, after, after)
        mask = [which == "data", which == "weight", False]
        return (lambda dy, x, w: aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask)), (dy, x, w)
    return make


def edge_of(cols):
    return min(max(3584 // cols, 7), 56)


CONVS = {"conv2d": lambda c: (c, c, SIDE, 3, 1), "conv_3x3": lambda c: (c, c, edge_of(c), 3, 1),
         "conv_expand": lambda c: (c, 4 * c, edge_of(c), 1, 1),
         "conv_reduce": lambda c: (4 * c, c, edge_of(c), 1, 1), "conv_stem": lambda c: (3, c, 224, 7, 2)}


def cross_entropy(m):
    z, scale = m.draw(), m.draw(m.rows, dtype=torch.float32)
    target = m.index(m.cols, m.rows)

    def both(z, target, scale):
        log = torch.log_softmax(z, 1, dtype=torch.float32)
        loss = -log.gather(1, target[:, None])[:, 0]
        hot = torch.zeros_like(log).scatter_(1, target[:, None], 1)
        return loss, ((log.exp() - hot) * scale[:, None]).to(z.dtype)
    return both, (z, target, scale)


def adam(m):
    w, g, a, b = (m.draw(dtype=torch.float32) for _ in range(4))
    b = b.abs()

    def step(w, g, a, b):
        a.mul_(0.9).add_(g, alpha=0.1)
        b.mul_(0.999).addcmul_(g, g, value=0.001)
        w.addcdiv_(a, b.sqrt().add_(1e-8), value=-1e-3)
        return w
    count = torch.ones((), device=m.device)
    if m.device.type == "cuda":
        return (lambda: torch._fused_adam_([w], [g], [a], [b], [], [count], lr=1e-3, beta1=0.9, beta2=0.999,
                                           weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)), ()
    return step, (w, g, a, b)


def layer_norm(is_backward):
    def make(m):
        x, dy, w, b = m.draw(), m.draw(), m.draw(m.cols), m.draw(m.cols)
        if not is_backward:
            return (lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b)), (x, w, b)
        _, mean, rstd = torch.native_layer_norm(x, (m.cols,), w, b, 1e-5)
        return (lambda dy, x, mean, rstd, w, b: aten.native_layer_norm_backward(
            dy, x, [x.shape[1]], mean, rstd, w, b, [True] * 3)), (dy, x, mean, rstd, w, b)
    return make


def rms_norm(is_backward):
    def make(m):
        x, w, dy = m.draw(), m.draw(m.cols), m.draw()
        if not is_backward:
            return (lambda x, w: F.rms_norm(x, (x.shape[1],), w, 1e-5)), (x, w)
        with torch.enable_grad():
            leaves = [x.requires_grad_(), w.requires_grad_()]
            y = F.rms_norm(leaves[0], (m.cols,), leaves[1], 1e-5)
        return (lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)), ()
    return make


def batch_norm(is_backward):
    def make(m):
        x, dy = m.draw(), m.draw()
        w, b, mean, var = (m.draw(m.cols, dtype=torch.float32) for _ in range(4))
        if not is_backward:
            return (lambda x, w, b, mean, var: torch.native_batch_norm(x, w, b, mean, var, True, 0.1, 1e-5)), (
                x, w, b, mean, var.abs())
        _, saved, rstd = torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)
        return (lambda dy, x, w, saved, rstd: aten.native_batch_norm_backward(
            dy, x, w, None, None, saved, rstd, True, 1e-5, [True] * 3)), (dy, x, w, saved, rstd)
    return make


def group_norm(is_backward):
    def make(m):
        x, w, b = m.draw(m.rows, m.cols, SIDE, SIDE), m.draw(m.cols), m.draw(m.cols)
        groups = m.cols // 8 if m.cols % 8 == 0 else 1  # groups of 8 channels
        if not is_backward:
            return (lambda x, w, b: F.group_norm(x, groups, w, b)), (x, w, b)
        with torch.enable_grad():
            leaves = [x.requires_grad_(), w.requires_grad_(), b.requires_grad_()]
            y = F.group_norm(leaves[0], groups, *leaves[1:])
        dy = torch.randn_like(y)
        return (lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)), ()
    return make


def max_pool(is_backward):
    def make(m):
        x = m.image(m.rows, m.cols, SIDE, SIDE)
        if not is_backward:
            return (lambda x: F.max_pool2d(x, 2, return_indices=True)), (x,)
        with torch.enable_grad():
            y = F.max_pool2d(x.requires_grad_(), 2)
        dy = torch.randn_like(y)
        return (lambda: torch.autograd.grad(y, x, dy, retain_graph=True)), ()
    return make


def scatter_rows(m):
    table, source = m.draw(), m.draw()
    rows = m.index(m.rows, m.rows)
    return (lambda table, rows, source: table.index_add_(0, rows, source)), (table, rows, source)


def cast(m):
    return (lambda x: x.to(m.dtype, copy=True)), (m.draw(dtype=torch.float32),)


CASES = {
    "relu_forward": forward(torch.relu), "gelu_forward": forward(F.gelu), "tanh_forward": forward(torch.tanh),
    "relu_backward": backward(lambda y, dy: aten.threshold_backward(dy, y, 0)),
    "gelu_backward": backward(lambda x, dy: aten.gelu_backward(dy, x)),
    "softmax_forward": forward(lambda x: torch.softmax(x, 1)),
    "softmax_backward": backward(lambda y, dy: aten._softmax_backward_data(dy, y, 1, y.dtype)),
    "add": backward(torch.add), "add_row": lambda m: (torch.add, (m.draw(), m.draw(m.cols))),
    "add_into": lambda m: ((lambda y, x: y.add_(x)), (m.draw(), m.draw())),
    "dropout": forward(lambda x: F.dropout(x, 0.5, True)), "cast_from_f32": cast,
    "fill": lambda m: ((lambda y: y.fill_(1)), (m.draw(),)), "fill_normal": lambda m: ((lambda y: y.normal_()), (m.draw(),)),
    "transpose": lambda m: ((lambda x: x.t().contiguous()), (m.draw(m.cols, m.rows),)),
    "reduce_sum_rows": forward(lambda x: x.sum(1)), "reduce_sum_columns": forward(lambda x: x.sum(0)),
    "reduce_var_rows": forward(lambda x: x.var(1)), "reduce_logsumexp_rows": forward(lambda x: x.logsumexp(1)),
    "argmax": forward(lambda x: x.argmax(1)), "cumsum_rows": forward(lambda x: x.cumsum(1)),
    "sort": forward(lambda x: x.sort(1)), "topk": forward(lambda x: x.topk(16, 1)),
    "masked_fill": lambda m: ((lambda x, mask: x.masked_fill(mask, 0)), (m.draw(), m.draw() > 0)),
    "masked_select": lambda m: ((lambda x, mask: x.masked_select(mask)), (m.draw(), m.draw() > 0)),
    "mse_loss_forward": lambda m: ((lambda x, y: F.mse_loss(x, y, reduction="none")), (m.draw(), m.draw())),
    "gather_rows": lambda m: ((lambda x, i: x.index_select(0, i)), (m.draw(), m.index(m.rows, m.rows))),
    "scatter_add_rows": scatter_rows, "cross_entropy_forward_backward": cross_entropy, "adam_step": adam,
    "gemm": linear(1, 1), "gemm_qkv": linear(1, 3), "gemm_wide": linear(1, 4), "gemm_narrow": linear(4, 1),
    "gemm_head": lambda m: ((lambda x, w: x @ w.t()), (m.draw(), m.draw(VOCABULARY, m.cols))),
    "gemm_weight_gradient": lambda m: ((lambda x, dy: x.t() @ dy), (m.draw(), m.draw(m.rows, 4 * m.cols))),
    "bilinear_forward": lambda m: ((lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
                                   (m.image(m.rows, m.cols, SIDE, SIDE),)),
}
for _name, _make in (("attention", attention), ("layer_norm", layer_norm), ("rms_norm", rms_norm),
                     ("batch_norm", batch_norm), ("group_norm", group_norm), ("max_pool2d", max_pool)):
    CASES[f"{_name}_forward"], CASES[f"{_name}_backward"] = _make(False), _make(True)
for _name, _kind in CONVS.items():
    CASES[f"{_name}_forward"] = conv(_kind, "forward")
    CASES[f"{_name}_backward_data"] = conv(_kind, "data")
    CASES[f"{_name}_backward_weight"] = conv(_kind, "weight")


def make_case(kernel, rows, cols, dtype, device):
    if kernel not in CASES:
        raise KeyError(f"{kernel} has no counterpart here")
    return CASES[kernel](Maker(rows, cols, dtype, device))
