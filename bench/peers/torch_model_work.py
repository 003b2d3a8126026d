"""Work with a model in PyTorch: training steps, inference, generation of text; the counterpart of
model_work.cpp and training.cpp.

A form is a base and options, joined by "+". Bases: "channels_last" is a memory order; "plain", "baddbmm" and
"sdpa" are ways to compute attention. Options: "compile" is torch.compile of the model, "compile_loss" of the
model with its loss; "max_autotune" lets Inductor choose kernels by timing; "freezing" lets it pack weights;
"frozen" is what torch.jit.freeze and optimize_for_inference make of the traced model, for this one shape."""
import contextlib

import torch

import torch_table

TIMED_RATE = 1e-5  # as in model_work.cpp
IS_2 = int(torch.__version__.split(".")[0]) >= 2
TOKENS = 8         # tokens per call of Generation


def forms(row, state):
    """The forms that may be fastest: those that people write for "installed", all forms for "strongest"."""
    entry = torch_table.MODELS[row.model]
    bases = {"images": ["eager", "channels_last"], "attention": ["plain", "baddbmm"] + ["sdpa"] * IS_2,
             "other": ["eager"]}[entry.kind]
    last, more = bases[-1], []
    if row.step != "train":
        if state == "strongest":
            more += [f"{base}+frozen" for base in bases]
            more += [f"{last}+compile+freezing", f"{last}+compile+freezing+max_autotune"] * IS_2
    elif state == "strongest" and IS_2:
        more.append(f"{last}+compile+max_autotune")
        if len(entry.phases) == 1:
            more += [f"{last}+compile_loss", f"{last}+compile_loss+max_autotune"]
    return bases + [f"{last}+compile"] * IS_2 + more


def split(form):
    base, *options = form.split("+")
    return base, options


@contextlib.contextmanager
def compiler_settings(form):
    """Sets how Inductor compiles the models called inside."""
    options = split(form)[1]
    if not {"compile", "compile_loss"} & set(options):
        yield
        return
    import torch._inductor.config as config
    with config.patch({"freezing": "freezing" in options, "max_autotune": "max_autotune" in options}):
        yield


def compiler(form, option="compile"):
    return torch.compile if option in split(form)[1] else lambda function: function


def ordered(x, form):
    if form.startswith("channels_last") and x is not None and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x


def make_model(row, form, tensors):
    """`tensors` are values by name; None: values are drawn."""
    base = split(form)[0]
    model = torch_table.MODELS[row.model].make(base)
    if tensors is not None:
        values = {name: value for name, value in tensors.items() if not is_of_batch(name)}
        missing, unexpected = model.load_state_dict(values, strict=False)
        missing = [name for name in missing if not name.endswith("num_batches_tracked")]
        if missing or unexpected:
            raise ValueError(f"{row.model}: missing {missing}, unexpected {unexpected}")
    return model.to(memory_format=torch.channels_last) if base == "channels_last" else model


def is_of_batch(name):
    return name.split(".")[0] in torch_table.Batch._fields and name.split(".")[-1].isdigit()


def make_batches(row, form, tensors):
    if tensors is None:
        batches = [torch_table.MODELS[row.model].batch(row.batch)]
    else:
        batches = []
        while f"input.{len(batches)}" in tensors:
            batches.append(torch_table.Batch(*(tensors.get(f"{field}.{len(batches)}")
                                               for field in torch_table.Batch._fields)))
        if not batches or len(batches[0].input) != row.batch:
            raise ValueError(f"expected batches of {row.batch}")
    return [torch_table.Batch(*(ordered(x, form) for x in batch)) for batch in batches]


def make_optimizer(parameters, rule, lr):
    kind, settings = torch.optim.SGD, {"lr": lr, "momentum": 0.9}
    if rule in ("adam", "adam_gan"):
        kind, settings = torch.optim.Adam, {"lr": lr, "betas": (0.9 if rule == "adam" else 0.5, 0.999)}
    elif rule == "sgd_decay":
        settings["weight_decay"] = 5e-4
    elif rule != "sgd":
        raise ValueError(f"got rule '{rule}', expected sgd, sgd_decay, adam or adam_gan")
    parameters = list(parameters)
    if IS_2:
        try:
            return kind(parameters, fused=True, **settings)
        except (TypeError, RuntimeError):  # this version cannot do it on the CPU
            pass
    return kind(parameters, **settings)


def loss_function(loss, calls, form):
    """Computes loss(calls, batch), compiled as a whole if the form says so."""
    compiled = compiler(form, "compile_loss")(lambda *tensors: loss(calls, torch_table.Batch(*tensors)))
    return lambda batch: compiled(*batch)


class Training:
    units = 1

    def __init__(self, row, form, tensors=None, lr=TIMED_RATE):
        entry = torch_table.MODELS[row.model]
        self.model = make_model(row, form, tensors)
        calls = entry.calls(self.model, compiler(form))
        self.phases = [(make_optimizer(part(self.model).parameters(), row.rule, lr),
                        loss_function(loss, calls, form)) for part, loss in entry.phases]
        self.batches = make_batches(row, form, tensors)
        self.next = 0

    def __call__(self):
        batch = self.batches[self.next]
        self.next = (self.next + 1) % len(self.batches)
        losses = []
        for optimizer, loss_of in self.phases:
            loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses

    def values(self):
        return [loss.item() for loss in self()]


def summary(x):
    """The root mean square and 16 equally spaced elements."""
    row = x.reshape(-1)
    return [row.square().mean().sqrt().item()] + [row[i * len(row) // 16].item() for i in range(16)]


class Inference:
    units = 1

    def __init__(self, row, form, tensors=None):
        self.model = make_model(row, form, tensors).eval()
        self.input = make_batches(row, form, tensors)[0].input
        self.call_model = compiler(form)(self.model)
        if "frozen" in split(form)[1]:
            with torch.no_grad():
                traced = torch.jit.freeze(torch.jit.trace(self.model, self.input))
                self.call_model = torch.jit.optimize_for_inference(traced)

    def __call__(self):
        with torch.no_grad():
            return self.call_model(self.input)

    def values(self):
        return summary(self())


class Generation(Inference):
    """Generates greedily without a cache: each new token costs a forward of the whole context."""
    units = TOKENS

    def last_logits(self):
        return self.call_model(self.input).view(*self.input.shape, -1)[:, -1]

    def __call__(self):
        with torch.no_grad():
            for _ in range(TOKENS):
                token = self.last_logits().argmax(1, keepdim=True)
                self.input = torch.cat((self.input[:, 1:], token), 1)

    def values(self):
        with torch.no_grad():
            return summary(self.last_logits())


STEPS = {"train": Training, "infer": Inference, "generate": Generation}


def make_work(row, form, tensors=None, **options):
    with compiler_settings(form):
        return STEPS[row.step](row, form, tensors, **options)
