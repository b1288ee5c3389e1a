"""`attention`: linear or softmax weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._core._arrays import integers_like
from .._core._checks import check_choice, check_flag, check_number, parse_form, parse_pattern
from .._core._recipe import makers
from .._maps import _features
from .._maps._token_maps import TokenMap
from .._softmax._dropout import attend_with_dropout, check_dropout
from .._softmax._groups import attend_groups, find_kind
from . import _plans, _text
from ._parts import describe_state, unpack
from ._state import State
from ._function import Options

__all__ = ["attention"]


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
    window=None,
    dilation=1,
    global_tokens=0,
    softcap=None,
    slopes=None,
    sinks=None,
    cu_seqlens=None,
    cu_seqlens_k=None,
    cache_seqlens=None,
    block_table=None,
    block_mask=None,
    block_size=None,
    dropout=0.0,
    seed=None,
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
      window: the query at position p attends to the keys at distances below it only:
        to the last `window` keys up to its own if `causal`, else to ``window - 1`` on each
        side. With fewer queries than keys (softmax weights or a window) the last query
        has the last key's position. Work is linear in the window (Longformer, Mistral).
      dilation: keys at distances that it divides only; a window then reaches
        ``window * dilation`` tokens.
      global_tokens: how many first tokens attend to all keys and are attended to by all
        queries, besides the window: attention sinks if `causal` (StreamingLLM).
      softcap: softmax scores become ``softcap * tanh(score / softcap)`` (Gemma 2).
      slopes: softmax scores decrease by ``slopes[h] * |p - j|``, floats ``[H]`` for the heads of
        the result (ALiBi).
      sinks: the score of a key without a value, floats ``[H]``: a head may give its weight to
        nothing (gpt-oss).
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1, for softmax weights.
      cu_seqlens_k: ``[N + 1]`` offsets of their keys; those of the queries unless given. The last
        query of a sequence has the position of its last key.
      cache_seqlens: int ``[B]``, how many of the keys each batch element has, of a cache ``[B, Tk, …]``;
        causal queries are the last ones. For softmax weights.
      block_table: int ``[B, M]``, the pages of each cache: k and v are then ``[pages, page size, Hk, K]`` and
        ``[pages, page size, Hv, V]``.
      block_mask: bool ``[⌈T / block_size⌉, ⌈Tk / block_size⌉]``, the blocks of keys that each block of queries
        sees, for softmax weights; time grows with the blocks that are seen. With `causal` a block
        sees itself. `linattn.block_mask` makes that of BigBird.
      block_size: tokens of a block.
      dropout: the share of softmax weights that become 0; the others are divided by 1 − dropout. Whether a weight
        is dropped follows from `seed` and its batch element, head, query and key, by Philox4x32-10:
        the same ones on every target, and for any number of threads. It goes with `causal`,
        `scale`, `softcap` and `mask`.
      seed: of dropout, an integer of [0, 2**63), or an array of one.
      initial_state: a `State`, or S ``[B, H, K, V]`` where nothing else is
        carried: the sums over earlier keys.
      return_state: also return the state after these keys.
      out: where to write the result; returned.
      num_threads: for this call. Results do not depend on it.
      form: "auto", "quadratic", "token", "state-tile", "chunk", "chunk:64",
        "segments" (of the tokens, in parallel), "segments:1024".
      target: None, where the arrays are: arrays of a GPU (of PyTorch, CuPy, JAX or
        objects with ``__dlpack__`` or ``__cuda_array_interface__``) are worked on there,
        in order with the current stream of their library, and not waited for. Or "cpu",
        "nvvm", "reference" for plain loops, "nvvm-emulated" for tests of the kernels of
        a GPU.

    Returns:
      ``o``, of the same kind and rank as q, ``[B, T, max(Hq, Hk, Hv), V]``; with
      `return_state`, ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    if not (cu_seqlens is cu_seqlens_k is cache_seqlens is block_table is block_mask is block_size is None):
        groups = (cu_seqlens, cu_seqlens_k, cache_seqlens, block_table, block_mask, block_size)
        kind = find_kind(dict(zip(_GROUPS, groups)), weights)
        if dropout != 0 or seed is not None:
            raise ValueError(f"dropout: expected 0 and no seed beside groups of queries ({kind}), but got {dropout!r}")
        _check_softmax(feature_map, (eps, floor, abs_floor, clamp), form, initial_state is None, return_state)
        return _attend_groups(
            kind, q, k, v, dict(zip(_GROUPS, groups)), (mask, slopes, sinks), prefix, causal, scale,
            (window, dilation, global_tokens), softcap, out, num_threads, target,
        )  # fmt: skip
    if dropout != 0 or seed is not None:
        _check_softmax(feature_map, (eps, floor, abs_floor, clamp), form, initial_state is None, return_state)
        others = {"window": window, "global_tokens": global_tokens or None, "prefix": prefix, "slopes": slopes, "sinks": sinks}
        return _attend_with_dropout(
            q, k, v, dropout, seed, weights, others, dilation, mask, causal, scale, softcap, out, num_threads, target
        )  # fmt: skip
    maps, numbers = (), ()
    if isinstance(feature_map, TokenMap):
        feature_map, maps = _features.split(feature_map, q, k, initial_state is not None)
    if scale is not None:
        scale, numbers = _plans.split_scale(scale, target)
    key = (
        "attention", causal, feature_map, normalize, (eps, floor, abs_floor, clamp), weights,
        scale, form, target, mask is None, prefix is None, describe_state(initial_state),
        return_state, (window, dilation, global_tokens), softcap, slopes is None, sinks is None,
    )  # fmt: skip
    plan = _plans.find(key)
    state = None if initial_state is None else unpack(initial_state, plan)
    operands = (q, k, v, *maps) if mask is None else (q, k, v, *maps, mask)
    if prefix is not None:
        operands += (_lengths(prefix, q),)
    if slopes is not None:
        operands += (slopes,)
    if sinks is not None:
        operands += (sinks,)
    result = plan(operands + numbers, state, out, False, num_threads)
    if return_state:
        o, *parts = result
        return o, State(*parts)
    return result


_GROUPS = ("cu_seqlens", "cu_seqlens_k", "cache_seqlens", "block_table", "block_mask", "block_size")


def _attend_groups(
    kind, q, k, v, groups, others, prefix, causal, scale, pattern, softcap, out, num_threads, target
):  # fmt: skip
    if prefix is not None:
        name = next(name for name, value in groups.items() if value is not None)
        raise ValueError(f"prefix: expected None beside {name}, but got one")
    return attend_groups(
        kind, q, k, v, groups, {name: x for name, x in zip(("mask", "slopes", "sinks"), others) if x is not None},
        check_flag("causal", causal), check_number("scale", scale), parse_pattern(*pattern),
        _check_softcap(softcap), out, num_threads, target,
    )  # fmt: skip


def _attend_with_dropout(
    q, k, v, dropout, seed, weights, others, dilation, mask, causal, scale, softcap, out, num_threads, target
):  # fmt: skip
    if weights != "softmax":
        raise ValueError(f"dropout: expected weights='softmax' with dropout, but got weights={weights!r}")
    refused = [name for name, value in others.items() if value is not None] + ["dilation"] * (dilation != 1)
    dropout = check_dropout(dropout, seed, refused)
    return attend_with_dropout(
        q, k, v, dropout, seed, mask, check_flag("causal", causal), check_number("scale", scale), _check_softcap(softcap),
        out, num_threads, target,
    )  # fmt: skip


def _check_softcap(softcap):
    softcap = check_number("softcap", softcap)
    if softcap is not None and softcap <= 0:
        raise ValueError(f"softcap: expected a positive number, but got {softcap!r}")
    return softcap


def _lengths(prefix, q):
    """One length per batch element, on q's device."""
    if isinstance(prefix, (int, np.integer)) and not isinstance(prefix, bool):
        shape = getattr(q, "shape", (1,))
        prefix = np.full(shape[0] if len(shape) > 2 else 1, prefix, np.int64)
    return integers_like(prefix, q)


