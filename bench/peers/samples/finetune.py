"""Fine-tuning: the body of a ResNet that was trained on one folder of pictures learns another one.

  finetune.py --pretrain --data cifar10/images --run runs/body
  finetune.py --data raccoon_kangaroo --body runs/body/classifier.pt [--all-folds]

One of five folds is for validation (duplicates stay in one fold, broken files are left out and named);
--all-folds trains on each of them twice, with the body and from scratch."""

import copy
import hashlib
import pathlib

import lightning
import shared
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix
from torchvision import transforms
from torchvision.datasets import ImageFolder

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Classifier(lightning.LightningModule):
    def __init__(self, classes, lr, pretrained, total):
        super().__init__()
        self.lr, self.pretrained, self.total = lr, pretrained, total
        self.model = torchvision.models.resnet18(num_classes=classes)
        self.accuracy = MulticlassAccuracy(classes, average="micro")
        self.confusion = MulticlassConfusionMatrix(classes)

    def training_step(self, batch, _):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def on_validation_epoch_start(self):
        self.confusion.reset()

    def validation_step(self, batch, _):
        images, labels = batch
        logits = self.model(images)
        self.accuracy.update(logits, labels)
        self.confusion.update(logits, labels)
        self.log("validation_loss", nn.functional.cross_entropy(logits, labels))
        self.log("validation_accuracy", self.accuracy)

    def rate(self, name):
        """Parameter groups: the first half of the body, the second half, the new head."""
        if not self.pretrained or name.startswith("fc"):
            return self.lr
        return self.lr / 3 if name.startswith(("layer3", "layer4")) else self.lr / 10

    def configure_optimizers(self):
        groups = {}
        for name, parameter in self.model.named_parameters():
            groups.setdefault(self.rate(name), []).append(parameter)
        groups = [{"params": parameters, "lr": lr} for lr, parameters in groups.items()]
        adam = torch.optim.AdamW(groups, weight_decay=0.05)
        schedule = shared.warmup_cosine(adam, self.total // 10, self.total, 0.05)
        return [adam], [{"scheduler": schedule, "interval": "step"}]


def is_whole(path):
    try:
        Image.open(path).load()
        return True
    except OSError as error:
        print(f"left out: {path}: {error}")
        return False


def open_part(folder, part, transform):
    return ImageFolder(pathlib.Path(folder, part), transform, is_valid_file=is_whole)


def print_report(confusion, names):
    for name, row, column in zip(names, confusion, confusion.T):
        hits = row[names.index(name)]
        precision, recall = hits / column.sum().clamp(1), hits / row.sum().clamp(1)
        print(f"{name}: {row.tolist()}, precision {precision:.4f}, recall {recall:.4f}")


def train_on(train, validation, names, flags, pretrained):
    """Returns the best accuracy on validation, in percent."""
    torch.manual_seed(flags.seed)
    train_loader = DataLoader(train, flags.batch, shuffle=True, drop_last=True)
    validation_loader = DataLoader(validation, flags.batch)
    total = shared.total_steps(flags, train_loader)
    classifier = Classifier(len(names), flags.lr, pretrained, total)
    if pretrained:
        body = torch.load(flags.body)["weights"]
        body = {key: value for key, value in body.items() if not key.startswith("fc.")}
        classifier.model.load_state_dict(body, strict=False)
    trainer = shared.trainer(flags, "validation_accuracy", "max", patience=8)
    shared.fit(flags, trainer, classifier, train_loader, validation_loader)
    result = trainer.validate(classifier, validation_loader, verbose=False)[0]
    print_report(classifier.confusion.compute(), names)
    weights = classifier.model.state_dict()
    saved = {"names": names, "size": flags.image_size, "weights": weights}
    torch.save(saved, flags.run / "classifier.pt")
    return 100 * result["validation_accuracy"]


def compare(folds, names, flags):
    """Trains on every fold, with the body and from scratch."""
    with_body, gains = [], []
    for i, fold in enumerate(folds):
        own = copy.copy(flags)
        own.run = flags.run / f"fold-{i}"
        with_body.append(train_on(*fold, names, own, True))
        own.run = flags.run / f"fold-{i}-scratch"
        scratch = train_on(*fold, names, own, False)
        gains.append(with_body[-1] - scratch)
        print(f"fold {i}: {with_body[-1]:.2f}%, from scratch {scratch:.2f}%")
    gain = torch.tensor(gains)
    print(
        f"validation accuracy: {sum(with_body) / len(folds):.2f}%, gain over scratch: "
        f"{gain.mean():.2f} (standard error {gain.std() / len(folds) ** 0.5:.2f})"
    )


def main():
    parser = shared.parser(
        "finetune", "Fine-tunes a pretrained ResNet on a folder of pictures.", epochs=30, batch=32
    )
    parser.add_argument("--body", default="", help="a model of --pretrain")
    parser.add_argument("--pretrain", action="store_true", help="train a body on --data")
    parser.add_argument("--all-folds", action="store_true", help="train on each fold, twice")
    parser.add_argument("--image-size", type=int, default=32, help="of the model's input")
    flags = shared.start(parser)
    if not flags.data:
        flags.data = "runs/glyphs"
        shared.draw_glyphs(flags.data, train=600, test=200)
    size = (flags.image_size, flags.image_size)
    end = [transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]
    crop = [transforms.RandomResizedCrop(size, (0.4, 1)), transforms.RandomHorizontalFlip()]
    augmented = transforms.Compose(crop + end)
    plain = transforms.Compose([transforms.Resize(size)] + end)
    train = open_part(flags.data, "train", augmented)
    names = train.classes
    if flags.pretrain:
        accuracy = train_on(train, open_part(flags.data, "test", plain), names, flags, False)
        print(f"validation accuracy: {accuracy:.2f}%")
        return
    if not flags.body:
        raise SystemExit("got neither --pretrain nor --body FILE")
    parts = [train, open_part(flags.data, "test", augmented)]
    files = [pathlib.Path(path).read_bytes() for part in parts for path, _ in part.samples]
    fold_of = [hashlib.md5(file).digest()[0] % 5 for file in files]
    pictures = ConcatDataset(parts)
    plain_parts = copy.deepcopy(parts)
    for part in plain_parts:
        part.transform = plain
    plain_pictures = ConcatDataset(plain_parts)
    folds = []
    for i in range(5):
        rest = Subset(pictures, [j for j, fold in enumerate(fold_of) if fold != i])
        folds.append((rest, Subset(plain_pictures, [j for j, f in enumerate(fold_of) if f == i])))
    if flags.all_folds:
        compare(folds, names, flags)
    else:
        print(f"validation accuracy: {train_on(*folds[0], names, flags, True):.2f}%")


if __name__ == "__main__":
    main()
