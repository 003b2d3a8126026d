"""A variational autoencoder (Kingma and Welling, 2014) of pictures: --data has MNIST's files or an image
folder, or glyphs are drawn. Writes RUN/reconstructions.png (every second row is the model's) and
RUN/samples.png."""

import lightning
import shared
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.utils import save_image


class VAE(lightning.LightningModule):
    def __init__(self, picture, hidden, latent, lr):
        super().__init__()
        self.picture, self.lr = picture, lr
        pixels = picture.numel()
        self.encoder = nn.Linear(pixels, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.decoder = nn.Linear(latent, hidden)
        self.output = nn.Linear(hidden, pixels)

    def forward(self, images):
        h = self.encoder(images.flatten(1)).relu()
        mean, log_variance = self.mean(h), self.log_variance(h).float()
        z = mean + (log_variance / 2).exp() * torch.randn_like(mean) if self.training else mean
        return self.decode(z), mean.float(), log_variance

    def decode(self, z):
        return self.output(self.decoder(z).relu()).unflatten(1, self.picture)

    def step(self, batch, name):
        """The negative evidence lower bound per picture."""
        images = batch[0]
        logits, mean, log_variance = self(images)
        reconstruction = nn.functional.binary_cross_entropy_with_logits(
            logits.float(), images, reduction="sum"
        ) / len(images)
        kl = (mean**2 + log_variance.exp() - log_variance - 1).sum() / (2 * len(images))
        loss = reconstruction + kl
        values = {"loss": loss, "reconstruction": reconstruction, "kl": kl}
        values = {f"{name}_{key}": value for key, value in values.items()}
        self.log_dict(values, on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, _):
        return self.step(batch, "train")

    def validation_step(self, batch, _):
        self.step(batch, "validation")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


@torch.no_grad()
def draw(vae, loader, latent, run):
    """Writes rows of 8 pictures and their reconstructions by turns, and decoded normal numbers."""
    vae.eval()
    images = next(iter(loader))[0][:32].to(vae.device)
    rows = []
    for row in images[: len(images) // 8 * 8].split(8):
        rows += [row, vae(row)[0].sigmoid()]
    if rows:
        save_image(torch.cat(rows), run / "reconstructions.png")
    z = torch.randn(64, latent, device=vae.device)
    save_image(vae.decode(z).sigmoid(), run / "samples.png")


def main():
    parser = shared.parser(
        "vae", "Trains a variational autoencoder of pictures.", epochs=10, batch=128, lr=1e-3
    )
    parser.add_argument("--hidden", type=int, default=400, help="size of the hidden layers")
    parser.add_argument("--latent", type=int, default=20, help="dimensions of the latent space")
    flags = shared.start(parser)
    if not flags.data:
        flags.data = "runs/glyphs-vae"
        shared.draw_glyphs(flags.data, train=3000, test=500, size=28)
    train, test = shared.open_pictures(flags.data)
    train_loader = DataLoader(train, flags.batch, shuffle=True)
    test_loader = DataLoader(test, 256)
    vae = VAE(train[0][0].shape, flags.hidden, flags.latent, flags.lr)
    trainer = shared.trainer(flags)
    shared.fit(flags, trainer, vae, train_loader, test_loader)
    torch.save(vae.state_dict(), flags.run / "model.pt")
    draw(vae, test_loader, flags.latent, flags.run)
    result = trainer.validate(vae, test_loader, verbose=False)[0]
    print(
        f"validation loss: {result['validation_loss']:.4f} "
        f"(reconstruction {result['validation_reconstruction']:.4f}, "
        f"kl {result['validation_kl']:.4f}), {flags.run}/samples.png"
    )


if __name__ == "__main__":
    main()
