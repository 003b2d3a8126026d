"""Names the most probable classes of pictures: predict.py RUN/classifier.pt a.jpg b.png
Classifiers are those that finetune.py saves."""

import sys

import shared
import torch
import torchvision
from PIL import Image
from torchvision import transforms

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@torch.no_grad()
def main():
    without = ["data", "epochs", "steps", "batch", "lr", "seed", "run", "checkpoint_every"]
    parser = shared.parser("predict", "Names the most probable classes of pictures.", without)
    parser.add_argument("--top", type=int, default=5, help="classes to name")
    parser.add_argument("model", help="a file of finetune.py")
    parser.add_argument("files", nargs="+", help="pictures")
    flags = shared.start(parser)
    saved = torch.load(flags.model)
    model = torchvision.models.resnet18(num_classes=len(saved["names"]))
    model.load_state_dict(saved["weights"])
    model.eval().to(flags.device)
    size = (saved["size"], saved["size"])
    transform = transforms.Compose(
        [transforms.Resize(size), transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]
    )
    named = 0
    for file in flags.files:
        try:
            image = transform(Image.open(file).convert("RGB")).unsqueeze(0).to(flags.device)
        except OSError as error:
            print(error, file=sys.stderr)
            continue
        low = torch.bfloat16 if flags.precision == "bf16" else torch.float16
        with torch.autocast(flags.device, low, enabled=flags.precision != "fp32"):
            logits = model(image)[0]
        best = logits.float().softmax(0).topk(min(flags.top, len(saved["names"])))
        shares = zip(best.indices.tolist(), best.values.tolist())
        print(f"{file}: " + ", ".join(f"{saved['names'][i]} {100 * p:.1f}%" for i, p in shares))
        named += 1
    print(f"pictures named: {named} of {len(flags.files)}")
    return 0 if named == len(flags.files) else 1


if __name__ == "__main__":
    sys.exit(main())
