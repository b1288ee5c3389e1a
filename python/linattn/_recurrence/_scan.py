"""`scan`: the recurrence."""

from __future__ import annotations

from .._core._checks import check_flag
from .._core._recipe import local
from . import _plans, _rules, _snapshots
from ._parts import check_inplace, describe_state, find_layout, finish_inplace, unpack
from ._scan_plans import GATES, check_every, find_plan
from ._state import State

__all__ = ["scan"]


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
      beta: ``[B, T, H]`` or ``[B, T, H, V]``, the step size; ``[B, T, H]`` for
        ``update="oja"``.
      a, b: ``[B, T, H, K]``, the vectors of a given transition.
      erase, write: ``[B, T, H, K]`` and ``[B, T, H, V]``, gates of the key that is
        erased and of the value that is written.
      input_gate: ``[B, T, H]``, natural logarithms of any sign: the key is written
        times e^input_gate, and the state carries a running maximum. Needs
        normalize.
      mask: bool ``[B, T]``; a False token decays the state and reads it, and does
        nothing else.
      transition: whether `a` reads the state "before" or "after" the decay; a rule
        that does not take this reads after it.
      bonus: ``[H, K]``, for ``readout="exclusive"``.
      update: the rule by which a token is written. With Sd the decayed state and X
        the one that the transition reads, S_t and the operands it takes are

        RULES

      readout: "inclusive" reads the token's own write, "exclusive" does not.
      feature_map, normalize, eps, floor, abs_floor, clamp: as in `attention`. Under an
        input gate eps and floor meet the sum of the weights relative to the largest gate,
        abs_floor the sum itself.
      out, num_threads, form, target: as in `attention`.
      check: look at every decay first: a positive one, or a NaN, is an error that
        names its position. It costs a pass over them.
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
        every, return_state = check_every(states_every), check_flag("return_state", return_state)
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


_rules.describe(scan)


def run_scan(
    q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
    initial_state, return_state, state_dtype, reverse, out, num_threads, form, target,
    check=False, state_layout=None, inplace=False, every=None,
):  # fmt: skip
    """`scan`, with the operands in the order of `GATES`, the denominator as (eps, floor,
    abs_floor, clamp), and the state, and the states in between, as plain arrays."""
    given = describe_state(initial_state)
    if inplace is not False:
        inplace = check_inplace(inplace, given)
    plan, arrays = find_plan(
        q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
        initial_state, return_state or inplace, state_dtype, reverse, form, target, check, state_layout,
        given, every,
    )  # fmt: skip
    state = None if initial_state is None else unpack(initial_state, plan)
    if not local.has_output:
        return plan.build.sum(arrays, state, num_threads)
    if not inplace:
        return plan(arrays, state, out, False, num_threads)
    if return_state is not False:
        return_state = check_flag("return_state", return_state)
    result = plan(arrays, state, out, _plans.ALWAYS, num_threads)
    o = finish_inplace(state, result)
    if every is None:
        return (o, *state) if return_state else o
    return (o, *(state if return_state else ()), *result[1 + len(state) :])


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


