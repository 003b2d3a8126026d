"""Models of the comparison in PyTorch: those of models.cpp and text_models.cpp. Parameters have the names
that Binade gives them."""
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(OrderedDict(
        flatten=nn.Flatten(), fc1=nn.Linear(784, 512), relu1=nn.ReLU(), fc2=nn.Linear(512, 512),
        relu2=nn.ReLU(), fc3=nn.Linear(512, 10)))


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + shortcut, inplace=True)


class ResNet18(nn.Module):
    """ResNet-18 with the stem for small images."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for number, outputs in enumerate((64, 128, 256, 512), 1):
            stage = nn.Sequential(
                Block(inputs, outputs, 1 if number == 1 else 2), Block(outputs, outputs, 1))
            setattr(self, f"layer{number}", stage)
            inputs = outputs
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    """`form` is the way to compute attention: plain, baddbmm or sdpa (2.0 and later)."""

    def __init__(self, width, heads, context, form, causal=True):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.heads, self.form, self.causal = heads, form, causal
        future = torch.ones(context, context).tril() == 0 if causal else torch.zeros(context, context).bool()
        self.register_buffer("future", future, persistent=False)
        self.register_buffer("bias", torch.zeros(context, context).masked_fill(future, float("-inf")),
                             persistent=False)

    def weights(self, q, k):
        batch, heads, length, size = q.shape
        if self.form == "baddbmm":
            scores = torch.baddbmm(self.bias, q.reshape(-1, length, size),
                                   k.reshape(-1, length, size).transpose(1, 2), alpha=size ** -0.5)
            return F.softmax(scores, -1).view(batch, heads, length, length)
        scores = (q @ k.transpose(-2, -1)) * size ** -0.5
        if self.causal:
            scores = scores.masked_fill(self.future, float("-inf"))
        return F.softmax(scores, -1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in F.linear(x, self.in_proj_weight, self.in_proj_bias).split(width, 2))
        if self.form == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            y = self.weights(q, k) @ v
        return self.out_proj(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, context, form, causal=True):
        super().__init__()
        self.self_attn = Attention(width, heads, context, form, causal)
        self.linear1 = nn.Linear(width, 4 * width)
        self.linear2 = nn.Linear(4 * width, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class CharGpt(nn.Module):
    def __init__(self, form="plain", layers=4, width=128, heads=4, context=128, vocabulary=65):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        for i in range(layers):
            setattr(self, f"layer{i}", Layer(width, heads, context, form))
        self.layers = layers
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, index):
        x = self.tokens(index) + self.positions.weight
        for i in range(self.layers):
            x = getattr(self, f"layer{i}")(x)
        return self.head(self.norm(x)).view(-1, self.head.weight.shape[0])


class RecurrentLM(nn.Module):
    """`kind` is nn.LSTM or nn.GRU."""

    def __init__(self, kind, vocabulary=5000, width=256, hidden=256, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.rnn = kind(width, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, index):
        return self.head(self.rnn(self.tokens(index))[0]).view(-1, self.head.weight.shape[0])
