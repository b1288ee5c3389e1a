"""`output_norm`: skips, RMS and layer norms and gates of every token and head, and the
same by the names that the field has for it."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._core._checks import UnsupportedError, check_choice, check_flag, check_number
from .._core._literals import float_literal
from .._core._plain import without_places
from .._core._recipe import Recipe, makers
from .._recurrence import _plans
from .._recurrence._function import tensor_type

__all__ = ["layer_norm_gated", "layernorm_fn", "output_norm", "rms_norm_gated", "rmsnorm_fn"]

KINDS = ("rms", "layer", "none")
ACTIVATIONS = ("silu", "swish", "sigmoid")


def output_norm(
    x, *, weight=None, bias=None, gate=None, skip=None, skip_weight=None, kind="rms",
    activation="silu", gate_first=False, groups=1, weight_offset=0.0, eps=1e-5, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """Normalizes the features of every token and head, as many linear attentions
    do instead of dividing by a denominator; with a gate and a skip, what a layer
    does to the outputs of its recurrence, in one pass.

    ::

        rms     y = x / √(mean(x²) + eps)
        layer   y = (x − mean(x)) / √(var(x) + eps)
        none    y = x
        o = (y · (weight + weight_offset) + bias) · act(gate)

    Statistics never cross tokens, so a stream gives the bits of the whole. Sums are
    float32, float64 for float64 inputs. See Zhang and Sennrich, "Root Mean Square
    Layer Normalization", 2019.

    Args:
      x: ``[B, T, H, D]``, ``[B, T, D]`` or ``[T, D]``; float16, bfloat16, float32
        or float64; any strides.
      weight, bias: ``[D]`` or ``[H, D]``; any floating-point dtype.
      gate: an array of x's shape, any floating-point dtype.
      skip, skip_weight: ``x + skip_weight · skip`` takes the place of x, the D ⊙ v of
        state spaces: an array of x's shape, and ``[H]`` or ``[H, D]`` (``[D]`` where x
        has no heads); any floating-point dtype.
      kind: "rms", "layer" or "none".
      activation: "silu" (or "swish"), g·σ(g), or "sigmoid", σ(g).
      gate_first: normalize ``x · act(gate)`` instead of gating the result.
      groups: how many parts of D have statistics of their own, for x without heads.
      weight_offset: added to the weight; 1 where a model keeps weight − 1.
      eps: added to the mean square or the variance.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      An array of x's kind, shape and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    shape, given = None, out
    if type(groups) is not int or groups != 1:
        shape = _shape_of("x", x)
        x, gate, skip, out, weight, bias, skip_weight = _split_groups(
            groups, shape, x, gate, skip, out, weight, bias, skip_weight
        )
    elif skip_weight is not None and len(_shape_of("skip_weight", skip_weight)) == 1 and len(_shape_of("x", x)) == 4:
        skip_weight = skip_weight.reshape(-1, 1)
    key = (
        "output_norm", weight is None, bias is None, gate is None, skip is None,
        skip_weight is None, kind, activation, gate_first, weight_offset, eps, target,
    )  # fmt: skip
    plan = _plans.find(key)
    operands = (x, gate, skip, skip_weight, weight, bias)
    operands = tuple([array for array in operands if array is not None])
    result = plan(operands, None, out, False, num_threads)
    if shape is None:
        return result
    return result.reshape(shape) if given is None else given


def _shape_of(name, array):
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}") from None


