"""A variational autoencoder and a GAN in PyTorch with their losses: the counterpart of generative_models.cpp."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, pixels=784, hidden=400, latent=20):
        super().__init__()
        self.fc1 = nn.Linear(pixels, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, pixels)

    def forward(self, x, noise):
        hidden = F.relu(self.fc1(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + noise * torch.exp(0.5 * log_variance)
        return self.fc4(F.relu(self.fc3(z))), mean, log_variance


def vae_loss(call_model, batch):
    logits, mean, log_variance = call_model(batch.input, batch.noise)
    divergence = -0.5 * torch.sum(1 + log_variance - mean * mean - torch.exp(log_variance))
    return (F.binary_cross_entropy_with_logits(logits, batch.input, reduction="sum") + divergence) / len(batch.input)


class GAN(nn.Module):
    LATENT = 100

    def __init__(self):
        super().__init__()
        layers = []
        for inputs, outputs, stride, padding in ((self.LATENT, 256, 1, 0), (256, 128, 2, 1), (128, 64, 2, 1)):
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False),
                       nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        self.generator = nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())
        layers = []
        for inputs, outputs in ((3, 64), (64, 128), (128, 256)):
            layers.append(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False))
            layers += [nn.BatchNorm2d(outputs)] * (inputs != 3)
            layers.append(nn.LeakyReLU(0.2, inplace=True))
        self.discriminator = nn.Sequential(*layers, nn.Conv2d(256, 1, 4, bias=False))


def judged(discriminator, images, label):
    logits = discriminator(images)
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))
