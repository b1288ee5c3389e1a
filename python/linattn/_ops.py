"""`attention` and `scan`.

A call looks up the plan for its options; the plan, in C++, looks at the arrays
and finds the kernel for their dtype and head sizes. Everything else in this
file runs once per combination.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from . import _features, _linattn, _text
from ._checks import UnsupportedError, check_choice, check_flag, check_number, parse_form
from ._state import State
from ._text import Options, Sizes

__all__ = ["attention", "scan"]

# Options -> Plan. Feature maps that are made anew for every call must not fill
# the memory.
_plans = {}
_MAX_PLANS = 1024

# Operands of scan beside the tokens, in the op's order, with their layout.
_GATES = {
    "decay": "key_gate",
    "value_decay": "value_gate",
    "beta": "value_gate",
    "a": "key_gate",
    "b": "key_gate",
    "bonus": "bonus",
    "cu_seqlens": "offsets",
}


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    feature_map="elu",
    normalize=True,
    eps=None,
    weights="linear",
    scale=None,
    mask=None,
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
        "softmax_kernel", or a Python function, traced once on a number.
      normalize: divide by the sum of the weights.
      eps: added to that sum; 1e-6, or 1e-4 for 16-bit tokens, unless given.
      weights: "linear" or "softmax".
      scale: multiplies the weights; 1, or K**-0.5 for softmax, unless given.
      mask: bool ``[B, Tk]``, True = attend.
      initial_state: a `State`, or S ``[B, H, K, V]`` where nothing else is
        carried: the sums over earlier keys.
      return_state: also return the state after these keys.
      out: where to write the result; returned.
      num_threads: for this call. Results do not depend on it.
      form: "auto", "quadratic", "token", "state-tile", "chunk", "chunk:64".
      target: "cpu" (or None), or "reference" for plain loops.

    Returns:
      ``o``, of the same kind and rank as q, ``[B, T, max(Hq, Hk, Hv), V]``; with
      `return_state`, ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    key = (
        "attention", causal, feature_map, normalize, eps, weights, scale, form, target,
        mask is None, initial_state is None, return_state,
    )  # fmt: skip
    try:
        plan = _plans[key]
    except (KeyError, TypeError):
        plan = _make_attention_plan(*key[1:])
        _remember(key, plan)
    S = z = m = None
    if initial_state is not None:
        S, z, m = _unpack(initial_state, plan)
    extra = None if mask is None else (mask,)
    result = plan(q, k, v, extra, S, z, m, out, None, num_threads)
    if return_state:
        o, *parts = result
        return o, State(*parts)
    return result


def scan(
    q,
    k,
    v,
    *,
    decay=None,
    value_decay=None,
    beta=None,
    a=None,
    b=None,
    transition="before",
    bonus=None,
    update="add",
    readout="inclusive",
    feature_map=None,
    normalize=False,
    eps=None,
    scale=None,
    initial_state=None,
    return_state=False,
    cu_seqlens=None,
    reverse=False,
    out=None,
    num_threads=None,
    form="auto",
    target=None,
):
    """The linear recurrence over tokens.

    Per head, for t = 0, 1, …::

        S_t = Diag(e^decay_t) S_{t-1} Diag(e^value_decay_t) + b_t (Xᵀ a_t)ᵀ + φ(k_t) v_tᵀ
        o_t = scale · S_tᵀ φ(q_t)

    The operands present say which family it is: none is linear attention, a
    decay RetNet, GLA or Mamba-2, ``update="delta"`` with beta DeltaNet, ``a`` and
    ``b`` with ``update="dplr"`` RWKV-7 and its kin.

    Args:
      q, k, v: ``[B, T, H, D]``, ``[B, T, D]`` or ``[T, D]``, as in `attention`.
      decay: natural logarithms, ≤ 0: ``[H]``, ``[B, T, H]`` or ``[B, T, H, K]``.
      value_decay: the same along the values, ``[B, T, H, V]``.
      beta: ``[B, T, H]`` or ``[B, T, H, V]``, for ``update="delta"``.
      a, b: ``[B, T, H, K]``, for ``update="dplr"``.
      transition: whether `a` reads the state "before" or "after" the decay.
      bonus: ``[H, K]``, for ``readout="exclusive"``.
      update: "add", "delta" or "dplr".
      readout: "inclusive" reads the token's own write, "exclusive" does not.
      feature_map, normalize, eps, out, num_threads, form, target: as in
        `attention`.
      scale: K**-0.5 unless given.
      initial_state: a `State`, or S ``[N, H, K, V]``, float32 (float64 for
        float64 tokens).
      return_state: also return the final state.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      reverse: from the last token to the first.

    Returns:
      ``o``, or ``(o, state)`` with `return_state`.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      UnsupportedError: a legal combination that is not compiled yet.
    """
    result = _run_scan(
        q, k, v, decay, value_decay, beta, a, b, transition, bonus, update, readout, feature_map,
        normalize, eps, scale, initial_state, return_state, cu_seqlens, reverse, out, num_threads,
        form, target, None,
    )  # fmt: skip
    if return_state:
        o, *parts = result
        return o, State(*parts)
    return result


def _run_scan(
    q, k, v, decay, value_decay, beta, a, b, transition, bonus, update, readout, feature_map,
    normalize, eps, scale, initial_state, return_state, cu_seqlens, reverse, out, num_threads,
    form, target, state_out,
):  # fmt: skip
    """`scan`, with the state as plain arrays and a place to write it to."""
    if decay is value_decay is beta is a is b is bonus is cu_seqlens is None:
        gates, extra = (), None
    else:
        if isinstance(cu_seqlens, (list, tuple)):
            cu_seqlens = np.asarray(cu_seqlens)
            cu_seqlens = cu_seqlens.astype(np.int64) if cu_seqlens.dtype.kind == "i" else cu_seqlens
        values = (decay, value_decay, beta, a, b, bonus, cu_seqlens)
        gates = tuple(name for name, value in zip(_GATES, values) if value is not None)
        extra = tuple(value for value in values if value is not None)
    key = (
        "scan", gates, transition, update, readout, feature_map, normalize, eps, scale, form,
        target, reverse, initial_state is None, return_state,
    )  # fmt: skip
    try:
        plan = _plans[key]
    except (KeyError, TypeError):
        plan = _make_scan_plan(*key[1:])
        _remember(key, plan)
    S = z = m = None
    if initial_state is not None:
        S, z, m = _unpack(initial_state, plan)
    return plan(q, k, v, extra, S, z, m, out, state_out, num_threads)


def _remember(key, plan):
    if len(_plans) >= _MAX_PLANS:
        _plans.clear()
    _plans[key] = plan


def _unpack(initial_state, plan):
    """S, z and m of a state, which must carry what the plan needs."""
    if isinstance(initial_state, State):
        S, z, m = initial_state.S, initial_state.z, initial_state.m
    else:
        S, z, m = initial_state, None, None
    for name, part, needed in (("z", z, plan.normalized), ("m", m, plan.stabilized)):
        if needed and part is None:
            raise ValueError(
                f"initial_state: expected a State with {name}, since the result is normalized, "
                f"but got {'one' if isinstance(initial_state, State) else 'an array'} without"
            )
        if not needed and part is not None:
            raise ValueError(
                f"initial_state: expected a State without {name}, since nothing here carries it "
                f"on, but got one with {name}; pass normalize=True"
                + (" and the feature map exp" if name == "m" else "")
            )
    return S, z, m


# ----------------------------------------------------------------------------
# Plans
# ----------------------------------------------------------------------------


def default_eps(dtype):
    return 1e-4 if dtype in ("f16", "bf16") else 1e-6


def make_plan(options, text, *, eps, scale, target, what, operands=(), **shape):
    """A plan whose kernels come from `text`; eps and scale are filled in for the
    dtype and head size."""

    def build(sizes, extra):
        sizes = Sizes(*sizes)
        filled = dataclasses.replace(
            options,
            eps=default_eps(sizes.dtype) if eps is None else eps,
            scale=sizes.K**-0.5 if scale == "K**-0.5" else scale,
        )
        source = text(filled, sizes, extra)
        try:
            return _linattn.compile(source, "", f"<{what}>", target)
        except ValueError as error:
            unsupported = _describe_unsupported(filled)
            if unsupported:
                raise UnsupportedError(f"{unsupported}: not compiled yet: {error}") from None
            raise

    return _linattn.Plan(
        build,
        list(operands),
        shape.get("has_query", True),
        shape.get("has_keys", True),
        shape.get("same_length", False),
        options.has_state,
        options.returns_state,
        options.normalize,
        options.stabilized,
        # These forms are laid out for the heads at hand.
        bool(options.config) and ("token" in options.config or "chunk" in options.config),
    )


def _describe_unsupported(options):
    """What beyond the plain recurrence these options ask for."""
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
        return "cpu"
    return check_choice("target", target, ("cpu", "reference"))


def _make_attention_plan(
    causal, feature_map, normalize, eps, weights, scale, form, target, no_mask, no_state, return_state
):
    causal = check_flag("causal", causal)
    normalize = check_flag("normalize", normalize)
    return_state = check_flag("return_state", return_state)
    eps, scale = check_number("eps", eps, minimum=0.0), check_number("scale", scale)
    check_choice("weights", weights, ("linear", "softmax"))
    target, (form, config) = parse_target(target), parse_form(form)
    softmax, stateful = weights == "softmax", return_state or not no_state
    if softmax:
        _check_softmax(feature_map, normalize, eps, form, no_state, return_state)
        feature_map, normalize = None, False
    elif eps is not None and not normalize:
        raise ValueError(f"eps: expected it only with normalize=True, but got {eps} without")
    if form == "quadratic" and stateful:
        raise ValueError("form: expected a recurrent form with a state, but got quadratic, which has none")
    phi = _features.parse(feature_map)
    options = Options(
        kind=phi.kind, region=phi.region, normalize=normalize, causal=causal, weights=weights,
        config=config, quadratic=form == "quadratic", has_state=not no_state,
        returns_state=return_state, gates=() if no_mask else ("mask",),
    )  # fmt: skip
    if not stateful:
        text = _text.attention_text
    else:
        text = _text.scan_text if causal else _text.noncausal_text
    default_scale = "K**-0.5" if softmax else 1.0 if stateful else None
    return make_plan(
        options, text, eps=eps, scale=default_scale if scale is None else scale, target=target,
        what="attention", operands=[(name, "mask") for name in options.gates], same_length=causal,
    )  # fmt: skip


def _check_softmax(feature_map, normalize, eps, form, no_state, return_state):
    """Softmax weights take what makes sense with them; defaults are not asked for."""
    why = "but got weights='softmax'"
    if feature_map not in (None, "identity", "elu"):
        raise ValueError(f"feature_map: expected weights='linear' with a feature map, {why}")
    if eps is not None:
        raise ValueError(f"eps: expected weights='linear' with eps, {why}, which sum to one")
    if not no_state or return_state:
        name = "initial_state" if not no_state else "return_state"
        raise ValueError(f"{name}: expected weights='linear' with a state, {why}, which have none of fixed size")
    if form not in ("auto", "quadratic"):
        raise ValueError(f"form: expected auto or quadratic for softmax weights, which have no recurrence, but got {form!r}")


def _make_scan_plan(
    gates, transition, update, readout, feature_map, normalize, eps, scale, form, target, reverse,
    no_state, return_state,
):  # fmt: skip
    normalize = check_flag("normalize", normalize)
    reverse = check_flag("reverse", reverse)
    return_state = check_flag("return_state", return_state)
    eps, scale = check_number("eps", eps, minimum=0.0), check_number("scale", scale)
    check_choice("transition", transition, ("before", "after"))
    check_choice("update", update, ("add", "delta", "dplr"))
    check_choice("readout", readout, ("inclusive", "exclusive"))
    target, (form, config) = parse_target(target), parse_form(form)
    _check_family(gates, update, readout, normalize, eps)
    if form == "quadratic":
        raise ValueError(
            "form: expected a recurrent form for scan, but got quadratic; attention(causal=True) has it"
        )
    phi = _features.parse(feature_map)
    options = Options(
        kind=phi.kind, region=phi.region, normalize=normalize, config=config, update=update,
        readout=readout, transition=transition, reverse=reverse, has_state=not no_state,
        returns_state=return_state, gates=gates,
    )  # fmt: skip
    return make_plan(
        options, _text.scan_text, eps=eps, scale="K**-0.5" if scale is None else scale,
        target=target, what="scan", operands=[(name, _GATES[name]) for name in gates],
        same_length=True,
    )  # fmt: skip


def _check_family(gates, update, readout, normalize, eps):
    """Operands that mean something only with others."""

    def only(name, allowed, expected):
        if name in gates and not allowed:
            raise ValueError(f"{name}: expected it only with {expected}, but got it without")

    only("beta", update == "delta", "update='delta'")
    only("a", update == "dplr", "update='dplr'")
    only("b", update == "dplr", "update='dplr'")
    only("value_decay", update == "add", "update='add'")
    only("bonus", readout == "exclusive", "readout='exclusive'")
    if update == "delta" and "beta" not in gates:
        raise ValueError("beta: expected an array with update='delta', but got None")
    for name in ("a", "b"):
        if update == "dplr" and name not in gates:
            raise ValueError(f"{name}: expected an array with update='dplr', but got None")
    if normalize and (update != "add" or readout != "inclusive"):
        raise ValueError(
            "normalize: expected it only with update='add' and readout='inclusive', but got "
            f"update={update!r} and readout={readout!r}"
        )
    if eps is not None and not normalize:
        raise ValueError(f"eps: expected it only with normalize=True, but got {eps} without")
