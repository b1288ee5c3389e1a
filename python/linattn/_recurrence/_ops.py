"""`attention`, and the plans that it shares with `scan`.

A call looks up the plan for its options; the plan, in C++, looks at the arrays
and finds the kernel for their dtype and head sizes. Everything else in this
file runs once per combination.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np

from .._core import _arrays
from .._core._checks import UnsupportedError, check_choice, check_flag, check_legal_form, check_number, check_positive, parse_form
from .._core._plain import without_places
from .._core._recipe import Recipe, makers
from .._maps import _features
from .._maps._token_maps import TokenMap
from . import _text
from ._state import State
from ._text import Options, Sizes

__all__ = ["attention"]

# In the key of a plan: the scale of each call is an operand of its kernels.
PER_CALL = object()

# Options -> Plan. Feature maps that are made anew for every call must not fill
# the memory.
_plans = {}
_MAX_PLANS = 1024

# How a plan is told that the initial state must become the final one.
ALWAYS = 2

# The state's parts.
_STATE = (("S", "state", "N H K V"), ("z", "state", "N H K"), ("m", "state", "N H"))


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    feature_map="elu",
    normalize=True,
    eps=None,
    floor=None,
    abs_floor=None,
    clamp=None,
    weights="linear",
    scale=None,
    mask=None,
    prefix=None,
    initial_state=None,
    return_state=False,
    out=None,
    num_threads=None,
    form="auto",
    target=None,
):
    """Linear or softmax attention.

    With linear weights, for φ the feature map and j over all keys, or over
    j ≤ i if `causal`::

        o_i = Σ_j φ(q_i)·φ(k_j) v_j / (Σ_j φ(q_i)·φ(k_j) + eps)

    computed without any T×T matrix. With ``weights="softmax"``,
    ``o_i = Σ_j softmax_j(scale · q_i·k_j) v_j``. See Katharopoulos et al.,
    "Transformers are RNNs", 2020.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16,
        float32 or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, Tk, Hk, K]`` and ``[B, Tk, Hv, V]``, of q's rank and dtype.
        Head counts divide one another.
      causal: token t attends to tokens up to t only.
      feature_map: "identity" (or None), "elu" (elu + 1), "relu", "relu2", "exp",
        "softmax_kernel", or a Python function, traced once on a number; or a map
        of whole tokens with its parameters, made by `linattn.feature_maps`:
        ``favor(W)``, ``taylor()``, ``hedgehog(Wq, Wk)``, ….
      normalize: divide by the sum of the weights.
      eps: added to that sum; 1e-6, or 1e-4 for 16-bit tokens, unless given.
      floor: instead of eps, the least that the sum may be.
      abs_floor: the least that its magnitude may be, which then divides; eps,
        added to it, is 0 unless given.
      clamp: the bound of the result's magnitude.
      weights: "linear" or "softmax".
      scale: multiplies the weights; 1, or K**-0.5 for softmax, unless given.
      mask: bool ``[B, Tk]``, True = attend.
      prefix: with `causal`, how many first tokens every token attends to as well,
        a number or int ``[B]``: a prefix LM.
      initial_state: a `State`, or S ``[B, H, K, V]`` where nothing else is
        carried: the sums over earlier keys.
      return_state: also return the state after these keys.
      out: where to write the result; returned.
      num_threads: for this call. Results do not depend on it.
      form: "auto", "quadratic", "token", "state-tile", "chunk", "chunk:64",
        "segments" (of the tokens, in parallel), "segments:1024".
      target: None, where the arrays are: arrays of a GPU (of PyTorch, CuPy, JAX or
        whatever has ``__dlpack__`` or ``__cuda_array_interface__``) are worked on there,
        in order with the current stream of their library, and not waited for. Or "cpu",
        "nvvm", "reference" for plain loops, "nvvm-emulated" for tests of the kernels of
        a GPU.

    Returns:
      ``o``, of the same kind and rank as q, ``[B, T, max(Hq, Hk, Hv), V]``; with
      `return_state`, ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    maps, numbers = (), ()
    if isinstance(feature_map, TokenMap):
        feature_map, maps = _features.split(feature_map, q, k, initial_state is not None)
    if scale is not None:
        scale, numbers = split_scale(scale, target)
    key = (
        "attention", causal, feature_map, normalize, (eps, floor, abs_floor, clamp), weights,
        scale, form, target, mask is None, prefix is None, describe_state(initial_state),
        return_state,
    )  # fmt: skip
    try:
        plan = _plans[key]
    except (KeyError, TypeError):
        plan = _make_attention_plan(*key[1:])
        _remember(key, plan)
    state = None if initial_state is None else _unpack(initial_state, plan)
    operands = (q, k, v, *maps) if mask is None else (q, k, v, *maps, mask)
    if prefix is not None:
        operands += (_lengths(prefix, q),)
    result = plan(operands + numbers, state, out, False, num_threads)
    if return_state:
        o, *parts = result
        return o, State(*parts)
    return result


