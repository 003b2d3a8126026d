#!/usr/bin/env python3
"""Writes cases.txt: metrics of small random data by scikit-learn. Only this script needs it.

    pip install scikit-learn && python3 generate_cases.py

"data NAME" is followed by "scores N C" and "targets N L" with the numbers in row-major order, then by
lines "value METRIC COUNT" with what the metrics give on these data. cases_test.cpp knows the names.
"""
import pathlib

import numpy as np
import sklearn
from sklearn import metrics as sk

random = np.random.default_rng(20240611)
lines = [f"# scikit-learn {sklearn.__version__}, by generate_cases.py"]


def numbers(x):
    return " ".join(repr(v.item()) for v in np.asarray(x).reshape(-1))


def table(word, x):
    x = np.asarray(x)
    x = x.reshape(len(x), -1)
    lines.append(f"{word} {x.shape[0]} {x.shape[1]} {numbers(x)}")


def data(name, scores, targets):
    lines.append(f"data {name}")
    table("scores", scores)
    table("targets", targets)


def value(metric, values):
    values = np.asarray(values, dtype=np.float64).reshape(-1)
    lines.append(f"value {metric} {len(values)} {numbers(values)}")


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def multiclass(name, n, classes, absent=()):
    logits = random.normal(size=(n, classes)).astype(np.float32)
    target = random.choice([c for c in range(classes) if c not in absent], size=n)
    logits[np.arange(n), target] += 1
    logits[:, list(absent)] -= 9
    predicted = logits.argmax(1)
    every = list(range(classes))
    data(name, logits, target)
    value("accuracy", sk.accuracy_score(target, predicted))
    for k in (1, 2, 3):
        value(f"top{k}", sk.top_k_accuracy_score(target, logits, k=k, labels=every))
    value("confusion", sk.confusion_matrix(target, predicted, labels=every))
    value("balanced_accuracy", sk.balanced_accuracy_score(target, predicted))
    for metric, score in (("precision", sk.precision_score), ("recall", sk.recall_score)):
        value(metric, score(target, predicted, labels=every, average=None, zero_division=np.nan))
    for average in ("macro", "micro", "weighted"):
        value(f"f1_{average}", sk.f1_score(target, predicted, average=average))
    value("perplexity", np.exp(sk.log_loss(target, softmax(logits), labels=every)))
    if absent:
        return
    value("auroc", sk.roc_auc_score(target, softmax(logits), multi_class="ovr", average="macro"))
    coarse = np.floor(softmax(logits) * 16) / 16  # ties
    coarse[:, 0] += 1 - coarse.sum(1)
    data(name + "_probabilities", coarse, target)
    value("auroc_probabilities", np.mean([sk.roc_auc_score(target == c, coarse[:, c]) for c in every]))


def binary(n):
    scores = np.round(random.normal(size=n) * 4).astype(np.float32) / 4  # ties
    target = (random.normal(size=n) + scores > 0).astype(int)
    predicted = (scores > 0).astype(int)
    data("binary", scores, target)
    value("binary_accuracy", sk.accuracy_score(target, predicted))
    value("binary_f1_binary", sk.f1_score(target, predicted))
    value("binary_f1_macro", sk.f1_score(target, predicted, average="macro"))
    value("binary_confusion", sk.confusion_matrix(target, predicted))
    value("binary_auroc", sk.roc_auc_score(target, scores))


def multilabel(n, labels):
    scores = np.round(random.normal(size=(n, labels)) * 8).astype(np.float32) / 8
    target = (random.normal(size=(n, labels)) + scores > 0.3).astype(int)
    predicted = (scores > 0).astype(int)
    data("multilabel", scores, target)
    value("multilabel_accuracy", 1 - sk.hamming_loss(target, predicted))
    for average in ("macro", "micro", "weighted"):
        value(f"multilabel_f1_{average}", sk.f1_score(target, predicted, average=average))
    value("multilabel_auroc", sk.roc_auc_score(target, scores, average="macro"))


def regression(name, n, columns, offset):
    target = (random.normal(size=(n, columns)) + offset).astype(np.float32)
    output = (target + random.normal(size=(n, columns)) / 3).astype(np.float32)
    t, p = target.astype(np.float64), output.astype(np.float64)
    data(name, output, target)
    value("mae", sk.mean_absolute_error(t, p))
    value("mse", sk.mean_squared_error(t, p))
    value("rmse", np.sqrt(sk.mean_squared_error(t, p)))
    value("r2_uniform", sk.r2_score(t, p))
    value("r2_variance_weighted", sk.r2_score(t, p, multioutput="variance_weighted"))


multiclass("multiclass", 37, 4)
multiclass("absent", 23, 5, absent=(1, 3))
binary(41)
multilabel(29, 3)
regression("regression", 31, 1, 0)
regression("columns", 27, 3, [0, 10, -3])
regression("far", 33, 1, 10000)
pathlib.Path(__file__).with_name("cases.txt").write_text("\n".join(lines) + "\n")
