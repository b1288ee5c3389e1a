"""Gradients of the ops around scans beside autograd of their formulas in float64."""

import re

import gradient_oracle as oracle
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


def check(text, operands, formula, bound=1e-5, constants=()):
    """Every gradient of @f beside that of `formula`."""
    kernel = linattn.compile(text, differentiate=[], trusted=True)
    wide = {name: torch.tensor(x.astype(np.float64), requires_grad=True) for name, x in operands.items()}
    outputs = formula(**wide)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(o.shape).astype(np.float32) for o in outputs]
    expected = torch.autograd.grad(outputs, list(wide.values()), [torch.tensor(x.astype(np.float64)) for x in cotangents])
    got = kernel(*operands.values(), *constants, *cotangents)
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


@pytest.mark.parametrize("normalize", [False, True])
def test_scale(normalize):
    """A scale that is an operand has a gradient, too."""
    x = draw(q=(B, H, T, N), k=(B, H, T, N), v=(B, H, T, C), do=(B, H, T, C))
    x["q"], x["k"] = np.abs(x["q"]), np.abs(x["k"])
    qk, v = tensor(B, H, T, N), tensor(B, H, T, C)
    text = f"""func.func @f(%q: {qk}, %k: {qk}, %v: {v}, %scale: f64) -> {v} {{
      %o = linattn.attention %q, %k, %v scale(%scale) {{causal{", normalize = #linattn.normalize<eps = 1.0>" * normalize}}} : ({qk}, {qk}, {v}, f64) -> {v}
      return %o : {v} }}"""
    wide = {name: torch.tensor(array.astype(np.float64), requires_grad=True) for name, array in x.items()}
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    weights = (scale * wide["q"] @ wide["k"].transpose(-1, -2)).tril()
    o = weights @ wide["v"]
    if normalize:
        o = o / (weights.sum(-1, keepdim=True) + 1.0)
    expected = torch.autograd.grad(o, [wide["q"], wide["k"], wide["v"], scale], wide["do"])
    kernel = linattn.compile(text, differentiate=[], trusted=True)
    got = kernel(x["q"], x["k"], x["v"], 0.7, x["do"])
    for mine, other in zip(got, expected):
        assert np.abs(np.asarray(mine) - other.numpy()).max() <= 1e-5 * np.abs(other.numpy()).max()


def rolled(r, shifts):
    return torch.cat([r * r.roll(j, -1) for j in range(1, shifts + 1)], -1)


def rebased(y):
    rows = [y[..., i : i + 1] * y[..., :i] * (2 / D) ** 0.5 for i in range(1, D)]
    return torch.cat([y * y / D**0.5, *rows], -1)


def both(z):
    return torch.cat([z, -z], -1)


def lower(x, d):
    rows = [x[..., i : i + 1] * x[..., :i] for i in range(1, d)]
    return torch.cat([torch.ones_like(x[..., :1]), x / d**0.25, x**2 / (2 * d) ** 0.5, *(r / d**0.5 for r in rows)], -1)


def upper(y, z):
    return torch.cat([y[..., i : i + 1] * z[..., i:] for i in range(y.shape[-1])], -1)