def _lengths(prefix, q):
    """One length per batch element, where q is."""
    if isinstance(prefix, (int, np.integer)) and not isinstance(prefix, bool):
        shape = getattr(q, "shape", (1,))
        prefix = np.full(shape[0] if len(shape) > 2 else 1, prefix, np.int64)
    elif isinstance(prefix, (list, tuple)):
        prefix = np.asarray(prefix)
        prefix = prefix.astype(np.int64) if prefix.dtype.kind == "i" else prefix
    if isinstance(prefix, np.ndarray) and _arrays.is_on_device(q):
        return _arrays.convert_like(prefix, q)
    return prefix


def split_scale(scale, target):
    """The scale as a plan knows it and the operands that it has for it: 1 costs nothing as
    a constant, and kernels of a GPU take no other."""
    if type(scale) is not float or not math.isfinite(scale):
        scale = check_number("scale", scale)
    if scale is None or scale == 1.0 or target in ("nvvm", "nvvm-emulated"):
        return scale, ()
    return PER_CALL, (scale,)


def _remember(key, plan):
    remember_in(_plans, _MAX_PLANS, key, plan)
    plan.build.key = key
    plan.build.with_constants = partial(_with_scale, key)


def _with_scale(key, scale):
    """The plan of that key, for one scale."""
    key = tuple([scale if part is PER_CALL else part for part in key])
    try:
        return _plans[key]
    except KeyError:
        pass
    plan = makers[key[0]](*key[1:])
    _remember(key, plan)
    return plan


