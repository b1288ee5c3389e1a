"""Gradients of the recurrences beyond scans beside autograd of their formulas in float64."""

import numpy as np
import pytest
from test_gradients_ops import check, draw, write

import linattn

torch = pytest.importorskip("torch")

B, T, C, N = 2, 11, 6, 3
OFFSETS = np.array([0, 4, 4, 5, 11])


def spans(reverse):
    """The tokens of each packed sequence, in the order in which they are read."""
    found = [range(begin, end) for begin, end in zip(OFFSETS[:-1], OFFSETS[1:])]
    return [list(reversed(x)) if reverse else list(x) for x in found]


def place(tokens, rows):
    """Rows by token as [1, T, C]."""
    return torch.stack([row for _, row in sorted(zip(tokens, rows), key=lambda x: x[0])])[None]


# ----------------------------------------------------------------------------
# wkv4
# ----------------------------------------------------------------------------


def wkv4(k, v, w, u, s, tokens):
    """Outputs of the tokens and the state behind them, [B, 3, C], as the op stores it."""
    A, D, m = s.unbind(1)
    rows = []
    for t in tokens:
        most = torch.maximum(m, u + k[:, t])
        past, own = torch.exp(m - most), torch.exp(u + k[:, t] - most)
        rows.append((past * A + own * v[:, t]) / (past * D + own))
        after = torch.maximum(m + w, k[:, t])
        past, own = torch.exp(m + w - after), torch.exp(k[:, t] - after)
        A, D, m = past * A + own * v[:, t], past * D + own, after
    return rows, torch.stack([A, D, m], 1)


WKV4 = "linattn.wkv4 %k, %v decay(%w) bonus(%u) into(%dest0) init(%s)"


@pytest.mark.parametrize("reverse", [False, True])
def test_wkv4(reverse):
    operands = draw(k=(B, T, C), v=(B, T, C), w=(C,), u=(C,), s=(B, 3, C))
    operands["k"] *= 3
    operands["w"] = -np.abs(operands["w"])
    operands["s"][:, 1] = np.abs(operands["s"][:, 1])
    text = write(WKV4, operands, [(B, T, C)], [(B, T, C), (B, 3, C)], " {reverse}" if reverse else "")

    def formula(k, v, w, u, s):
        tokens = list(reversed(range(T))) if reverse else list(range(T))
        rows, state = wkv4(k, v, w, u, s, tokens)
        return torch.stack([row for _, row in sorted(zip(tokens, rows))], 1), state

    check(text, operands, formula)


def test_wkv4_from_nothing():
    """A maximum of −∞ stands for a state that is empty; large keys of either sign are no trouble."""
    operands = draw(k=(B, T, C), v=(B, T, C), w=(C,), u=(C,))
    operands["k"] *= 100
    operands["w"] = -np.abs(operands["w"])
    start = np.zeros((B, 3, C), np.float32)
    start[:, 2] = -np.inf
    taken = ", ".join(f"tensor<{'x'.join(map(str, x.shape))}xf32>" for x in [*operands.values(), start])
    names = ", ".join(f"%{n}: {t}" for n, t in zip([*operands, "s"], taken.split(", ")))
    whole = f"tensor<{B}x{T}x{C}xf32>"
    text = f"""func.func @f({names}) -> {whole} {{
      %dest0 = tensor.empty() : {whole}
      %o, %s1 = {WKV4} : ({', '.join([*taken.split(', ')[:4], whole, taken.split(', ')[4]])}) -> ({whole}, {taken.split(', ')[4]})
      return %o : {whole}
    }}"""

    def formula(k, v, w, u):
        logs = torch.stack([
            torch.stack([u + k[:, t] if i == t else k[:, i] + (t - 1 - i) * w if i < t else torch.full_like(k[:, 0], -torch.inf) for i in range(T)], 1)
            for t in range(T)
        ], 1)  # fmt: skip
        return torch.einsum("btic,bic->btc", logs.softmax(2), v)

    kernel = linattn.compile(text, differentiate=[0, 1, 2, 3], trusted=True)
    wide = {name: torch.tensor(x.astype(np.float64), requires_grad=True) for name, x in operands.items()}
    d = np.random.default_rng(1).standard_normal((B, T, C)).astype(np.float32)
    expected = torch.autograd.grad(formula(**wide), list(wide.values()), torch.tensor(d.astype(np.float64)))
    for name, mine, other in zip(operands, kernel(*operands.values(), start, d), expected):
        assert np.abs(mine - other.numpy()).max() <= 1e-5 * np.abs(other.numpy()).max(), name


