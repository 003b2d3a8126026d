"""A bidirectional LSTM that tells the class of a line of text: --data DIR has one file CLASS.txt per class,
one sample per line; without it words of four invented languages."""

import pathlib
import random

import lightning
import shared
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, random_split
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score


class Net(lightning.LightningModule):
    def __init__(self, classes, hidden, lr):
        super().__init__()
        self.lr = lr
        self.embedding = nn.Embedding(256, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * hidden, classes)
        self.accuracy = MulticlassAccuracy(classes, average="micro")
        self.f1 = MulticlassF1Score(classes)

    def forward(self, texts, mask):
        """Averages over the steps that belong to the line."""
        h, _ = self.lstm(self.embedding(texts))
        weight = mask.unsqueeze(2).to(h.dtype)
        return self.fc(self.dropout((h * weight).sum(1) / weight.sum(1)))

    def training_step(self, batch, _):
        texts, mask, labels = batch
        loss = nn.functional.cross_entropy(self(texts, mask), labels)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        texts, mask, labels = batch
        logits = self(texts, mask)
        self.accuracy.update(logits, labels)
        self.f1.update(logits, labels)
        self.log("validation_loss", nn.functional.cross_entropy(logits, labels))
        self.log_dict({"validation_accuracy": self.accuracy, "validation_f1": self.f1})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


def collate(samples):
    """Turns lines of different lengths into bytes [N, T], mask [N, T] and labels [N]."""
    texts = pad_sequence([text for text, _ in samples], batch_first=True)
    lengths = torch.tensor([len(text) for text, _ in samples])
    mask = torch.arange(texts.shape[1]) < lengths.unsqueeze(1)
    return texts, mask, torch.tensor([label for _, label in samples])


def drawn_lines(count):
    syllables = [
        ["ka", "to", "mi", "ra", "no"],
        ["sch", "ein", "ber", "ung", "tal"],
        ["la", "que", "ción", "mar", "no"],
        ["ka", "lli", "mar", "tö", "nen"],
    ]
    draw = random.Random(11)
    words = ["".join(draw.choices(syllables[i % 4], k=draw.randint(2, 5))) for i in range(count)]
    return ["kato", "schein", "laque", "kalli"], [(word, i % 4) for i, word in enumerate(words)]


def read_lines(folder):
    files = sorted(pathlib.Path(folder).glob("*.txt"))
    if len(files) < 2:
        raise SystemExit(f"{folder}: got {len(files)} files *.txt, expected one per class")
    lines = [(line, i) for i, file in enumerate(files) for line in file.read_text().splitlines()]
    return [file.stem for file in files], [(line, label) for line, label in lines if line]


def main():
    parser = shared.parser(
        "lstm_classifier", "Trains an LSTM that classifies lines of text.", epochs=10, lr=3e-3
    )
    parser.add_argument("--hidden", type=int, default=64, help="size of the LSTM, each direction")
    flags = shared.start(parser)
    names, lines = read_lines(flags.data) if flags.data else drawn_lines(4000)
    samples = [(torch.tensor(list(text.encode())), label) for text, label in lines]
    train, validation = random_split(samples, [0.8, 0.2])
    train_loader = DataLoader(train, flags.batch, shuffle=True, collate_fn=collate)
    validation_loader = DataLoader(validation, flags.batch, collate_fn=collate)
    net = Net(len(names), flags.hidden, flags.lr)
    trainer = shared.trainer(flags, patience=3, gradient_clip_val=1)
    shared.fit(flags, trainer, net, train_loader, validation_loader)
    torch.save(net.state_dict(), flags.run / "model.pt")
    result = trainer.validate(net, validation_loader, verbose=False)[0]
    accuracy, f1 = result["validation_accuracy"], result["validation_f1"]
    print(f"validation accuracy: {100 * accuracy:.2f}%, f1: {f1:.4f}")


if __name__ == "__main__":
    main()