M, D = 5, 4
MAPS = {  # features, parameters, the map of x·0.7 and its parameters
    "softmax": (D, "", lambda x: x.softmax(-1)),
    "l2norm": (D, "", lambda x: x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()),
    "sum_norm": (D, "", lambda x: x / (x.sum(-1, keepdim=True) + 1e-4)),
    "favor": (M, "w", lambda x, w: torch.exp(x @ w.T - x.square().sum(-1, keepdim=True) / 2) / M**0.5),
    "favor_hyperbolic": (
        2 * M, "p", lambda x, p: torch.exp(both(torch.einsum("bhtd,hmd->bhtm", x, p)) - x.square().sum(-1, keepdim=True) / 2) / (2 * M) ** 0.5,
    ),
    "random_fourier": (2 * M, "w", lambda x, w: torch.cat([(x @ w.T).sin(), (x @ w.T).cos()], -1) / M**0.5),
    "t2r": (M, "w, v", lambda x, w, v: torch.relu(x @ w.T + v)),
    "hadamard": (M, "w, u", lambda x, w, u: (x @ w.T) * (x @ u.T)),
    "hedgehog": (2 * D, "s", lambda x, s: both(x @ s.T).softmax(-1)),
    "hedgehog_exp": (2 * D, "s", lambda x, s: both(x @ s.T).exp()),
    "dpfp, shifts = 2": (4 * D, "", lambda x: rolled(torch.relu(both(x)), 2)),
    "taylor": (1 + D + D * (D + 1) // 2, "", lambda x: lower(x, D)),
    "rebased": (D * (D + 1) // 2, "c, e", lambda x, c, e: rebased(torch.nn.functional.layer_norm(x, (D,), c, e, 1e-5))),
    "outer_product": (D * (D + 1) // 2, "s, r", lambda x, s, r: upper(x @ s.T, x @ r.T)),
}  # fmt: skip


def test_token_maps():
    """All maps of one x, in one function."""
    operands = draw(x=(B, H, T, D), w=(M, D), u=(M, D), p=(H, M, D), v=(M,), s=(D, D), r=(D, D), c=(D,), e=(D,))
    operands["x"] = np.abs(operands["x"]) + 0.1  # sum_norm divides by the sum
    types = {name: tensor(*x.shape) for name, x in operands.items()}
    lines, results = [], []
    for i, (name, (features, names, _)) in enumerate(MAPS.items()):
        out = tensor(B, H, T, features)
        kind, *rest = name.split(", ")
        params = f" params({', '.join('%' + n for n in names.split(', '))})" if names else ""
        taken = ", ".join([types["x"], *(types[n] for n in names.split(", ") if n), out])
        attribute = ", ".join([kind, *rest, "scale = 0.7"])
        lines += [
            f"%e{i} = tensor.empty() : {out}",
            f"%f{i} = linattn.feature_map %x{params} into(%e{i}) {{feature_map = #linattn.feature_map<{attribute}>}} : ({taken}) -> {out}",
        ]  # fmt: skip
        results.append(out)
    values = ", ".join(f"%f{i}" for i in range(len(MAPS)))
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    returned = ", ".join(results)
    text = "\n".join([f"func.func @f({arguments}) -> ({returned}) {{", *lines, f"return {values} : {returned}", "}"])

    def formula(x, **parameters):
        return tuple(
            phi(0.7 * x, *(parameters[n] for n in names.split(", ") if n)) for _, names, phi in MAPS.values()
        )

    check(text, operands, formula)


@pytest.mark.parametrize("case", ["state", "stabilized", "causal", "softmax"])
def test_attention(case):
    """Grouped heads, a mask, a normalizer; exponentials that would overflow."""
    operands = draw(q=(B, 4, T, D), k=(B, 2, T, D), v=(B, 2, T, C))
    if case == "stabilized":
        operands["k"] += np.float32(200)
        operands["q"] += np.float32(100)
    mask = np.random.default_rng(2).random((B, T)) < 0.7
    mask[:, 0] = True
    attributes = {
        "state": "feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>",
        "stabilized": "feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-30>",
        "causal": "causal, feature_map = #linattn.feature_map<region>, scale = 0.5",
        "softmax": "causal, scale = 0.5",
    }[case]
    region = {"causal": " phi {\n^bb0(%x: f32):\n%y = math.exp %x : f32\nlinattn.yield %y : f32\n}"}.get(case, "")
    types = [tensor(*x.shape) for x in operands.values()]
    out, weights = tensor(B, 4, T, C), " weights(softmax)" if case == "softmax" else ""
    text = f"""func.func @f(%q: {types[0]}, %k: {types[1]}, %v: {types[2]}, %m: {tensor(B, T, dtype="i1")}) -> {out} {{
      %o = linattn.attention %q, %k, %v mask(%m){weights} {{{attributes}}}{region}
        : ({", ".join(types)}, {tensor(B, T, dtype="i1")}) -> {out}
      return %o : {out}
    }}"""

    def formula(q, k, v):
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
        phi = {"state": lambda x: torch.nn.functional.elu(x) + 1, "causal": torch.exp}.get(case, lambda x: x)
        if case == "stabilized":
            phi, q, k = torch.exp, q - q.amax(-1, keepdim=True), k - k.amax((2, 3), keepdim=True)
        is_causal = case in ("causal", "softmax")
        weights = torch.einsum("bhik,bhjk->bhij", phi(q), phi(k)) * (0.5 if is_causal else 1.0)
        seen = torch.tensor(mask)[:, None, None] & (torch.ones(T, T).tril().bool() if is_causal else True)
        if case == "softmax":
            return weights.masked_fill(~seen, -torch.inf).softmax(-1) @ v
        weights = torch.where(seen, weights, torch.zeros_like(weights))
        o = weights @ v
        eps = {"state": 1e-6, "stabilized": 1e-30}.get(case)
        return o if eps is None else o / (weights.sum(-1, keepdim=True) + eps)

    check(text, operands, formula, constants=[mask])


@pytest.mark.parametrize("case", ["plain", "masked", "decayed", "packed", "empty"])
def test_state_under_a_running_maximum(case):
    """S, z and m of the map exp, each with a cotangent, beside the final ones of the recurrence."""
    states = 3 if case == "packed" else B
    batch = 1 if case == "packed" else B
    operands = draw(k=(batch, 1, T, D), v=(batch, 2, T, C), S=(states, 2, D, C), z=(states, 2, D), m=(states, 2))
    operands["k"] = 3 * operands["k"]
    operands["m"] += np.float32(6)  # some of the keys are larger, and the first state still counts
    if case == "decayed":
        operands["g"] = -np.abs(draw(g=(B, 2, T))["g"]) / np.float32(8)
    clauses, constants, options = "", [], {}
    if case == "masked":
        mask = np.random.default_rng(2).random((B, T)) < 0.7
        mask[0] = False  # nothing is written
        clauses, constants, options = " mask(%mask)", [mask], {"mask": torch.tensor(mask)}
    if case == "packed":
        offsets = np.array([0, 4, 4, T])
        clauses, constants, options = " cu_seqlens(%offsets)", [offsets], {"cu_seqlens": torch.tensor(offsets)}
    if case == "empty":  # as a state without tokens starts
        operands["m"][0] = np.finfo(np.float32).min
    types = {name: tensor(*x.shape) for name, x in operands.items()}
    given = {"masked": ("mask", tensor(B, T, dtype="i1")), "packed": ("offsets", "tensor<4xi64>")}.get(case)
    gate = " decay(%g)" if case == "decayed" else ""
    arguments = [*types.items(), *([given] if given else [])]
    taken = [types["k"], types["v"], *([types["g"]] if gate else []), *([given[1]] if given else []),
             types["S"], types["z"], types["m"]]  # fmt: skip
    returned = ", ".join(types[name] for name in "Szm")
    text = f"""func.func @f({", ".join(f"%{name}: {type_}" for name, type_ in arguments)}) -> ({returned}) {{
      %r:3 = linattn.state %k, %v{gate}{clauses} init(%S) normalizer(%z) running_max(%m)
        {{feature_map = #linattn.feature_map<exp>}} : ({", ".join(taken)}) -> ({returned})
      return %r#0, %r#1, %r#2 : {returned}
    }}"""

    def formula(k, v, S, z, m, g=None):
        gates = {} if g is None else {"decay": g}
        _, *final = oracle.scan(
            torch.zeros_like(k), k, v, S, z, m, feature_map="exp", normalize={"eps": 1.0}, **gates, **options
        )
        return tuple(final)

    check(text, operands, formula, constants=constants)


@pytest.mark.parametrize("case", ["abs_floor", "exp"])
def test_read_under_a_running_maximum(case):
    """A floor of the true denominator, in shared heads; and queries relative to their own maximum."""
    operands = draw(q=(B, 4, T, D), S=(B, 2, D, C), z=(B, 2, D), m=(B, 2))
    if case == "exp":
        del operands["m"]
        operands["q"] += np.float32(200)
        operands["z"] = np.abs(operands["z"])
    types = {name: tensor(*x.shape) for name, x in operands.items()}
    out = tensor(B, 4, T, C)
    clause, attributes = {
        "abs_floor": (" running_max(%m)", "normalize = #linattn.normalize<abs_floor = 1.0>"),
        "exp": ("", "feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>"),
    }[case]
    text = f"""func.func @f({", ".join(f"%{name}: {type_}" for name, type_ in types.items())}) -> {out} {{
      %e = tensor.empty() : {out}
      %o = linattn.read %q, %S normalizer(%z){clause} into(%e) {{{attributes}}}
        : ({", ".join(types.values())}, {out}) -> {out}
      return %o : {out}
    }}"""

    def formula(q, S, z, m=None):
        S, z = S.repeat_interleave(2, 1), z.repeat_interleave(2, 1)
        if m is None:
            q = torch.exp(q - q.amax(-1, keepdim=True))
        num, den = q @ S, torch.einsum("bhtk,bhk->bht", q, z)[..., None]
        if m is None:
            return num / (den + 1e-6)
        return num / torch.maximum(den.abs(), torch.exp(-m).repeat_interleave(2, 1)[..., None, None])

    check(text, operands, formula)