def _make_attention_plan(
    causal, feature_map, normalize, denominator, weights, scale, form, target, no_mask, no_prefix, given,
    return_state, pattern, softcap, no_slopes, no_sinks, recorded=False,
):  # fmt: skip
    no_state = given is None
    pattern = parse_pattern(*pattern)
    softcap = check_number("softcap", softcap)
    causal = check_flag("causal", causal)
    normalize = check_flag("normalize", normalize)
    return_state = check_flag("return_state", return_state)
    if scale is not _plans.PER_CALL:
        scale = check_number("scale", scale)
    check_choice("weights", weights, ("linear", "softmax"))
    target, (form, config) = _plans.parse_target(target), parse_form(form)
    softmax, stateful = weights == "softmax", return_state or not no_state
    if softmax:
        _check_softmax(feature_map, denominator, form, no_state, return_state)
        feature_map, normalize = None, False
    for name, is_given in (("softcap", softcap is not None), ("slopes", not no_slopes), ("sinks", not no_sinks)):
        if is_given and not softmax:
            raise ValueError(f"{name}: expected weights='softmax' with {name}, but got weights='linear'")
    _check_softcap(softcap)
    if pattern and stateful:
        name = "return_state" if return_state else "initial_state"
        raise ValueError(f"{name}: expected no window, dilation or global_tokens beside a state, but got both")
    if pattern and not no_prefix:
        raise ValueError("prefix: expected either a prefix or a window, dilation or global_tokens, but got both")
    if pattern and form not in ("auto", "quadratic"):
        raise ValueError(f"form: expected auto or quadratic with a window or dilation, but got {form!r}")
    denominator = _plans.check_denominator(denominator, normalize)
    if not no_prefix and not causal:
        raise ValueError("prefix: expected it only with causal=True, but got it without")
    if not no_prefix and stateful:
        name = "return_state" if return_state else "initial_state"
        raise ValueError(f"{name}: expected no prefix beside a state, which has no prefix, but got both")
    if form == "quadratic" and stateful:
        raise ValueError("form: expected a recurrent form with a state, but got quadratic, which has none")
    phi = _features.parse(feature_map)
    _plans.check_abs_floor(denominator, phi.kind)
    options = Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=normalize, denominator=denominator,
        causal=causal, weights=weights,
        config=config, quadratic=form == "quadratic", has_state=not no_state,
        returns_state=return_state or recorded,
        pattern=pattern, softcap=softcap,
        gates=tuple(
            name for name, is_missing in (
                ("mask", no_mask), ("prefix", no_prefix), ("slopes", no_slopes), ("sinks", no_sinks),
            ) if not is_missing
        ),
    )  # fmt: skip
    if recorded:
        text = _text.recorded_text
    elif not stateful:
        text = _text.attention_text
    else:
        text = _text.scan_text if causal else _text.noncausal_text
    same_length = causal and not softmax and not pattern
    layouts = {
        "mask": ("mask", f"B {'T' if same_length else 'Tk'}"), "prefix": ("counts", "B"),
        "slopes": ("gate", "Ho"), "sinks": ("gate", "Ho"),
    }  # fmt: skip
    default_scale = "K**-0.5" if softmax else 1.0 if stateful else None
    return _plans.make_plan(
        options, text, scale=default_scale if scale is None else scale, target=target,
        what="attention", gates=[(name, *layouts[name]) for name in options.gates],
        same_length=same_length, given=given, state=(("log_sum", "state", "B Ho T"),) if recorded else None,
        recorded="recorded_attention" if softmax and not recorded else None, keeps_results=recorded,
    )  # fmt: skip


makers["attention"] = _make_attention_plan
makers["recorded_attention"] = partial(_make_attention_plan, recorded=True)


def _check_softmax(feature_map, denominator, form, no_state, return_state):
    """Raises for options that have no meaning with softmax weights. Defaults pass."""
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
