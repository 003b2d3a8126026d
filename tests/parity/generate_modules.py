#!/usr/bin/env python3
"""Writes the parity cases of modules: generate_modules.py [OUT], by default cases/.

A case is a module whose parameters are inputs under their names, run by tests/parity/module_ops.cpp. The format and
everything else are those of generate.py, which also runs this.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

import generate
from generate import Family, normal


def given(rows, dtype=torch.bool):
    return ("values", torch.tensor(rows, dtype=dtype))


def run(module, parameters, *inputs, **more):
    return functional_call(module.double(), parameters, inputs, more)


def mha(query, key, value, heads, batch_first, key_padding=None, mask=None, **parameters):
    module = nn.MultiheadAttention(query.shape[2], heads, batch_first=batch_first, kdim=key.shape[2],
                                   vdim=value.shape[2])
    return run(module, parameters, query, key, value, key_padding_mask=key_padding, attn_mask=mask,
               need_weights=False)[0]


def layer_options(x, heads, feedforward, norm_first, activation):
    return {"d_model": x.shape[2], "nhead": heads, "dim_feedforward": feedforward, "dropout": 0.0,
            "activation": activation, "batch_first": True, "norm_first": norm_first}


def encoder(x, layers, key_padding, mask, heads, feedforward, norm_first, activation, **parameters):
    layer = nn.TransformerEncoderLayer(**layer_options(x, heads, feedforward, norm_first, activation))
    norm = nn.LayerNorm(x.shape[2]) if "norm.weight" in parameters else None
    module = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
    return run(module, parameters, x, mask=mask, src_key_padding_mask=key_padding)


def decoder(x, memory, layers, key_padding, mask, heads, feedforward, norm_first, activation, **parameters):
    layer = nn.TransformerDecoderLayer(**layer_options(x, heads, feedforward, norm_first, activation))
    norm = nn.LayerNorm(x.shape[2]) if "norm.weight" in parameters else None
    return run(nn.TransformerDecoder(layer, layers, norm), parameters, x, memory, tgt_mask=mask,
               memory_key_padding_mask=key_padding)


def lstm_cell(x, h0, c0, **parameters):
    h, c = run(nn.LSTMCell(x.shape[1], h0.shape[1]), parameters, x, (h0, c0))
    return {"h": h, "c": c}


generate.REFERENCE.update({
    "module_mha": mha, "module_encoder": encoder, "module_decoder": decoder, "module_lstm_cell": lstm_cell,
    "module_gru_cell": lambda x, h0, **p: run(nn.GRUCell(x.shape[1], h0.shape[1]), p, x, h0),
    "module_rnn_cell": lambda x, h0, nonlinearity, **p: run(
        nn.RNNCell(x.shape[1], h0.shape[1], nonlinearity=nonlinearity), p, x, h0),
    "module_glu": lambda x, dim: F.glu(x, dim),
    "module_prelu": lambda x, weight: F.prelu(x, weight),
    "sdpa_gqa": lambda q, k, v, is_causal, mask=None: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=True),
})


def linear(name, rows, columns):
    return {f"{name}.weight": normal(rows, columns, scale=0.5), f"{name}.bias": normal(rows, scale=0.5)}


def attention(name, embed):
    return {f"{name}.in_proj_weight": normal(3 * embed, embed, scale=0.5), f"{name}.in_proj_bias": normal(3 * embed),
            **linear(f"{name}.out_proj", embed, embed)}


def layer(prefix, embed, feedforward, is_decoder):
    norms = {f"{prefix}.norm{i}.{part}": normal(embed) for i in range(1, 4 if is_decoder else 3)
             for part in ("weight", "bias")}
    other = attention(f"{prefix}.multihead_attn", embed) if is_decoder else {}
    return {**attention(f"{prefix}.self_attn", embed), **other, **linear(f"{prefix}.linear1", feedforward, embed),
            **linear(f"{prefix}.linear2", embed, feedforward), **norms}


def stacks(f):
    embed, feedforward, batch, length, keys = 4, 6, 2, 3, 4
    later = given([[j > i for j in range(length)] for i in range(length)])
    for norm_first, activation, count in ((False, "relu", 1), (True, "gelu", 2)):
        attrs = {"layers": count, "heads": 2, "feedforward": feedforward, "norm_first": norm_first,
                 "activation": activation}
        norm = {"norm.weight": normal(embed), "norm.bias": normal(embed)} if norm_first else {}
        for op, size in (("module_encoder", length), ("module_decoder", keys)):
            parameters = {}
            for i in range(count):
                parameters.update(layer(f"layers.{i}", embed, feedforward, op == "module_decoder"))
            padded = given([[False] * size, [False] * (size - 1) + [True]])
            memory = {"memory": normal(batch, keys, embed)} if op == "module_decoder" else {}
            inputs = {"x": normal(batch, length, embed), **memory, "key_padding": padded,
                      "mask": later if norm_first else None, **parameters, **norm}
            # No 16-bit cases: rounding moves activations over the kink of relu, which changes single gradients.
            f.case(f"{op}-{len(f.cases)}", op, inputs, attrs, 400, False, None)


def modules():
    """Modules that are made of several ops: attention, transformers, cells, GLU, PReLU."""
    f = Family("modules")
    batch, length, keys, embed = 2, 3, 4, 6
    later = given([[j > i for j in range(keys)] for i in range(length)])
    padded = given([[False, False, False, True], [False, False, True, True]])
    for batch_first, key_padding, mask in ((True, padded, None), (False, padded, later), (True, None, None)):
        shape = (lambda n: (batch, n, embed)) if batch_first else (lambda n: (n, batch, embed))
        parameters = {"in_proj_weight": normal(3 * embed, embed, scale=0.5), "in_proj_bias": normal(3 * embed),
                      **linear("out_proj", embed, embed)}
        f.add("module_mha", {"query": normal(*shape(length)), "key": normal(*shape(keys)),
                             "value": normal(*shape(keys)), "key_padding": key_padding, "mask": mask, **parameters},
              {"heads": 2, "batch_first": batch_first}, length=100)
    stacks(f)
    size, hidden = 3, 5
    for gates, op, more in ((1, "rnn", {"nonlinearity": "tanh"}), (1, "rnn", {"nonlinearity": "relu"}), (3, "gru", {}),
                            (4, "lstm", {})):
        state = {"h0": normal(batch, hidden), **({"c0": normal(batch, hidden)} if op == "lstm" else {})}
        rows = gates * hidden
        f.add(f"module_{op}_cell", {
            "x": normal(batch, size), **state, "weight_ih": normal(rows, size, scale=0.4),
            "weight_hh": normal(rows, hidden, scale=0.4), "bias_ih": normal(rows), "bias_hh": normal(rows)}, more,
            length=50)
    for sizes, dim in (((3, 4), -1), ((2, 6, 3), 1)):
        f.add("module_glu", {"x": normal(*sizes)}, {"dim": dim}, length=4)
    f.add("module_prelu", {"x": normal(4, 5), "weight": normal(1)}, length=20)
    f.add("module_prelu", {"x": normal(2, 3, 4), "weight": normal(3)}, length=8)
    for causal, mask in ((False, None), (True, None), (False, normal(length, keys)), (False, normal(1, 4, length, keys))):
        f.add("sdpa_gqa", {"q": normal(batch, 4, length, embed), "k": normal(batch, 2, keys, embed),
                           "v": normal(batch, 2, keys, 5), "mask": mask}, {"is_causal": causal}, length=60)
    return f


if __name__ == "__main__":
    modules().write(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "cases")
