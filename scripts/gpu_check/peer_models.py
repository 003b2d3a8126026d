"""GPT-2 and ResNet-50 in PyTorch, and the batches of bench/drawn_batch.cpp."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attn(self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """The model of nn/gpt2.h: the head is the embedding. Weights are normal with standard deviation 0.02, those of the
    two projections into the residual stream 0.02 / sqrt(2 layers); biases are 0."""

    def __init__(self, vocabulary, context, width, layers, heads):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("proj.weight", "out.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, index):
        x = self.wte(index) + self.wpe.weight[:index.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight).flatten(0, 1)


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = 4 * inner
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    """torchvision's ResNet, with the stem for small images below 64 pixels."""

    def __init__(self, blocks, width, classes, small_images):
        super().__init__()
        self.small_images = small_images
        self.conv1 = nn.Conv2d(3, width, 3 if small_images else 7, 1 if small_images else 2, 1 if small_images else 3,
                               bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs, stages = width, []
        for stage, count in enumerate(blocks):
            for i in range(count):
                stages.append(Bottleneck(inputs, width << stage, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * (width << stage)
        self.stages, self.fc = nn.Sequential(*stages), nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = x if self.small_images else F.max_pool2d(x, 3, 2, 1)
        return self.fc(self.stages(x).mean((2, 3)))


def published_name(name, blocks):
    """The name that nn/gpt2.h or nn/resnet.h gives a parameter of these models."""
    words = name.split(".")
    if words[0] == "blocks":
        inner = {"attn": "attn.c_attn", "proj": "attn.c_proj", "fc": "mlp.c_fc", "out": "mlp.c_proj"}
        return ".".join(["h", words[1], inner.get(words[2], words[2]), *words[3:]])
    if words[0] == "stages":
        stage, block = 0, int(words[1])
        while block >= blocks[stage]:
            stage, block = stage + 1, block - blocks[stage]
        return ".".join([f"layer{stage + 1}", str(block), *words[2:]])
    return name


@torch.no_grad()
def draw_weights(model, layers, blocks):
    """Sets the weights as bench/drawn_batch.cpp does."""
    for own_name, w in model.named_parameters():
        name = published_name(own_name, blocks)
        if name.endswith("bias"):
            w.zero_()
        if w.dim() < 2:
            continue
        if w.dim() == 4:
            deviation = (2 / (w.shape[0] * w.shape[2] * w.shape[3])) ** 0.5
        else:
            deviation = 0.02 / (2 * layers) ** 0.5 if name.endswith("c_proj.weight") else 0.02
        number = 2166136261
        for letter in name.encode():
            number = (number ^ letter) * 16777619 & 0xFFFFFFFF
        drawn = mixed(number + torch.arange(w.numel(), device=w.device)) % 65536
        w.copy_((3 ** 0.5 * deviation * ((drawn.double() + 0.5) / 32768 - 1)).float().view(w.shape))


def mixed(number):
    """Applies the 32-bit hash of drawn_batch.cpp to a tensor of i64."""
    mask = 0xFFFFFFFF
    h = ((number & mask) * 2654435761) & mask
    h = ((h ^ (h >> 16)) * 73244475) & mask
    return h ^ (h >> 16)


def level(number):
    return (mixed(number) % 256).float() / 128 - 1


def drawn_text(texts, tokens, vocabulary, number):
    count = min(64, vocabulary)
    text = number * texts + torch.arange(texts)
    step = 1 + 17 * (mixed(7777777 + text[:, None] * tokens + torch.arange(tokens)) % 3)
    columns = [mixed(text) % count]
    for at in range(tokens):
        columns.append((5 * columns[-1] + step[:, at]) % count)
    chain = torch.stack(columns, 1)
    return chain[:, :-1].contiguous(), chain[:, 1:].reshape(-1)


def drawn_images(images, channels, edge, classes, number):
    image = number * images + torch.arange(images)
    labels = mixed(99991 + image) % min(16, classes)
    square = torch.arange(edge) * 16 // edge
    pattern = (labels[:, None] * channels + torch.arange(channels))[:, :, None, None] * 256 + (
        square[:, None] * 16 + square)
    pixels = channels * edge * edge
    noise = 31337 + image[:, None] * pixels + torch.arange(pixels)
    return level(pattern) + level(noise).view(images, channels, edge, edge), labels


class Work:
    """A training step of one of the models; step() returns the loss on the device."""

    def __init__(self, options, device):
        self.dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[options.precision]
        self.device, self.next = device, 0
        is_text = options.model == "gpt2"
        if is_text:
            model = Gpt2(options.vocabulary, max(options.tokens, 1024), options.width or 768, options.layers,
                         options.heads).to(device)
        else:
            model = ResNet([int(n) for n in options.blocks.split(",")], options.width or 64, options.classes,
                           options.image < 64).to(device, memory_format=torch.channels_last)
        if options.batches:
            draw_weights(model, options.layers, [int(n) for n in options.blocks.split(",")])
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, fused=device.type == "cuda")
        self.model = torch.compile(model) if options.form == "compile" else model
        self.scaler = torch.amp.GradScaler(device.type, enabled=options.precision == "fp16")
        self.start = self.scaler.get_scale()
        self.batches = []
        for i in range(max(1, options.batches)):
            if is_text:
                x, y = drawn_text(options.batch, options.tokens, options.vocabulary, i)
            else:
                x, y = drawn_images(options.batch, 3, options.image, options.classes, i)
                x = x.to(memory_format=torch.channels_last)
            self.batches.append((x.to(device), y.to(device)))

    def step(self):
        x, y = self.batches[self.next]
        self.next = (self.next + 1) % len(self.batches)
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None):
            loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def skipped_steps(self):
        """A lower bound: each skipped step halves the scale (growth begins after 2000 steps)."""
        if not self.scaler.is_enabled():
            return 0
        scale, count = self.scaler.get_scale(), 0
        while scale < self.start:
            scale, count = scale * 2, count + 1
        return count
