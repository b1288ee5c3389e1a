"""Gradients of the ops around scans beside autograd of their formulas in float64."""

import re

import numpy as np
import pytest

import linattn

torch = pytest.importorskip("torch")

B, H, T, C, N = 2, 2, 11, 6, 3


def tensor(*shape, dtype="f32"):
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"


def write(op, operands, dests, results=None, clauses=""):
    """@f with one op: `op` names its operands, `dests` are the shapes of %dest0, %dest1, …."""
    types = {name: tensor(*x.shape) for name, x in operands.items()}
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    types |= {f"dest{i}": tensor(*shape) for i, shape in enumerate(dests)}
    empties = [f"%dest{i} = tensor.empty() : {types[f'dest{i}']}" for i in range(len(dests))]
    returned = ", ".join(tensor(*shape) for shape in results or dests)
    values = ", ".join(f"%r{i}" for i in range(len(results or dests)))
    taken = ", ".join(types[name] for name in re.findall(r"%(\w+)", op))
    return "\n".join([
        f"func.func @f({arguments}) -> ({returned}) {{", *empties,
        f"{values} = {op}{clauses} : ({taken}) -> ({returned})", f"return {values} : {returned}", "}",
    ])  # fmt: skip


def check(text, operands, formula, bound=1e-5):
    """Every gradient of @f beside that of `formula`."""
    kernel = linattn.compile(text, differentiate=[], trusted=True)
    wide = {name: torch.tensor(x.astype(np.float64), requires_grad=True) for name, x in operands.items()}
    outputs = formula(**wide)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(o.shape).astype(np.float32) for o in outputs]
    expected = torch.autograd.grad(outputs, list(wide.values()), [torch.tensor(x.astype(np.float64)) for x in cotangents])
    got = kernel(*operands.values(), *cotangents)
    for name, mine, other in zip(operands, got if isinstance(got, tuple) else (got,), expected):
        other = other.numpy()
        assert mine.shape == other.shape, name
        error = np.abs(mine - other).max() / np.abs(other).max()
        assert error <= bound, f"{name}: {error}"


def draw(**shapes):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


NORMS = {"rms": lambda x: x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt(),
         "layer": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5)}  # fmt: skip


@pytest.mark.parametrize("kind, first", [("rms", False), ("layer", True)])
def test_output_norm(kind, first):
    operands = draw(x=(B, H, T, C), w=(C,), b=(H, C), g=(B, H, T, C), s=(B, H, T, C), sw=(C,))
    operands["g"][0, 0, 0] = -200  # silu's exponential overflows there
    op = f"linattn.output_norm %x kind({kind}) weight(%w) bias(%b) gate(%g) skip(%s) skip_weight(%sw) into(%dest0)"
    text = write(op, operands, [(B, H, T, C)], clauses=f" {{{'gate_first, ' if first else ''}weight_offset = 1.0}}")

    def formula(x, w, b, g, s, sw):
        x = x + sw * s
        x = NORMS[kind](x * torch.nn.functional.silu(g) if first else x)
        x = x * (w + 1) + b[:, None]
        return x if first else x * torch.nn.functional.silu(g)

    check(text, operands, formula)


@pytest.mark.parametrize("reverse", [False, True])
def test_causal_conv(reverse):
    width, dilation, length = 3, 2, 5
    operands = draw(x=(B, T, C), w=(C, width), b=(C,), s=(B, C, length))
    op = "linattn.causal_conv %x, %w bias(%b) activation(silu) into(%dest0) init(%s)"
    clauses = f" {{dilation = {dilation}{', reverse' if reverse else ''}}}"
    text = write(op, operands, [(B, T, C)], [(B, T, C), (B, C, length)], clauses)

    def formula(x, w, b, s):
        x = x.flip(1) if reverse else x
        inputs = torch.cat([s.transpose(1, 2), x], 1)
        spare = length - (width - 1) * dilation
        y = b + sum(w[:, k] * inputs[:, spare + k * dilation :][:, :T] for k in range(width))
        y = torch.nn.functional.silu(y)
        return y.flip(1) if reverse else y, inputs[:, T:].transpose(1, 2)

    check(text, operands, formula)


@pytest.mark.parametrize("groups", [None, 2])
def test_selective_scan(groups):
    projection = (B, T, N) if groups is None else (B, groups, T, N)
    operands = draw(u=(B, T, C), dt=(B, T, C), a=(C, N), b=projection, c=projection, d=(C,), z=(B, T, C), bias=(C,),
                    h=(B, C, N))  # fmt: skip
    operands["a"] = -np.abs(operands["a"])
    op = "linattn.selective_scan %u, %dt, %a, %b, %c skip(%d) gate(%z) delta_bias(%bias) into(%dest0) init(%h)"
    text = write(op, operands, [(B, T, C)], [(B, T, C), (B, C, N)], " {delta_softplus}")

    def formula(u, dt, a, b, c, d, z, bias, h):
        delta = torch.nn.functional.softplus(dt + bias)
        if groups:
            b, c = (x.repeat_interleave(C // groups, 1).transpose(1, 2) for x in (b, c))
        else:
            b, c = b[:, :, None], c[:, :, None]
        ys = []
        for t in range(T):
            h = torch.exp(delta[:, t, :, None] * a) * h + (delta[:, t] * u[:, t])[..., None] * b[:, t]
            ys.append((c[:, t] * h).sum(-1))
        y = torch.stack(ys, 1) + d * u
        return y * torch.nn.functional.silu(z), h

    check(text, operands, formula)


@pytest.mark.parametrize("constant", [False, True])
def test_diagonal_scan(constant):
    operands = draw(x=(B, T, C), g=(C,) if constant else (B, T, C), h=(B, C))
    operands["g"] = -np.abs(operands["g"])
    op = "linattn.diagonal_scan %x decay(%g) into(%dest0) init(%h)"
    text = write(op, operands, [(B, T, C)], [(B, T, C), (B, C)], " {reverse}")

    def formula(x, g, h):
        outputs = [None] * T
        for t in reversed(range(T)):
            h = torch.exp(g if constant else g[:, t]) * h + x[:, t]
            outputs[t] = h
        return torch.stack(outputs, 1), h

    check(text, operands, formula)