def _split_groups(groups, shape, x, gate, skip, out, weight, bias, skip_weight):
    """Views of the arrays with a head for every group."""
    if isinstance(groups, (bool, np.bool_)) or not isinstance(groups, (int, np.integer)):
        raise TypeError(f"groups: expected an integer, but got {type(groups).__name__}")
    if len(shape) not in (2, 3):
        raise ValueError(f"groups: expected x of shape (B, T, D) or (T, D) with groups, but got {shape}")
    size = shape[-1]
    if groups < 1 or size % groups:
        raise ValueError(f"groups: expected a number that divides the features of x, {size}, but got {groups}")

    def split(name, array, expected):
        if array is None:
            return None
        given = _shape_of(name, array)
        if given != expected:
            raise ValueError(f"{name}: expected shape {expected}, but got {given}")
        parts = (*expected[:-1], groups, size // groups)
        return array.reshape((1, *parts) if len(expected) == 2 else parts)

    tokens = (("x", x), ("gate", gate), ("skip", skip), ("out", out))
    weights = (("weight", weight), ("bias", bias), ("skip_weight", skip_weight))
    return (
        *(split(name, array, shape) for name, array in tokens),
        *(split(name, array, (size,)) for name, array in weights),
    )  # fmt: skip


def _make_plan(
    no_weight, no_bias, no_gate, no_skip, no_skip_weight, kind, activation, gate_first, offset, eps,
    target,
):  # fmt: skip
    kind, activation, gate_first, offset, eps = check_options(
        no_gate, no_weight, no_skip, no_skip_weight, kind, activation, gate_first, offset, eps
    )
    target = _plans.parse_target(target)
    operands = [("x", "tokens", "B T H D")]
    for name, layouts, absent in (
        ("gate", "B T H D", no_gate), ("skip", "B T H D", no_skip),
        ("skip_weight", "H D | D | H 1", no_skip_weight), ("weight", "D | H D", no_weight),
        ("bias", "D | H D", no_bias),
    ):  # fmt: skip
        if not absent:
            operands.append((name, "gate", layouts))

    def text(dtype, extents, others):
        return _norm_text(operands[1:], dtype, extents, others, kind, activation, gate_first, offset, eps)

    def refuse(error):
        raise ValueError(without_places(error)) from None

    return Recipe(
        "output_norm", text, lambda on_device: _plans.resolve_target(target, on_device), refuse, operands, [], [],
        ("out", "tokens", "B T H D"), False, False,
    ).plan(fixes_heads=False)  # fmt: skip


makers["output_norm"] = _make_plan


def _norm_text(operands, dtype, extents, others, kind, activation, gate_first, offset, eps):
    """A module with one op. `operands` are those beside x."""
    T, H, D = extents.get("T"), extents.get("H"), extents["D"]
    tokens = tensor_type(None, H, T, D, dtype)
    types, lines = {"x": tokens}, []
    names = {"x": "%x"}
    for (name, _, layouts), (alternative, rank, scalar) in zip(operands, others):
        dims = layouts.split("|")[alternative].split()
        sizes = {"B": None, "T": T, "H": H, "D": D, "1": 1}
        if len(dims) == 4:
            dims = ["B", "H", "T", "D"]
        types[name], names[name] = tensor_type(*(sizes[dim] for dim in dims), scalar), "%" + name
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    if types.get("skip_weight", "").split("x")[-2:-1] == ["1"] and D != 1:
        # One weight per head.
        scalar = types["skip_weight"].rpartition("x")[2][:-1]
        flat, wide = tensor_type(H, scalar), tensor_type(H, D, scalar)
        lines += [
            f"  %flat = tensor.collapse_shape %skip_weight [[0, 1]] : {types['skip_weight']} into {flat}",
            f"  %wide = tensor.empty({'%d1' if H is None else ''}) : {wide}",
            f"  %rows = linalg.broadcast ins(%flat : {flat}) outs(%wide : {wide}) dimensions = [1]",
        ]
        types["skip_weight"], names["skip_weight"] = wide, "%rows"
    order = [name for name in ("x", "weight", "bias", "gate", "skip", "skip_weight") if name in types]
    clauses = []
    for name in order[1:]:
        clauses.append(f"{name}({names[name]})")
        if name == "gate":
            clauses.append(f"activation({activation})")
    attributes = [f"eps = {float_literal(eps)}"] + (["gate_first"] if gate_first else [])
    if offset:
        attributes.append(f"weight_offset = {float_literal(offset)}")
    empty = ", ".join(f"%d{i}" for i, size in enumerate((None, H, T)) if size is None)
    return "\n".join([
        f"func.func @output_norm({arguments}) -> {tokens} {{",
        *(f"  %c{i} = arith.constant {i} : index" for i in range(3)),
        *(f"  %d{i} = tensor.dim %x, %c{i} : {tokens}" for i in range(3)),
        f"  %empty = tensor.empty({empty}) : {tokens}",
        *lines,
        f"  %o = linattn.output_norm %x kind({kind}) {' '.join(clauses)} into(%empty) {{{', '.join(attributes)}}}",
        f"    : ({', '.join([types[name] for name in order] + [tokens])}) -> {tokens}",
        f"  return %o : {tokens}",
        "}",
        "",
    ])  # fmt: skip


def check_options(
    no_gate, no_weight, no_skip, no_skip_weight, kind, activation, gate_first, offset, eps
):  # fmt: skip
    kind = check_choice("kind", kind, KINDS)
    activation = check_choice("activation", activation, ACTIVATIONS)
    gate_first = check_flag("gate_first", gate_first)
    eps = check_number("eps", eps, minimum=0.0)
    offset = check_number("weight_offset", offset)
    if eps is None:
        raise TypeError("eps: expected a number, but got None")
    if offset is None:
        raise TypeError("weight_offset: expected a number, but got None")
    if gate_first and no_gate:
        raise ValueError("gate_first: expected it only with gate, but got it without")
    if offset and no_weight:
        raise ValueError("weight_offset: expected it only with weight, but got it without")
    if no_skip != no_skip_weight:
        missing, given = ("skip", "skip_weight") if no_skip else ("skip_weight", "skip")
        raise ValueError(f"{missing}: expected an array with {given}, but got None")
    return kind, "silu" if activation == "swish" else activation, gate_first, offset, eps


# ----------------------------------------------------------------------------
# By the names of the field
# ----------------------------------------------------------------------------


def rms_norm_gated(
    x, g, weight, bias=None, activation="swish", residual=None, prenorm=False,
    residual_in_fp32=False, eps=1e-6, *, out=None, num_threads=None, target=None,
):  # fmt: skip
    """`output_norm` with the signature of flash-linear-attention's function:
    ``(rms(x) · weight + bias) · act(g)``.

    Args:
      x: ``[..., D]``; float16, bfloat16, float32 or float64; any strides.
      g: an array of x's shape, any floating-point dtype.
      weight, bias: ``[D]`` or None; any floating-point dtype.
      activation: "swish" (or "silu"), g·σ(g), or "sigmoid", σ(g).
      residual: an array of x's shape that is added to x first.
      prenorm, residual_in_fp32: False: the sum with residual is not returned.
      eps: added to the mean square.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      An array of x's kind, shape and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      UnsupportedError: prenorm or residual_in_fp32.
    """
    _refuse_residuals(prenorm, residual_in_fp32)
    return _over_rows(
        x, g, residual, out, weight, bias, kind="rms", activation=activation, eps=eps,
        num_threads=num_threads, target=target,
    )  # fmt: skip


def layer_norm_gated(
    x, g, weight, bias=None, activation="swish", residual=None, prenorm=False,
    residual_in_fp32=False, eps=1e-6, *, out=None, num_threads=None, target=None,
):  # fmt: skip
    """`rms_norm_gated` of a layer norm: ``(layer(x) · weight + bias) · act(g)``.

    Args:
      x, g, weight, bias, activation, residual, prenorm, residual_in_fp32, eps, out,
        num_threads, target: as in `rms_norm_gated`.

    Returns:
      An array of x's kind, shape and dtype.
    """
    _refuse_residuals(prenorm, residual_in_fp32)
    return _over_rows(
        x, g, residual, out, weight, bias, kind="layer", activation=activation, eps=eps,
        num_threads=num_threads, target=target,
    )  # fmt: skip


def layernorm_fn(
    x, weight, bias, z=None, eps=1e-6, group_size=None, norm_before_gate=True, is_rms_norm=False, *,
    out=None, num_threads=None, target=None,
):  # fmt: skip
    """`output_norm` with the signature of mamba_ssm's function, a norm over groups of
    features: ``(layer(x) · weight + bias) · silu(z)``, or of ``x · silu(z)``.

    Args:
      x: ``[..., D]``; float16, bfloat16, float32 or float64; any strides.
      weight, bias: ``[D]`` or None; any floating-point dtype.
      z: an array of x's shape, any floating-point dtype, or None.
      eps: added to the variance.
      group_size: how many features have statistics of their own; all if None.
      norm_before_gate: whether silu(z) multiplies the result rather than x.
      is_rms_norm: divide by the root of the mean square instead.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      An array of x's kind, shape and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    groups = 1
    if group_size is not None:
        size = _shape_of("x", x)[-1]
        if isinstance(group_size, (bool, np.bool_)) or not isinstance(group_size, (int, np.integer)):
            raise TypeError(f"group_size: expected an integer or None, but got {type(group_size).__name__}")
        if group_size < 1 or size % group_size:
            raise ValueError(f"group_size: expected a number that divides the features of x, {size}, but got {group_size}")
        groups = int(size // group_size)
    gate_first = not check_flag("norm_before_gate", norm_before_gate) and z is not None
    return _over_rows(
        x, z, None, out, weight, bias, kind="rms" if check_flag("is_rms_norm", is_rms_norm) else "layer",
        gate_first=gate_first, groups=groups, eps=eps, num_threads=num_threads, target=target,
    )  # fmt: skip


def rmsnorm_fn(
    x, weight, bias, z=None, eps=1e-6, group_size=None, norm_before_gate=True, *, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """`layernorm_fn` of an RMS norm, with the signature of mamba_ssm's function.

    Args:
      x, weight, bias, z, eps, group_size, norm_before_gate, out, num_threads, target:
        as in `layernorm_fn`.

    Returns:
      An array of x's kind, shape and dtype.
    """
    return layernorm_fn(
        x, weight, bias, z, eps, group_size, norm_before_gate, True, out=out,
        num_threads=num_threads, target=target,
    )  # fmt: skip


def _refuse_residuals(prenorm, residual_in_fp32):
    for name, value in (("prenorm", prenorm), ("residual_in_fp32", residual_in_fp32)):
        if check_flag(name, value):
            raise UnsupportedError(f"{name}: expected False, but got True")


def _over_rows(x, gate, residual, out, weight, bias, groups=1, **options):
    """`output_norm` of the last dimension, with any dimensions before it."""
    shape = _shape_of("x", x)
    tokens = {"gate": gate, "skip": residual, "out": out}
    for name, array in tokens.items():
        if array is not None and _shape_of(name, array) != shape:
            called = {"gate": "gate", "skip": "residual", "out": "out"}[name]
            raise ValueError(f"{called}: expected shape {shape}, but got {_shape_of(name, array)}")
    given = out
    flattened = not 2 <= len(shape) <= (4 if groups == 1 else 3)
    if flattened:
        rows = (-1, shape[-1]) if shape[-1:] else (1, 1)
        if out is not None and len(shape) > 4:
            raise ValueError(f"out: expected it only for at most 4 dimensions, but got {len(shape)}")
        x = x.reshape(rows)
        tokens = {name: None if array is None else array.reshape(rows) for name, array in tokens.items()}
    if residual is not None:
        ones = np.ones(shape[-1], np.float32)
        one = _arrays.convert_like(ones if len(x.shape) < 4 else np.ones((x.shape[2], 1), np.float32), x)
        tokens["skip_weight"] = one
    result = output_norm(x, weight=weight, bias=bias, groups=groups, **tokens, **options)
    if given is not None:
        return given
    return result.reshape(shape) if flattened else result


# ----------------------------------------------------------------------------
# The oracle
# ----------------------------------------------------------------------------


def reference_output_norm(
    x, *, weight=None, bias=None, gate=None, skip=None, skip_weight=None, kind="rms",
    activation="silu", gate_first=False, groups=1, weight_offset=0.0, eps=1e-5, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """`linattn.output_norm` by its formula, in float64."""
    kind, activation, gate_first, weight_offset, eps = check_options(
        gate is None, weight is None, skip is None, skip_weight is None, kind, activation,
        gate_first, weight_offset, eps,
    )  # fmt: skip
    _plans.parse_target(target)

    def wide(array):
        return _arrays.to_numpy(array).astype(np.float64)

    y = wide(x)
    if skip is not None:
        d = wide(skip_weight)
        y = y + (d[:, None] if d.ndim == 1 and y.ndim == 4 else d) * wide(skip)
    if gate is not None:
        g = wide(gate)
        act = 1.0 / (1.0 + np.exp(-g))
        act = act * g if activation == "silu" else act
    if gate_first:
        y = y * act
    shape = y.shape
    y = y.reshape(*shape[:-1], groups, shape[-1] // groups)
    if kind == "layer":
        y = y - y.mean(-1, keepdims=True)
    if kind != "none":
        y = y / np.sqrt((y * y).mean(-1, keepdims=True) + eps)
    y = y.reshape(shape)
    if weight is not None:
        y = y * (wide(weight) + weight_offset)
    if bias is not None:
        y = y + wide(bias)
    if gate is not None and not gate_first:
        y = y * act
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), y, casting="same_kind")
        return out
    return _arrays.convert_like(y, x)
