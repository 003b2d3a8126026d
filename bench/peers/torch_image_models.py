"""Image classifiers and a U-Net in PyTorch: the counterpart of image_models.cpp."""
import torch
import torch.nn.functional as F
from torch import nn

import torch_models


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def conv_norm(inputs, outputs, kernel, stride=1, padding=0, groups=1, relu=True):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return layers + [nn.ReLU(inplace=True)] * relu


def initialized(net):
    """Without this, the activations of a deep net would fade to zero in evaluation."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    return net


def depthwise_net():
    inputs, layers = 32, conv_norm(3, 32, 3, padding=1)
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers += conv_norm(inputs, inputs, 3, stride, 1, groups=inputs) + conv_norm(inputs, outputs, 1)
        inputs = outputs
    return initialized(nn.Sequential(*layers, GlobalAvgPool(), nn.Linear(inputs, 10)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, outputs, groups, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_norm(inputs, width, 1), *conv_norm(width, width, 3, stride, 1, groups),
                                  *conv_norm(width, outputs, 1, relu=False))
        self.shortcut = nn.Sequential()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(*conv_norm(inputs, outputs, 1, stride, relu=False))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def bottleneck_net(stages, groups=1, small_images=False, classes=10):
    inputs = 64
    if small_images:
        layers = conv_norm(3, inputs, 3, padding=1)
    else:
        layers = conv_norm(3, inputs, 7, 2, 3) + [nn.MaxPool2d(3, 2, 1)]
    for stage, (blocks, width, outputs) in enumerate(stages):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, width, outputs, groups, 2 if stage > 0 and i == 0 else 1))
            inputs = outputs
    return initialized(nn.Sequential(*layers, GlobalAvgPool(), nn.Linear(inputs, classes)))


def resnet50():
    return bottleneck_net(((3, 64, 256), (4, 128, 512), (6, 256, 1024), (3, 512, 2048)))


def resnext():
    return bottleneck_net(((2, 128, 256), (2, 256, 512), (2, 512, 1024)), groups=32, small_images=True)


class ViT(nn.Module):
    def __init__(self, form="plain", image=32, patch=4, layers=6, width=192, heads=6, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        length = (image // patch) ** 2
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.ModuleList(
            torch_models.Layer(width, heads, length, form, causal=False) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def double_conv(inputs, outputs):
    return nn.Sequential(*conv_norm(inputs, outputs, 3, padding=1), *conv_norm(outputs, outputs, 3, padding=1))


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128), classes=2):
        super().__init__()
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip((3, *widths), widths))
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.up = nn.ModuleList(double_conv(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        levels = [self.down[0](x)]
        for block in self.down[1:]:
            levels.append(block(F.max_pool2d(levels[-1], 2)))
        y = levels.pop()
        for enlarge, block in zip(self.enlarge, self.up):
            y = block(torch.cat((enlarge(y), levels.pop()), 1))
        return self.head(y)
