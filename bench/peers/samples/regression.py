"""Regression on a table: --data FILE.csv with the column --target, all others numbers; or Friedman's
function of ten numbers, of which five count, with noise."""

import lightning
import pandas
import shared
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics import MeanAbsoluteError, MeanSquaredError, MetricCollection, R2Score


def friedman(rows):
    x = torch.rand(rows, 10)
    y = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return x, (y + 10 * x[:, 3] + 5 * x[:, 4] + torch.randn(rows)).unsqueeze(1)


def read_table(path, target):
    table = pandas.read_csv(path, dtype="float32")
    if target not in table:
        raise SystemExit(f"--target: got '{target}', expected a column of {path}")
    y = table.pop(target)
    return torch.tensor(table.values), torch.tensor(y.values).unsqueeze(1)


class Net(lightning.LightningModule):
    """Normalises its input by the mean and deviation of the training data."""

    def __init__(self, x, y, hidden, lr):
        super().__init__()
        self.lr = lr
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("deviation", x.std(0).clamp(1e-6))
        self.register_buffer("y_mean", y.mean(0))
        self.register_buffer("y_deviation", y.std(0).clamp(1e-6))
        self.mlp = nn.Sequential(
            nn.Linear(x.shape[1], hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, y.shape[1]),
        )
        self.metrics = MetricCollection(
            {"rmse": MeanSquaredError(squared=False), "mae": MeanAbsoluteError(), "r2": R2Score()},
            prefix="validation_",
        )

    def forward(self, x):
        return self.mlp((x - self.mean) / self.deviation).float() * self.y_deviation + self.y_mean

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        prediction = self(x)
        self.metrics.update(prediction, y)
        self.log("validation_loss", nn.functional.mse_loss(prediction, y))
        self.log_dict(self.metrics)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), self.lr, weight_decay=1e-3)


def main():
    parser = shared.parser(
        "regression", "Fits a network to a table of numbers.", epochs=200, batch=64, lr=3e-3
    )
    parser.add_argument("--target", default="", help="the column of --data to predict")
    parser.add_argument("--hidden", type=int, default=64, help="size of the two hidden layers")
    flags = shared.start(parser)
    table = TensorDataset(*(read_table(flags.data, flags.target) if flags.data else friedman(2000)))
    train, validation = random_split(table, [0.8, 0.2])
    train_loader = DataLoader(train, flags.batch, shuffle=True)
    validation_loader = DataLoader(validation, 256)
    net = Net(*train[:], flags.hidden, flags.lr)
    trainer = shared.trainer(flags, monitor="validation_rmse", patience=20)
    shared.fit(flags, trainer, net, train_loader, validation_loader)
    torch.save(net.state_dict(), flags.run / "model.pt")
    result = trainer.validate(net, validation_loader, verbose=False)[0]
    print(
        f"validation rmse: {result['validation_rmse']:.4f}, "
        f"mae: {result['validation_mae']:.4f}, r2: {result['validation_r2']:.4f}"
    )


if __name__ == "__main__":
    main()
