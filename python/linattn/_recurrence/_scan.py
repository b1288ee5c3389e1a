"""`scan`: the recurrence.

Combinations of operands are checked here, their shapes in C++, and both again by
the compiler.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from .._core._arrays import convert_like, dtype_name, is_on_device, to_numpy
from .._core._checks import check_choice, check_flag, check_number, parse_form
from .._core._recipe import makers
from .._maps import _features
from .._maps._token_maps import TokenMap
from . import _ops, _snapshots, _text
from ._state import State, find_layout
from ._text import Options

__all__ = ["scan"]

# Operands beside the tokens, in the op's order, with their role and layouts.
GATES = {
    "decay": ("gate", "H | B T H | B T H K"),
    "value_decay": ("gate", "B T H V"),
    "beta": ("gate", "B T H | B T H V"),
    "a": ("gate", "B T H K"),
    "b": ("gate", "B T H K"),
    "bonus": ("gate", "H K"),
    "erase": ("gate", "B T H K"),
    "write": ("gate", "B T H V"),
    "input_gate": ("gate", "B T H"),
    "mask": ("mask", "B T"),
    "cu_seqlens": ("offsets", "T"),
    "state_indices": ("counts", "N"),
}


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
    erase=None,
    write=None,
    input_gate=None,
    mask=None,
    update="add",
    readout="inclusive",
    feature_map=None,
    normalize=False,
    eps=None,
    floor=None,
    abs_floor=None,
    clamp=None,
    scale=None,
    initial_state=None,
    return_state=False,
    states_every=None,
    inplace=False,
    state_dtype=None,
    cu_seqlens=None,
    reverse=False,
    out=None,
    num_threads=None,
    form="auto",
    target=None,
    check=False,
    state_layout=None,
):
    """The linear recurrence over tokens.

    Per head, for t = 0, 1, …::

        S_t = Diag(e^decay_t) S_{t-1} Diag(e^value_decay_t) + b_t (Xᵀ a_t)ᵀ + φ(k_t) v_tᵀ
        o_t = scale · S_tᵀ φ(q_t)

    The operands present say which family it is: none is linear attention, a
    decay RetNet, GLA or Mamba-2, ``update="delta"`` with beta DeltaNet, ``a`` and
    ``b`` with ``update="dplr"`` RWKV-7 and its kin, ``update="oja"`` gated Oja,
    an input gate with ``abs_floor=1`` mLSTM.

    Args:
      q, k, v: ``[B, T, H, D]``, ``[B, T, D]`` or ``[T, D]``, as in `attention`.
      decay: natural logarithms, ≤ 0: ``[H]``, ``[B, T, H]`` or ``[B, T, H, K]``.
      value_decay: the same along the values, ``[B, T, H, V]``.
      beta: ``[B, T, H]`` or ``[B, T, H, V]``, for ``update="delta"``; ``[B, T, H]``
        for ``update="oja"``.
      a, b: ``[B, T, H, K]``, for ``update="dplr"``.
      erase, write: ``[B, T, H, K]`` and ``[B, T, H, V]``, for ``update="delta"``:
        gates of the key that is erased and of the value that is written.
      input_gate: ``[B, T, H]``, natural logarithms of any sign: the key is written
        times e^input_gate, and the state carries a running maximum. Needs
        normalize.
      mask: bool ``[B, T]``; a False token decays the state and reads it, and does
        nothing else.
      transition: whether `a` reads the state "before" or "after" the decay, for
        ``update="dplr"``; the delta rule reads after it.
      bonus: ``[H, K]``, for ``readout="exclusive"``.
      update: "add", "delta", "dplr" or "oja".
      readout: "inclusive" reads the token's own write, "exclusive" does not.
      feature_map, normalize, eps, floor, abs_floor, clamp, out, num_threads, form,
        target: as in `attention`. Under an input gate eps and floor meet the sum
        of the weights relative to the largest gate, abs_floor the sum itself.
      check: look at every decay first: a positive one, or a NaN, is an error that
        tells where it is. It costs a pass over them.
      scale: K**-0.5 unless given.
      initial_state: a `State`, or S ``[N, H, K, V]``, of the state's dtype.
      state_dtype: "float32" or "float64", in which everything is computed; unless
        given, that of an initial `State`, or float32 (float64 for float64 tokens).
      return_state: also return the final state.
      states_every: also return the states after every so many tokens, from which a
        prefix can be continued: ``[N, T // n, H, K, V]``. They are those of a loop
        of scans with n tokens each, for which a kernel of its own is compiled.
      inplace: the final state overwrites the initial one, without a copy and without
        memory of its own; the state that is returned has the same arrays. They must be
        writable, of the state's dtype, and share no memory with other operands. (Where a
        kernel does not write them, as that of `linattn.rwkv4`, which puts vectors side by
        side, they are copied to at the end.)
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      reverse: from the last token to the first.
      state_layout: "kv", or "vk" for states that are stored ``[N, H, V, K]``, in
        and out, without a copy; that of an initial `State` unless given, else "kv".

    Returns:
      ``o``, or ``(o, state)`` with `return_state`, and with `states_every` also the
      states: ``(o, state, states)``, or ``(o, states)``. They are an array, or named
      parts S, z and m where the state has them; of packed sequences a list, one
      ``[T // n, H, K, V]`` for each. With `reverse` they are in the order in which the
      tokens are read, the last one first. Bit for bit, a state after t tokens is that
      of a call with these tokens alone where ``form="token"``, and within the
      tolerance of the forms otherwise.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      UnsupportedError: a legal combination that is not compiled yet.
    """
    operands = (
        decay, value_decay, beta, a, b, bonus, erase, write, input_gate, mask, cu_seqlens, None,
    )  # fmt: skip
    every = None
    if states_every is not None:
        every, return_state = _snapshots.check_every(states_every), check_flag("return_state", return_state)
        reverse, inplace = check_flag("reverse", reverse), check_flag("inplace", inplace)
        if cu_seqlens is not None:
            return _scan_packed(
                q, k, v, operands[:-2], cu_seqlens, initial_state, return_state, inplace, out, state_layout,
                update=update, readout=readout, transition=transition, feature_map=feature_map,
                normalize=normalize, eps=eps, floor=floor, abs_floor=abs_floor, clamp=clamp,
                scale=scale, state_dtype=state_dtype, reverse=reverse,
                num_threads=num_threads, form=form, target=target, check=check, states_every=every,
            )  # fmt: skip
    result = run_scan(
        q, k, v, operands, transition, update, readout, feature_map, normalize,
        (eps, floor, abs_floor, clamp), scale, initial_state, return_state, state_dtype, reverse,
        out, num_threads, form, target, check=check, state_layout=state_layout, inplace=inplace,
        every=every,
    )  # fmt: skip
    if not return_state and every is None:
        return result
    o, *parts = result
    states = ()
    if every is not None:
        count = len(parts) // (1 + return_state)
        parts, states = parts[:-count], (_snapshots.States.of(parts[-count:]),)
        if not return_state:
            return o, *states
    if inplace and isinstance(initial_state, State):
        return o, initial_state, *states
    return o, State(*parts, layout=find_layout(initial_state, state_layout)), *states


def run_scan(
    q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
    initial_state, return_state, state_dtype, reverse, out, num_threads, form, target,
    check=False, state_layout=None, inplace=False, every=None,
):  # fmt: skip
    """`scan`, with the operands in the order of `GATES`, the denominator as (eps, floor,
    abs_floor, clamp), and the state, and the states in between, as plain arrays."""
    given = _ops.describe_state(initial_state)
    if inplace is not False:
        inplace = _ops.check_inplace(inplace, given)
    plan, arrays = find_plan(
        q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
        initial_state, return_state or inplace, state_dtype, reverse, form, target, check, state_layout,
        given, every,
    )  # fmt: skip
    state = None if initial_state is None else _ops._unpack(initial_state, plan)
    if not inplace:
        return plan(arrays, state, out, False, num_threads)
    check_flag("return_state", return_state)
    result = plan(arrays, state, out, _ops.ALWAYS, num_threads)
    o, kept = _ops.finish_inplace(state, result[: 1 + len(state)]), result[1 + len(state) :]
    return (o, *(state if return_state else ()), *kept) if return_state or kept else o


def _scan_packed(
    q, k, v, operands, cu_seqlens, initial_state, return_state, inplace, out, state_layout, **options,
):  # fmt: skip
    """`scan` with `states_every` of packed sequences, which are cut at different places."""
    arrays = {"q": q, "k": k, "v": v, **dict(zip(GATES, operands)), "out": out}

    def run(arrays, initial):
        return scan(
            **arrays, **options, initial_state=initial, return_state=True, inplace=inplace,
            state_layout=state_layout,
        )  # fmt: skip

    o, parts, states = _snapshots.scan_packed(run, arrays, cu_seqlens, initial_state)
    if not return_state:
        return o, states
    if inplace:
        parts = initial_state._parts() if isinstance(initial_state, State) else (initial_state,)
        if isinstance(initial_state, State):
            return o, initial_state, states
    return o, State(*parts, layout=find_layout(initial_state, state_layout)), states


def find_plan(
    q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
    initial_state, return_state, state_dtype, reverse, form, target, check, state_layout, given,
    every=None,
):  # fmt: skip
    """The plan of a scan, and the arrays and numbers that it takes."""
    if check is not False and check_flag("check", check):
        check_decays(decay=operands[0], value_decay=operands[1])
    present, maps = (), ()
    if isinstance(feature_map, TokenMap):
        feature_map, maps = _features.split(feature_map, q, k, initial_state is not None)
    arrays = (q, k, v, *maps)
    gates = [operand for operand in operands if operand is not None]
    if gates:
        if operands[-1] is not None or operands[-2] is not None:
            operands = (*operands[:-2], *(integers_like(operand, q) for operand in operands[-2:]))
            gates = [operand for operand in operands if operand is not None]
        present = tuple([operand is not None for operand in operands])
        arrays += tuple(gates)
    if state_dtype is None and isinstance(initial_state, State):
        # Made so on purpose, unlike an array, which is float64 by NumPy's default.
        state_dtype = "float64" if dtype_name(initial_state.S) == "float64" else None
    state_layout = find_layout(initial_state, state_layout)
    if scale is not None:
        scale, numbers = _ops.split_scale(scale, target)
        arrays += numbers
    key = (
        "scan", present, transition, update, readout, feature_map, normalize, denominator, scale,
        form, target, reverse, given, return_state, state_dtype, state_layout, every,
    )  # fmt: skip
    try:
        plan = _ops._plans[key]
    except (KeyError, TypeError):
        plan = _make_scan_plan(*key[1:])
        _ops._remember(key, plan)
    return plan, arrays


def integers_like(operand, tokens):
    """Lists of integers are fine, and go where the tokens are, as NumPy's arrays do; what
    else is there is left to be refused."""
    if isinstance(operand, (list, tuple)):
        operand = np.asarray(operand)
        operand = operand.astype(np.int64) if operand.dtype.kind == "i" else operand
    if isinstance(operand, np.ndarray) and is_on_device(tokens):
        return convert_like(operand, tokens)
    return operand


def check_decays(**decays):
    """Raises a ValueError for the first logarithm above 0, or NaN."""
    for name, decay in decays.items():
        if decay is None:
            continue
        decay = to_numpy(decay, name)
        bad = np.argwhere(~(decay <= 0))
        if len(bad):
            index = tuple(bad[0].tolist())
            raise ValueError(
                f"{name}: expected natural logarithms of at most 0, but got {decay[index]} at {index}"
            )


def _make_scan_plan(
    present, transition, update, readout, feature_map, normalize, denominator, scale, form, target,
    reverse, given, return_state, state_dtype, state_layout, every,
):  # fmt: skip
    gates = tuple(compress(GATES, present))
    normalize = check_flag("normalize", normalize)
    reverse = check_flag("reverse", reverse)
    return_state = check_flag("return_state", return_state)
    if scale is not _ops.PER_CALL:
        scale = check_number("scale", scale)
    if state_dtype is not None:
        check_choice("state_dtype", state_dtype, ("float32", "float64"))
    denominator = _ops.check_denominator(denominator, normalize)
    target, (form, config) = _ops.parse_target(target), parse_form(form)
    phi = _features.parse(feature_map)
    check_family(gates, update, readout, transition, normalize, phi.kind)
    _ops.check_abs_floor(denominator, phi.kind)
    if form == "quadratic":
        raise ValueError(
            "form: expected a recurrent form for scan, but got quadratic; attention(causal=True) has it"
        )
    options = Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=normalize,
        denominator=denominator, config=config, update=update, readout=readout,
        transition=transition, reverse=reverse, has_state=given is not None,
        returns_state=return_state, gates=gates, state_dtype=state_dtype, every=every,
    )  # fmt: skip
    return _ops.make_plan(
        options, _text.scan_text, scale="K**-0.5" if scale is None else scale, target=target,
        what="scan", gates=[(name, *GATES[name]) for name in gates], same_length=True,
        state_layout=state_layout, pool="state_indices" in gates, given=given,
    )  # fmt: skip


makers["scan"] = _make_scan_plan

# The updates that an operand goes with.
_UPDATES = {
    "beta": ("delta", "oja"),
    "erase": ("delta",),
    "write": ("delta",),
    "a": ("dplr",),
    "b": ("dplr",),
    "value_decay": ("add", "oja"),
}


def check_family(gates, update, readout, transition, normalize, kind):
    """Operands and options that mean something only with others."""
    check_choice("transition", transition, ("before", "after"))
    check_choice("update", update, ("add", "delta", "dplr", "oja"))
    check_choice("readout", readout, ("inclusive", "exclusive"))
    for name, updates in _UPDATES.items():
        if name in gates and update not in updates:
            expected = " or ".join(f"update={rule!r}" for rule in updates)
            raise ValueError(f"{name}: expected it only with {expected}, but got it without")
    if "bonus" in gates and readout != "exclusive":
        raise ValueError("bonus: expected it only with readout='exclusive', but got it without")
    if "bonus" in gates and update not in ("add", "dplr"):
        raise ValueError(
            "bonus: expected it only with update='add' or update='dplr', but got it without"
        )
    if transition == "after" and update in ("add", "oja"):
        raise ValueError(f"transition: expected it only with update='dplr', but got update={update!r}")
    if update == "delta" and not {"beta", "erase"} & set(gates):
        raise ValueError("beta: expected an array with update='delta', or erase, but got None")
    if update == "oja" and "beta" not in gates:
        raise ValueError("beta: expected an array with update='oja', but got None")
    for name in ("a", "b"):
        if update == "dplr" and name not in gates:
            raise ValueError(f"{name}: expected an array with update='dplr', but got None")
    if normalize and (update != "add" or readout != "inclusive"):
        raise ValueError(
            "normalize: expected it only with update='add' and readout='inclusive', but got "
            f"update={update!r} and readout={readout!r}"
        )
    if normalize and "value_decay" in gates:
        raise ValueError(
            "normalize: expected it without value_decay, but got both: one denominator cannot "
            "follow factors that differ between value columns"
        )
    if "input_gate" in gates and not normalize:
        raise ValueError("input_gate: expected it only with normalize=True, but got it without")
    if "input_gate" in gates and kind == "exp":
        raise ValueError("input_gate: expected another feature map than exp, but got both")