def remember_in(plans, most, key, plan):
    """Where there are too many, the half that was not called for longest goes."""
    if len(plans) >= most:
        for old, _ in sorted(list(plans.items()), key=lambda item: item[1].last_use)[: most // 2]:
            plans.pop(old, None)
    plans[key] = plan


def _unpack(initial_state, plan, name="initial_state"):
    """The parts of a state, S, z and m, of which it must have what the plan needs; `name`
    is what messages call it."""
    if isinstance(initial_state, State):
        S, z, m = initial_state.S, initial_state.z, initial_state.m
    else:
        S, z, m = initial_state, None, None
    parts = plan.state_parts
    if (z is not None) != (parts > 1) or (m is not None) != (parts > 2):
        _refuse_parts(name, initial_state, z, m, parts)
    return (S, z, m)[:parts]


def describe_state(state):
    """The kind of a caller's state, which names in messages depend on: None, "array",
    "State" or "tuple"."""
    if state is None:
        return None
    return "State" if isinstance(state, State) else "tuple" if isinstance(state, (tuple, list)) else "array"


def name_state(parts, given, name="initial_state"):
    """The parts of a state, (name, role, layouts), by the names that a caller knows."""
    names = {
        "State": lambda index, part: f"{name}.{part}",
        "tuple": lambda index, part: f"{name}[{index}]",
        "array": lambda index, part: name,
    }.get(given, lambda index, part: part)
    return [(names(index, part), *rest) for index, (part, *rest) in enumerate(parts)]


def check_inplace(inplace, given, name="initial_state"):
    inplace = check_flag("inplace", inplace)
    if inplace and given is None:
        raise ValueError(f"{name}: expected a state to update with inplace=True, but got None")
    return inplace


def finish_inplace(state, result):
    """The output of a call that was to update the parts of a state, which they now are."""
    o, *parts = result
    for mine, final in zip(state, parts):
        if final is not mine:
            _arrays.assign(mine, final)
    return o


def _refuse_parts(state, initial_state, z, m, parts):
    for name, part, needed in (("z", z, parts > 1), ("m", m, parts > 2)):
        if needed and part is None:
            raise ValueError(
                f"{state}: expected a State with {name}, since the result is normalized, "
                f"but got {'one' if isinstance(initial_state, State) else 'an array'} without"
            )
        if not needed and part is not None:
            raise ValueError(
                f"{state}: expected a State without {name}, since nothing here carries it "
                f"on, but got one with {name}; pass normalize=True"
                + (" and the feature map exp, or an input_gate" if name == "m" else "")
            )


# ----------------------------------------------------------------------------
# Plans
# ----------------------------------------------------------------------------


def default_eps(dtype):
    return 1e-4 if dtype in ("f16", "bf16") else 1e-6


def check_denominator(numbers, normalize):
    """(eps, floor, abs_floor, clamp) as numbers or None."""
    eps, floor, abs_floor, clamp = numbers
    eps = check_number("eps", eps, minimum=0.0)
    floor, abs_floor, clamp = (
        check_positive(name, number)
        for name, number in (("floor", floor), ("abs_floor", abs_floor), ("clamp", clamp))
    )
    for name, number in (("eps", eps), ("floor", floor), ("abs_floor", abs_floor), ("clamp", clamp)):
        if number is not None and not normalize:
            raise ValueError(f"{name}: expected it only with normalize=True, but got {number} without")
    for name, number in (("eps", eps), ("abs_floor", abs_floor)):
        if floor is not None and number is not None:
            raise ValueError(f"floor: expected it without {name}, but got both")
    return eps, floor, abs_floor, clamp


def check_abs_floor(denominator, kind):
    if denominator[2] is not None and kind == "exp":
        raise ValueError(
            "abs_floor: expected another feature map than exp, whose true denominator is never "
            "formed, but got both; use floor"
        )


def filled_eps(denominator, dtype):
    """The eps to add: none beside a floor unless the caller gives one."""
    eps, floor, abs_floor, _ = denominator
    if eps is None and floor is None and abs_floor is None:
        return default_eps(dtype)
    return eps


def make_plan(
    options, text, *, scale, target, what, gates=(), tokens="qkv", same_length=False, parts=3,
    state=None, state_layout="kv", pool=False, given=None,
):  # fmt: skip
    """A plan whose kernels come from `text`; eps and scale are filled in for the
    dtype and head size. `given` is what `describe_state` says of the initial state, or
    "step" where a state steps itself."""

    def write(dtype, extents, others):
        sizes = Sizes.of(dtype, extents)
        filled = dataclasses.replace(
            options,
            eps=filled_eps(options.denominator, sizes.dtype),
            scale=sizes.K**-0.5 if scale == "K**-0.5" else None if scale is PER_CALL else scale,
            takes_scale=scale is PER_CALL,
        )
        entries = [
            (rank, dtype, [extents.get(name) for name in layouts.split("|")[alternative].split()])
            for (alternative, rank, dtype), (_, _, layouts) in zip(others, described[len(tokens) :])
        ]
        maps_, others = entries[: len(maps)], [entry[:2] for entry in entries[len(maps) :]]
        return text(filled, sizes, others, maps_) if maps else text(filled, sizes, others)

    def refuse(error):
        check_legal_form(error)
        unsupported = _describe_unsupported(options)
        if unsupported:
            raise UnsupportedError(f"{unsupported}: not compiled yet: {without_places(error)}") from None
        raise ValueError(without_places(error)) from None

    keys = "T" if same_length else "Tk"
    layouts = {"q": "B T Hq K", "k": f"B {keys} Hk K", "v": f"B {keys} Hv V"}
    rules = ["H = max(Hk, Hv)"] if "k" in tokens else []
    rules += ["Ho = max(Hq, H)"] if "q" in tokens else []
    if state is None:
        state = _STATE[: min(parts, 1 + options.normalize + options.stabilized)]
    if state_layout == "vk":
        state = (("S", "state", "N H V K -> N H K V"), *state[1:])
    if pool:  # of any number of states
        state = [(name, role, layout.replace("N ", "Np ")) for name, role, layout in state]
    maps = []
    if options.maps is not None:
        # Gates and states have a row for every feature.
        maps = options.maps.operands("q" in tokens, "k" in tokens, same_length)
        rules.append(options.maps.rule("k" if "k" in tokens else "q"))
        state = [(name, role, layout.replace(" K", " F")) for name, role, layout in state]
        gates = [(name, role, layout.replace(" K", " F")) for name, role, layout in gates]
    # A scan takes no tuples: one would be its S.
    state = name_state(state, "array" if given == "tuple" else given)
    kept = []
    if options.every is not None:
        rules.append(f"Ts = T / {options.every}")
        kept = [(name, role, _between(layout)) for name, role, layout in state]
    described = [(name, "tokens", layouts[name]) for name in tokens] + maps + list(gates)
    numbers = [("scale", "number", "")] if scale is PER_CALL else []
    return Recipe(
        what, write, lambda on_device: resolve_target(target, on_device), refuse, described + numbers, rules, state,
        ("out", "tokens", "B T Ho V") if "q" in tokens else None, options.has_state, options.returns_state,
        options.wide_state, kept,
    ).plan(
        # Recurrences are laid out for the heads of the call, and so are the kernels of a GPU.
        target == "nvvm-emulated" or what == "scan" or options.causal and options.weights == "linear"
        or bool(options.config) and ("token" in options.config or "chunk" in options.config),
        given == "step",
    )  # fmt: skip


def _between(layout):
    """The layout of the states after every so many tokens, from that of a state."""
    user, _, logical = layout.partition("->")
    return " -> ".join(order.strip().replace("N ", "N Ts ", 1) for order in (user, logical or user))


def _describe_unsupported(options):
    """The options that go beyond the plain recurrence, by name."""
    names = [name for name in options.gates if name != "mask"]
    if options.update != "add":
        names.append("update")
    if options.readout != "inclusive":
        names.append("readout")
    if options.reverse:
        names.append("reverse")
    return ", ".join(names)


def parse_target(target):
    if target is None:
        return None
    return check_choice("target", target, ("cpu", "nvvm", "reference", "nvvm-emulated"))


def resolve_target(target, on_device):
    """Arrays tell where they are to be worked on, unless that is named."""
    if target is None:
        return "nvvm" if on_device else "cpu"
    if on_device != (target == "nvvm"):
        where = ("the memory of the CPU", "the memory of a GPU")
        raise ValueError(
            f"target: expected arrays in {where[target == 'nvvm']} for target={target!r}, but got "
            f"arrays in {where[on_device]}"
        )
    return target


def _make_attention_plan(
    causal, feature_map, normalize, denominator, weights, scale, form, target, no_mask, no_prefix, given,
    return_state,
):  # fmt: skip
    no_state = given is None
    causal = check_flag("causal", causal)
    normalize = check_flag("normalize", normalize)
    return_state = check_flag("return_state", return_state)
    if scale is not PER_CALL:
        scale = check_number("scale", scale)
    check_choice("weights", weights, ("linear", "softmax"))
    target, (form, config) = parse_target(target), parse_form(form)
    softmax, stateful = weights == "softmax", return_state or not no_state
    if softmax:
        _check_softmax(feature_map, denominator, form, no_state, return_state)
        feature_map, normalize = None, False
    denominator = check_denominator(denominator, normalize)
    if not no_prefix and not causal:
        raise ValueError("prefix: expected it only with causal=True, but got it without")
    if not no_prefix and stateful:
        name = "return_state" if return_state else "initial_state"
        raise ValueError(f"{name}: expected no prefix beside a state, which has no prefix, but got both")
    if form == "quadratic" and stateful:
        raise ValueError("form: expected a recurrent form with a state, but got quadratic, which has none")
    phi = _features.parse(feature_map)
    check_abs_floor(denominator, phi.kind)
    options = Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=normalize, denominator=denominator,
        causal=causal, weights=weights,
        config=config, quadratic=form == "quadratic", has_state=not no_state,
        returns_state=return_state,
        gates=(() if no_mask else ("mask",)) + (() if no_prefix else ("prefix",)),
    )  # fmt: skip
    if not stateful:
        text = _text.attention_text
    else:
        text = _text.scan_text if causal else _text.noncausal_text
    layouts = {"mask": ("mask", f"B {'T' if causal else 'Tk'}"), "prefix": ("counts", "B")}
    default_scale = "K**-0.5" if softmax else 1.0 if stateful else None
    return make_plan(
        options, text, scale=default_scale if scale is None else scale, target=target,
        what="attention", gates=[(name, *layouts[name]) for name in options.gates],
        same_length=causal, given=given,
    )  # fmt: skip


makers["attention"] = _make_attention_plan


def _check_softmax(feature_map, denominator, form, no_state, return_state):
    """Softmax weights take what makes sense with them; defaults pass."""
    why = "but got weights='softmax'"
    if feature_map not in (None, "identity", "elu"):
        raise ValueError(f"feature_map: expected weights='linear' with a feature map, {why}")
    for name, number in zip(("eps", "floor", "abs_floor", "clamp"), denominator):
        if number is not None:
            raise ValueError(f"{name}: expected weights='linear' with {name}, {why}, which sum to one")
    if not no_state or return_state:
        name = "initial_state" if not no_state else "return_state"
        raise ValueError(f"{name}: expected weights='linear' with a state, {why}, which have none of fixed size")
    if form not in ("auto", "quadratic"):
        raise ValueError(f"form: expected auto or quadratic for softmax weights, which have no recurrence, but got {form!r}")
