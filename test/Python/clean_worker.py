"""The wheel where there is nothing but libc and Python: README's example, and three models of transformers
beside what PyTorch computes without linattn; test_wheel.py runs it in tools/wheel/clean.sh.

Prints where the package is, the programs of the system, and the differences.
"""

import os
import pathlib
import re
import sys

sys.path[:0], sys.path[len(sys.path) :] = ["/packages", "/tests"], ["/site"]

import linattn  # noqa: E402
import numpy as np  # noqa: E402


def readme():
    """The difference of README's layer from the formula in float64."""
    blocks = re.findall(r"```python\n(.*?)```", pathlib.Path("/tests/README.md").read_text(), re.DOTALL)
    (block,) = (block for block in blocks if block.startswith("import numpy as np, linattn"))
    names = {}
    exec(block.replace("o = linattn.attention(q, k, v, causal=True)  ", "first = linattn.attention(q, k, v, causal=True)"), names)
    q, k, v = (np.float64(names[name]).transpose(0, 2, 1, 3) for name in "qkv")
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    weights = np.tril(q @ k.transpose(0, 1, 3, 2))
    expected = (weights @ v / weights.sum(-1, keepdims=True)).transpose(0, 2, 1, 3)
    last = np.abs(names["o_t"] - expected[:, -1:]).max()
    return max(np.abs(names["first"] - expected).max(), last)


def model(name):
    """The relative difference of a model's logits, and how many of its functions run here."""
    import torch
    from transformers_models import make_model, make_tokens

    import linattn.transformers as lt

    made, (tokens, mask) = make_model(name), make_tokens()
    with torch.no_grad():
        plain = made(tokens, attention_mask=mask).logits
        lt.enable()
        mine = made(tokens, attention_mask=mask).logits
    taken = sum(bool(entry.taken) for entry in lt.status()[name])
    lt.disable()
    assert taken
    return float((mine - plain).abs().max() / plain.abs().max())


if __name__ == "__main__":
    print(linattn.__file__, *sorted(os.listdir("/usr/bin")))
    print("readme", readme())
    for name in ("qwen3_next", "kimi_linear", "mamba2"):
        print(name, model(name))