def test_wkv4_packed():
    operands = draw(k=(1, T, C), v=(1, T, C), w=(C,), u=(C,), s=(len(OFFSETS) - 1, 3, C))
    operands["w"] = -np.abs(operands["w"])
    operands["s"][:, 1] = np.abs(operands["s"][:, 1])

    def formula(k, v, w, u, s):
        parts = [wkv4(k, v, w, u, s[n : n + 1], tokens) for n, tokens in enumerate(spans(True))]
        tokens = [t for span in spans(True) for t in span]
        return place(tokens, [row[0] for rows, _ in parts for row in rows]), torch.cat([state for _, state in parts])

    op = WKV4.replace(" into", " cu_seqlens(%n) into")
    check_packed(op, operands, formula, [(1, T, C), (len(OFFSETS) - 1, 3, C)], " {reverse}")


def check_packed(op, operands, formula, results, clauses=""):
    """The same with the offsets behind the other operands."""
    everything = operands | {"n": OFFSETS}
    text = write(op, everything, results[:1], results, clauses)
    text = text.replace(f"tensor<{len(OFFSETS)}xf32>", f"tensor<{len(OFFSETS)}xi64>")
    check(text, operands, formula, constants=[OFFSETS])


# ----------------------------------------------------------------------------
# Complex states
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [False, True])
def test_diagonal_scan(constant):
    gate = (C,) if constant else (B, T, C)
    operands = draw(x=(B, T, C), i=(B, T, C), g=gate, p=gate, h=(B, C), j=(B, C))
    operands["g"] = -np.abs(operands["g"]) / 4
    op = "linattn.diagonal_scan %x imag(%i) decay(%g) phase(%p) into(%dest0) into_imag(%dest1) init(%h) init_imag(%j)"
    text = write(op, operands, [(B, T, C)] * 2, [(B, T, C)] * 2 + [(B, C)] * 2)

    def formula(x, i, g, p, h, j):
        state, rows = torch.complex(h, j), []
        for t in range(T):
            factor = torch.exp(torch.complex(g, p) if constant else torch.complex(g, p)[:, t])
            state = factor * state + torch.complex(x, i)[:, t]
            rows.append(state)
        y = torch.stack(rows, 1)
        return y.real, y.imag, state.real, state.imag

    check(text, operands, formula)


def test_diagonal_scan_packed():
    """From the last token on, without an imaginary part of inputs and outputs."""
    sequences = len(OFFSETS) - 1
    operands = draw(x=(1, T, C), g=(1, T, C), p=(C,), h=(sequences, C), j=(sequences, C))
    operands["g"] = -np.abs(operands["g"]) / 4
    op = "linattn.diagonal_scan %x decay(%g) phase(%p) cu_seqlens(%n) into(%dest0) init(%h) init_imag(%j)"

    def formula(x, g, p, h, j):
        rows, states = {}, []
        for n, tokens in enumerate(spans(True)):
            state = torch.complex(h, j)[n]
            for t in tokens:
                state = torch.exp(torch.complex(g[0, t], p)) * state + x[0, t]
                rows[t] = state.real
            states.append(state)
        last = torch.stack(states)
        return torch.stack([rows[t] for t in range(T)])[None], last.real, last.imag

    check_packed(op, operands, formula, [(1, T, C), (sequences, C), (sequences, C)], " {reverse}")


@pytest.mark.parametrize("fixed", [False, True])
def test_selective_scan(fixed):
    """Imaginary parts of everything, and S4D with a fixed step and fixed projections."""
    projection, step = ((C, N), (C,)) if fixed else ((B, T, N), (B, T, C))
    names = {"bi": projection, "ci": projection} if not fixed else {"ci": projection}
    operands = draw(u=(B, T, C), dt=step, a=(C, N), b=projection, c=projection, ai=(C, N), **names, h=(B, C, N), j=(B, C, N))
    operands["a"] = -np.abs(operands["a"])
    imag = " b_imag(%bi) c_imag(%ci)" if not fixed else " c_imag(%ci)"
    op = f"linattn.selective_scan %u, %dt, %a, %b, %c a_imag(%ai){imag} into(%dest0) init(%h) init_imag(%j)"
    text = write(op, operands, [(B, T, C)], [(B, T, C)] + [(B, C, N)] * 2, " {delta_softplus}")

    def formula(u, dt, a, b, c, ai, ci, h, j, bi=None):
        delta = torch.nn.functional.softplus(dt)
        rate, state = torch.complex(a, ai), torch.complex(h, j)
        b = b + 0j if bi is None else torch.complex(b, bi)
        c, ys = torch.complex(c, ci), []
        for t in range(T):
            step = (delta if fixed else delta[:, t])[..., None]
            write_ = b if fixed else b[:, t, None]
            state = torch.exp(step * rate) * state + step * u[:, t, :, None] * write_
            ys.append((state * (c if fixed else c[:, t, None])).sum(-1).real)
        return torch.stack(ys, 1), state.real, state.imag

    check(text, operands, formula)


