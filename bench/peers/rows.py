"""The rows of the comparison: the one table of what bench/peers times, by name.

Work with a model is a step (train, infer, generate), a model, a batch and the optimizer's rule; models are
in model_table.cpp and torch_table.py. Other rows time single ops (work.cpp, torch_ops.py)."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    step: str = "op"
    model: str = ""
    batch: int = 0
    rule: str = "-"  # sgd, sgd_decay, adam, adam_gan

    @property
    def has_model(self):
        return self.step != "op"


SMALL_BATCH_MODELS = {
    "mlp": "MLP 784-512-512-10",
    "mnist_cnn": "MNIST CNN",
    "resnet18": "ResNet-18 on 32x32",
    "depthwise": "depthwise-separable net on 32x32",
    "lstm": "LSTM language model 2x256, 35 steps",
    "vit": "transformer on 4x4 patches, 6x192, 32x32",
}


def small_batches():
    """Rows for the inference of six models, with one and with four samples."""
    return {f"{model}_b{batch}": Row(f"{title}, batch {batch}: inference", "infer", model, batch)
            for model, title in SMALL_BATCH_MODELS.items() for batch in (1, 4)}


ROWS = {
    "mlp": Row("MLP 784-512-512-10, batch 64, SGD with momentum: step", "train", "mlp", 64, "sgd"),
    "mlp_adam": Row("MLP 784-512-512-10, batch 64, Adam: step", "train", "mlp", 64, "adam"),
    "mlp_4096": Row("MLP 784-512-512-10, batch 4096, SGD with momentum: step", "train", "mlp", 4096, "sgd"),
    "mnist_cnn": Row("MNIST CNN, batch 64: step", "train", "mnist_cnn", 64, "sgd"),
    "resnet18": Row("ResNet-18 on 32x32, batch 32: step", "train", "resnet18", 32, "sgd_decay"),
    "resnet18_inference": Row("ResNet-18 on 32x32, batch 32: inference", "infer", "resnet18", 32),
    "char_gpt": Row("char-GPT 4x128, context 128, batch 16, Adam: step", "train", "char_gpt", 16, "adam"),
    "depthwise": Row("depthwise-separable net on 32x32, batch 32: step", "train", "depthwise", 32, "sgd_decay"),
    "resnext": Row("ResNeXt (32 groups, 6 blocks) on 32x32, batch 16: step", "train", "resnext", 16, "sgd_decay"),
    "resnet50": Row("ResNet-50 on 64x64, batch 16: step", "train", "resnet50", 16, "sgd_decay"),
    "unet": Row("U-Net 32-64-128 on 64x64, batch 8, Adam: step", "train", "unet", 8, "adam"),
    "vit": Row("transformer on 4x4 patches, 6x192, 32x32, batch 32, Adam: step", "train", "vit", 32, "adam"),
    "gpt": Row("char-GPT 6x384, context 256, batch 4, Adam: step", "train", "gpt", 4, "adam"),
    "lstm": Row("LSTM language model 2x256, 35 steps, batch 32, Adam: step", "train", "lstm", 32, "adam"),
    "gru": Row("GRU language model 2x256, 35 steps, batch 32, Adam: step", "train", "gru", 32, "adam"),
    "vae": Row("VAE 784-400-20, batch 128, Adam: step", "train", "vae", 128, "adam"),
    "gan": Row("DCGAN on 32x32, batch 64, Adam: step of both nets", "train", "gan", 64, "adam_gan"),
    **small_batches(),
    "generate": Row("char-GPT 4x128, context 128, no cache: per token", "generate", "char_gpt", 1),
    "generate_gpt": Row("char-GPT 6x384, context 256, no cache: per token", "generate", "gpt", 1),
    "copy": Row("copy of 16M floats"),
    "gelu": Row("gelu (erf), 16M floats"),
    "gelu_tanh": Row("gelu (tanh), 16M floats"),
    "tanh": Row("tanh, 16M floats"),
    "softmax": Row("softmax, rows of 1024, 16M floats"),
    "layer_norm": Row("layer norm, rows of 1024, 16M floats"),
    "add": Row("a + b of one number, recorded: per op"),
    "chain_forward": Row("chain of 100 such ops, recorded: per op"),
    "chain": Row("the same with backward: per op"),
}


def spec_of(row):
    """The name of work with a model that both sides parse."""
    return f"{row.step}:{row.model}:{row.batch}:{row.rule}"


def find(name):
    """Finds a row by its name, or makes one from STEP:MODEL:BATCH:RULE."""
    if name in ROWS:
        return ROWS[name]
    fields = name.split(":")
    if len(fields) != 4 or not fields[2].isdigit():
        raise ValueError(f"got work '{name}', expected STEP:MODEL:BATCH:RULE or some of {','.join(ROWS)}")
    return Row(name, fields[0], fields[1], int(fields[2]), fields[3])


def spec(name):
    """The name of a row that both sides parse: STEP:MODEL:BATCH:RULE, or the name of an op."""
    return spec_of(find(name)) if find(name).has_model else name
