"""The models of the comparison in PyTorch, by name, each with its batches and losses: the counterpart of
model_table.cpp."""
import typing
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

import torch_generative_models
import torch_image_models
import torch_models


class Batch(typing.NamedTuple):
    input: torch.Tensor
    target: typing.Optional[torch.Tensor] = None
    noise: typing.Optional[torch.Tensor] = None


def whole(model):
    return model


def classification_loss(call_model, batch):
    return F.cross_entropy(call_model(batch.input), batch.target)


class Model(typing.NamedTuple):
    make: typing.Callable   # takes the base form: eager, channels_last, plain, baddbmm, sdpa
    batch: typing.Callable  # takes the batch size
    kind: str = "other"     # images, attention or other: decides the base forms
    phases: tuple = ((whole, classification_loss),)  # the part that an optimizer updates, and its loss
    classes: int = 10
    calls: typing.Callable = lambda model, compiled: compiled(model)  # what the losses call


def classifier(make, sample, kind="images", of_pixels=False, classes=10):
    def batch(size):
        targets = (size, *sample[1:]) if of_pixels else (size,)
        return Batch(torch.randn(size, *sample), torch.randint(classes, targets))
    return Model(make if kind == "attention" else lambda _: make(), batch, kind, classes=classes)


def text_model(make, length, vocabulary, kind):
    def batch(size):
        return Batch(torch.randint(vocabulary, (size, length)), torch.randint(vocabulary, (size * length,)))
    return Model(make, batch, kind, classes=vocabulary)


def gpt(layers=4, width=128, heads=4, context=128, vocabulary=65):
    return text_model(lambda form: torch_models.CharGpt(form, layers, width, heads, context, vocabulary),
                      context, vocabulary, "attention")


def recurrent_lm(kind, steps=35, vocabulary=5000):
    return text_model(lambda _: torch_models.RecurrentLM(kind, vocabulary), steps, vocabulary, "other")


def vae():
    return Model(lambda _: torch_generative_models.VAE(),
                 lambda size: Batch(torch.rand(size, 784), noise=torch.randn(size, 20)),
                 phases=((whole, torch_generative_models.vae_loss),))


def gan():
    judged = torch_generative_models.judged

    def discriminator_loss(nets, batch):
        nets.fakes = nets.generator(batch.noise)  # kept for the generator's loss
        return (judged(nets.discriminator, batch.input, 1.0) +
                judged(nets.discriminator, nets.fakes.detach(), 0.0))

    def generator_loss(nets, _):
        return judged(nets.discriminator, nets.fakes, 1.0)

    return Model(lambda _: torch_generative_models.GAN(),
                 lambda size: Batch(torch.randn(size, 3, 32, 32), noise=torch.randn(size, 100, 1, 1)), "images",
                 ((lambda model: model.discriminator, discriminator_loss),
                  (lambda model: model.generator, generator_loss)),
                 calls=lambda model, compiled: SimpleNamespace(generator=compiled(model.generator),
                                                               discriminator=compiled(model.discriminator)))


MODELS = {
    "mlp": classifier(torch_models.mlp, (1, 28, 28), "other"),
    "mnist_cnn": classifier(torch_models.mnist_cnn, (1, 28, 28)),
    "resnet18": classifier(torch_models.ResNet18, (3, 32, 32)),
    "resnet50": classifier(torch_image_models.resnet50, (3, 64, 64)),
    "resnext": classifier(torch_image_models.resnext, (3, 32, 32)),
    "depthwise": classifier(torch_image_models.depthwise_net, (3, 32, 32)),
    "vit": classifier(torch_image_models.ViT, (3, 32, 32), "attention"),
    "unet": classifier(torch_image_models.UNet, (3, 64, 64), of_pixels=True, classes=2),
    "char_gpt": gpt(),
    "gpt": gpt(layers=6, width=384, heads=6, context=256),
    "lstm": recurrent_lm(nn.LSTM),
    "gru": recurrent_lm(nn.GRU),
    "vae": vae(),
    "gan": gan(),
}