# ----------------------------------------------------------------------------
# log_linear
# ----------------------------------------------------------------------------


def levels_of(q, k, v, g, l, s, start, scale):
    """The op's recurrence, token by token, for [H, T, …] of one sequence."""
    heads, count = q.shape[0], l.shape[-1]
    k, v, l, g = (x if x is None else x.repeat_interleave(heads // x.shape[0], 0) for x in (k, v, l, g))
    state = list(s.repeat_interleave(heads // s.shape[0], 0).unbind(1))
    rows = []
    for t in range(q.shape[1]):
        position = start + t
        if position > 0:
            merged = min((position & -position).bit_length(), count - 1)
            state[merged] = sum(state[: merged + 1])
            state[:merged] = [torch.zeros_like(x) for x in state[:merged]]
        if g is not None:
            state = [torch.exp(g[:, t])[:, None, None] * x for x in state]
        state[0] = state[0] + torch.einsum("hk,hv->hkv", k[:, t], v[:, t])
        rows.append(scale * sum(l[:, t, i, None] * torch.einsum("hkv,hk->hv", x, q[:, t]) for i, x in enumerate(state)))
    group = heads // s.shape[0]
    return torch.stack(rows, 1) if rows else v.new_zeros(heads, 0, v.shape[-1]), torch.stack(state, 1)[::group]


@pytest.mark.parametrize("levels, grouped", [(1, False), (2, False), (3, True), (6, False)])
def test_log_linear(levels, grouped):
    heads = (4, 1, 2) if grouped else (2, 2, 2)
    operands = draw(q=(B, heads[0], T, 4), k=(B, heads[1], T, 4), v=(B, heads[2], T, 3), g=(B, 2, T), l=(B, 2, T, levels),
                    s=(B, 2, levels, 4, 3))  # fmt: skip
    operands["g"] = -np.abs(operands["g"])
    op = "linattn.log_linear %q, %k, %v decay(%g) levels(%l) into(%dest0) init(%s)"
    output = (B, heads[0], T, 3)
    text = write(op, operands, [output], [output, (B, 2, levels, 4, 3)], " {scale = 0.7}")

    def formula(q, k, v, g, l, s):
        parts = [levels_of(q[b], k[b], v[b], g[b], l[b], s[b], 0, 0.7) for b in range(B)]
        return tuple(torch.stack(x) for x in zip(*parts))

    operands["s"][:] = 0
    check_but_state(text, operands, formula)


def check_but_state(text, operands, formula):
    """Gradients of all but the state: a first token reads none."""
    kernel = linattn.compile(text, differentiate=list(range(len(operands) - 1)), trusted=True)
    compare(kernel, operands, formula, list(operands)[:-1])


def compare(kernel, operands, formula, names, constants=()):
    wide = {name: torch.tensor(x.astype(np.float64), requires_grad=name in names) for name, x in operands.items()}
    outputs = formula(**wide)
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(o.shape).astype(np.float32) for o in outputs]
    expected = torch.autograd.grad(outputs, [wide[n] for n in names], [torch.tensor(x.astype(np.float64)) for x in cotangents])
    for name, mine, other in zip(names, kernel(*operands.values(), *constants, *cotangents), expected):
        other = other.numpy()
        assert np.abs(mine - other).max() <= 1e-5 * np.abs(other).max(), name


def consistent_states(operands, starts, levels):
    """States that sequences of so many tokens leave: levels that hold nothing are zero."""
    for n, start in enumerate(starts):
        for level in range(levels):
            last = start - 1
            held = level == 0 or (level < levels - 1 and last >> (level - 1) & 1) or (level == levels - 1 and last >> (level - 1))
            if not (start and held):
                operands["s"][n, :, level] = 0


@pytest.mark.parametrize("packed", [False, True])
def test_log_linear_goes_on(packed):
    """From states and positions, in the middle of blocks; the last level holds all that is far."""
    levels, starts = 4, [5, 8, 0, 3] if packed else [5, 12]
    batch, states = (1, len(starts)) if packed else (2, 2)
    operands = draw(q=(batch, 2, T, 4), k=(batch, 2, T, 4), v=(batch, 2, T, 3), l=(batch, 2, T, levels), s=(states, 2, levels, 4, 3))
    consistent_states(operands, starts, levels)
    op = "linattn.log_linear %q, %k, %v levels(%l) position(%n) into(%dest0) init(%s)"
    everything = operands | {"n": np.array(starts)}
    constants = [np.array(starts, np.int64)]
    if packed:
        op = op.replace(" into", " cu_seqlens(%o) into")
        everything["o"] = OFFSETS
        constants.append(OFFSETS.astype(np.int64))
    output = (batch, 2, T, 3)
    text = write(op, everything, [output], [output, operands["s"].shape])
    for name in ("n", "o") if packed else ("n",):
        text = text.replace(f"tensor<{len(everything[name])}xf32>", f"tensor<{len(everything[name])}xi64>")

    def formula(q, k, v, l, s):
        if not packed:
            parts = [levels_of(q[b], k[b], v[b], None, l[b], s[b], starts[b], 1.0) for b in range(2)]
            return tuple(torch.stack(x) for x in zip(*parts))
        parts = [
            levels_of(*(x[0, :, begin:end] for x in (q, k, v)), None, l[0, :, begin:end], s[n], starts[n], 1.0)
            for n, (begin, end) in enumerate(zip(OFFSETS[:-1], OFFSETS[1:]))
        ]
        return torch.cat([o for o, _ in parts], 1)[None], torch.stack([state for _, state in parts])

    kernel = linattn.compile(text, differentiate=[0, 1, 2, 3], trusted=True)
    compare(kernel, operands, formula, list("qkvl"), constants)


# ----------------------------------------------------------------------------
# causal_conv
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("width, length, reverse", [(3, 5, True), (3, 4, False), (1, 2, False), (2, 2, True)])
def test_packed_conv(width, length, reverse):
    dilation, sequences = 2, len(OFFSETS) - 1
    operands = draw(x=(1, T, C), w=(C, width), b=(C,), s=(sequences, C, length))
    op = "linattn.causal_conv %x, %w bias(%b) activation(silu) cu_seqlens(%n) into(%dest0) init(%s)"
    clauses = f" {{dilation = {dilation}{', reverse' if reverse else ''}}}"

    def formula(x, w, b, s):
        rows, states = {}, []
        for n, tokens in enumerate(spans(reverse)):
            inputs = torch.cat([s[n].T, x[0, tokens]])
            for i, t in enumerate(tokens):
                sums = b + sum(w[:, k] * inputs[length + i - (width - 1 - k) * dilation] for k in range(width))
                rows[t] = torch.nn.functional.silu(sums)
            states.append(inputs[len(inputs) - length :].T)
        return torch.stack([rows[t] for t in range(T)])[None], torch.stack(states)

    check_packed(op, operands, formula, [(1, T, C), (sequences, C, length)], clauses)


# ----------------------------------------------------------------------------
# Prefixes
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["linear", "softmax"])
def test_prefix(weights):
    operands = draw(q=(B, 4, T, 5), k=(B, 2, T, 5), v=(B, 2, T, C))
    prefix = np.array([4, 0], np.int64)
    types = [f"tensor<{'x'.join(map(str, x.shape))}xf32>" for x in operands.values()] + [f"tensor<{B}xi64>"]
    out = f"tensor<{B}x4x{T}x{C}xf32>"
    softmax = " weights(softmax)" if weights == "softmax" else ""
    text = f"""func.func @f(%q: {types[0]}, %k: {types[1]}, %v: {types[2]}, %p: {types[3]}) -> {out} {{
      %e = tensor.empty() : {out}
      %o = linattn.quadratic %q, %k, %v prefix(%p){softmax} into(%e) {{causal, scale = 0.5}} : ({', '.join(types)}, {out}) -> {out}
      return %o : {out}
    }}"""

    def formula(q, k, v):
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
        scores = torch.einsum("bhik,bhjk->bhij", q, k) * 0.5
        seen = torch.ones(T, T).tril().bool() | (torch.arange(T) < torch.tensor(prefix)[:, None, None, None])
        if weights == "softmax":
            return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
        return torch.where(seen, scores, torch.zeros_like(scores)) @ v

    check(text, operands, formula, constants=[prefix])
