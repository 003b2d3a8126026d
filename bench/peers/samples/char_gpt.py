"""A character-level GPT: learns the text files in --data (*.txt), or a small text drawn by rule, and
writes 300 characters of its own."""

import pathlib
import random

import lightning
import shared
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics.text import Perplexity


class Windows(Dataset):
    def __init__(self, ids, context, stride):
        self.ids, self.context, self.stride = ids, context, stride

    def __len__(self):
        return (len(self.ids) - 1 - self.context) // self.stride + 1

    def __getitem__(self, i):
        window = self.ids[i * self.stride : i * self.stride + self.context + 1]
        return window[:-1], window[1:]


class GPT(lightning.LightningModule):
    def __init__(self, characters, flags, total):
        super().__init__()
        self.lr, self.total = flags.lr, total
        self.tokens = nn.Embedding(characters, flags.width)
        self.positions = nn.Embedding(flags.context, flags.width)
        layer = nn.TransformerEncoderLayer(
            flags.width,
            flags.heads,
            4 * flags.width,
            dropout=0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.blocks = nn.TransformerEncoder(
            layer, flags.layers, norm=nn.LayerNorm(flags.width), enable_nested_tensor=False
        )
        self.head = nn.Linear(flags.width, characters)
        self.perplexity = Perplexity()
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        nn.init.normal_(self.positions.weight, 0, 0.02)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=ids.device)
        h = self.tokens(ids) + self.positions(torch.arange(length, device=ids.device))
        return self.head(self.blocks(h, mask=mask, is_causal=True))

    def training_step(self, batch, _):
        tokens, targets = batch
        loss = nn.functional.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        tokens, targets = batch
        logits = self(tokens)
        self.perplexity.update(logits.float(), targets)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.log_dict({"validation_loss": loss, "validation_perplexity": self.perplexity})

    def configure_optimizers(self):
        adam = torch.optim.AdamW(self.parameters(), self.lr, betas=(0.9, 0.99), weight_decay=0.1)
        schedule = shared.warmup_cosine(adam, self.total // 50, self.total, 0.1)
        return [adam], [{"scheduler": schedule, "interval": "step"}]


def drawn_text(sentences):
    """Sentences of a small grammar, for a trial without files."""
    words = [
        ["a small", "the red", "every old", "one quiet"],
        [" bird", " river", " teacher", " ship"],
        [" sees", " follows", " remembers", " leaves"],
        [" the sea", " a friend", " its name", " two trees"],
    ]
    draw = random.Random(7)
    return "".join("".join(map(draw.choice, words)) + ".\n" for _ in range(sentences))


def read_text(folder):
    text = "".join(path.read_text() for path in sorted(pathlib.Path(folder).glob("*.txt")))
    if not text:
        raise SystemExit(f"{folder}: got no text, expected files *.txt")
    return text


@torch.no_grad()
def generate(gpt, characters, context, temperature):
    gpt.eval()
    ids = [0]
    while len(ids) <= 300:
        logits = gpt(torch.tensor([ids[-context:]], device=gpt.device))[0, -1]
        ids.append(torch.multinomial((logits.float() / temperature).softmax(0), 1).item())
    return "".join(characters[i] for i in ids[1:])


def main():
    description = "Trains a character-level GPT and lets it write."
    parser = shared.parser("char_gpt", description, epochs=0, steps=6000, batch=32, lr=2e-3)
    parser.add_argument("--layers", type=int, default=4, help="of the transformer")
    parser.add_argument("--width", type=int, default=128, help="of the embedding")
    parser.add_argument("--heads", type=int, default=4, help="of the attention")
    parser.add_argument("--context", type=int, default=128, help="characters that the model sees")
    parser.add_argument("--temperature", type=float, default=0.8, help="of the text it writes")
    flags = shared.start(parser)
    text = read_text(flags.data) if flags.data else drawn_text(2000)
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    ids = torch.tensor([index[character] for character in text])
    cut = len(ids) * 9 // 10
    train = Windows(ids[:cut], flags.context, flags.context // 2)
    validation = Windows(ids[cut:], flags.context, flags.context)
    train_loader = DataLoader(train, flags.batch, shuffle=True, drop_last=True)
    validation_loader = DataLoader(validation, flags.batch)
    total = shared.total_steps(flags, train_loader)
    gpt = GPT(len(characters), flags, total)
    trainer = shared.trainer(
        flags,
        patience=0,
        gradient_clip_val=1,
        val_check_interval=max(total // 10, 1),
        check_val_every_n_epoch=None,
    )
    shared.fit(flags, trainer, gpt, train_loader, validation_loader)
    torch.save(gpt.state_dict(), flags.run / "model.pt")
    result = trainer.validate(gpt, validation_loader, verbose=False)[0]
    print(generate(gpt, characters, flags.context, flags.temperature))
    print(
        f"validation loss: {result['validation_loss']:.4f}, "
        f"perplexity: {result['validation_perplexity']:.4f}"
    )


if __name__ == "__main__":
    main()
