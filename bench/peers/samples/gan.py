"""A generative adversarial network (Goodfellow et al., 2014) with two optimizers, on points in the plane:
eight normal distributions on a circle. Writes RUN/points.png (real and generated ones) and says how many
of the eight the generator has found."""

import lightning
import shared
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.utils import save_image

MODES, NOISE, DEVIATION = 8, 16, 0.1


def centres():
    angle = torch.arange(MODES) * (2 * torch.pi / MODES)
    return torch.stack([angle.cos(), angle.sin()], 1)


def real_points(count):
    return centres()[torch.randint(MODES, (count,))] + torch.randn(count, 2) * DEVIATION


def mlp(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )


def mean_distance(a, b):
    """The mean of |a - b| over all pairs."""
    return torch.cdist(a, b).mean()


class GAN(lightning.LightningModule):
    def __init__(self, hidden, lr):
        super().__init__()
        self.lr, self.automatic_optimization = lr, False
        self.generator, self.discriminator = mlp(NOISE, hidden, 2), mlp(2, hidden, 1)

    def generate(self, count):
        return self.generator(torch.randn(count, NOISE, device=self.device))

    def verdict(self, points, wanted):
        logits = self.discriminator(points)
        return nn.functional.binary_cross_entropy_with_logits(
            logits, torch.full_like(logits, wanted)
        )

    def training_step(self, batch, _):
        (real,) = batch
        adam_d, adam_g = self.optimizers()
        self.toggle_optimizer(adam_d)
        loss_d = self.verdict(real, 1) + self.verdict(self.generate(len(real)).detach(), 0)
        adam_d.zero_grad()
        self.manual_backward(loss_d)
        adam_d.step()
        self.untoggle_optimizer(adam_d)
        self.toggle_optimizer(adam_g)
        loss_g = self.verdict(self.generate(len(real)), 1)
        adam_g.zero_grad()
        self.manual_backward(loss_g)
        adam_g.step()
        self.untoggle_optimizer(adam_g)
        losses = {"train_discriminator_loss": loss_d, "train_generator_loss": loss_g}
        self.log_dict(losses, on_epoch=True, on_step=False)

    def validation_step(self, batch, _):
        """The energy distance of generated and real points (Szekely and Rizzo)."""
        real, fake = batch[0], self.generate(len(batch[0])).float()
        distance = 2 * mean_distance(real, fake) - mean_distance(real, real)
        self.log("validation_loss", distance - mean_distance(fake, fake))

    def configure_optimizers(self):
        parts = self.discriminator, self.generator
        return [torch.optim.Adam(part.parameters(), self.lr, betas=(0.0, 0.99)) for part in parts]


def drawn(points, side=96):
    """Draws points in [-1.5, 1.5]^2 as white pixels."""
    picture = torch.zeros(1, side, side)
    x, y = ((points + 1.5) / 3 * side).long().T
    inside = (x >= 0) & (x < side) & (y >= 0) & (y < side)
    picture[0, side - 1 - y[inside], x[inside]] = 1
    return picture


@torch.no_grad()
def report(gan, run, distance):
    fake = gan.eval().generate(2000).float().cpu()
    nearest, mode = torch.cdist(fake, centres()).min(1)
    good = nearest < 3 * DEVIATION
    found = (mode[good].bincount(minlength=MODES) >= 20).sum()
    save_image([drawn(real_points(2000)), drawn(fake)], run / "points.png")
    print(
        f"modes found: {found} of {MODES}, points near one: {100 * good.float().mean():.1f}%, "
        f"energy distance: {distance:.4f}"
    )


def main():
    parser = shared.parser(
        "gan",
        "Trains a generator against a discriminator.",
        ["data"],
        epochs=60,
        batch=256,
        lr=1e-3,
    )
    parser.add_argument("--hidden", type=int, default=128, help="size of the hidden layers")
    flags = shared.start(parser)
    train_loader = DataLoader(TensorDataset(real_points(8192)), flags.batch, shuffle=True)
    validation_loader = DataLoader(TensorDataset(real_points(1024)), 512)
    gan = GAN(flags.hidden, flags.lr)
    trainer = shared.trainer(flags, patience=0)
    shared.fit(flags, trainer, gan, train_loader, validation_loader)
    torch.save(gan.state_dict(), flags.run / "model.pt")
    result = trainer.validate(gan, validation_loader, verbose=False)[0]
    report(gan, flags.run, result["validation_loss"])


if __name__ == "__main__":
    main()
