"""Functions with the signatures of flash-linear-attention, made from a line each.

A line is a signature as Python writes it. The function is compiled from it, as
`collections.namedtuple` and `dataclasses` compile theirs, so that Python itself
knows its parameters and refuses any other.
"""

from __future__ import annotations

import inspect
import textwrap

import numpy as np

from .. import _linattn
from .._core._checks import UnsupportedError, check_flag
from .._families._family import latest

__all__ = ["define", "swap_state"]

# Parameters without effect on the result. Their values are checked all the same.
_HINTS = {
    "cu_seqlens_cpu": "the offsets in the memory of the host, where they are anyway; not used.",
    "chunk_indices": "a table of the chunks, which nothing here needs; not used.",
    "cp_context": "None: one process runs here.",
    "chunk_size": "a hint without effect on the result, a power of 2; not used.",
    "checkpoint_level": "0, 1 or 2: what the backward pass would keep; not used.",
    "disable_recompute": "what the backward pass would keep; not used.",
    "return_intermediate_states": "False: no state per chunk is kept.",
    "output_attentions": "False: no T×T matrix is formed.",
    "use_graph": "whether the original captures a graph of launches; not used.",
    "max_num_seqs": "the most sequences of a captured graph, an integer or None; not used.",
    "safe_gate": "that the decays are at least lower_bound, which nothing here needs to know. With "
    "use_gate_in_kernel it needs lower_bound.",
}

_PARAMETERS = {
    "q": "``[B, T, H, K]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``, any "
    "strides.",
    "r": "``[B, T, H, K]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``, any "
    "strides.",
    "k": "``[B, T, H, K]``, of the first operand's dtype.",
    "v": "``[B, T, HV, V]``; HV a multiple of H, or H of HV.",
    "beta": "``[B, T, HV]``.",
    "scale": "multiplies the output; K**-0.5 if None.",
    "initial_state": "``[N, HV, K, V]``, float32 (float64 for float64 tokens); zeros if None. N is B, or "
    "the number of sequences.",
    "output_final_state": "whether to return the state after the last token.",
    "reverse": "from the last token to the first.",
    "state_v_first": "states are ``[N, HV, V, K]``.",
    "cu_seqlens": "``[N + 1]`` offsets of packed sequences, int32 or int64; B is 1 then.",
    "use_qk_l2norm_in_kernel": "divide q and k by √(x·x + 1e-6) first.",
    "use_gate_in_kernel": "g is the preactivation of the decay, −e^A_log · softplus(g + dt_bias).",
    "A_log": "``[HV]``, for use_gate_in_kernel.",
    "dt_bias": "``[HV]``, for use_gate_in_kernel.",
    "use_beta_sigmoid_in_kernel": "beta is the preactivation of β, sigmoid(beta).",
    "allow_neg_eigval": "β is 2 · sigmoid(beta), for use_beta_sigmoid_in_kernel.",
    "inplace": "beyond flash-linear-attention: final_state overwrites initial_state, without a copy, and is "
    "the same object; without output_final_state as well.",
    "lower_bound": "with use_gate_in_kernel the decay is lower_bound · sigmoid(e^A_log (g + dt_bias)), "
    "from −5 to below 0; A_log may be None then. Without, not used.",
}


def define(adapter, summary, formula, signatures, note="", **parameters):
    """One function for each signature, in order.

    Args:
      adapter: called with the arguments by name, all but the hints; returns
        (o, final_state or None) or what the function is to return.
      summary, formula, note: what the docstrings say.
      parameters: what to say about parameters that differ from the usual.
    """
    functions = []
    for signature in signatures:
        name, _, rest = signature.partition("(")
        if "initial_state=None" in rest and _takes_inplace(adapter):
            rest = f"{rest[:-1]}{', ' if '*,' in rest else ', *, '}inplace=False)"
        namespace = {"_adapter": adapter, "_check_hints": _check_hints, "_learn": _learn}
        namespace["_repeat"] = _linattn.Repeat()
        exec(f"def {name}({rest[:-1]}): pass", namespace)  # noqa: S102
        names = list(inspect.signature(namespace[name]).parameters)
        body = ""
        # A parameter that a function describes itself has an effect there.
        hints = [x for x in names if x in _HINTS and x not in parameters]
        unused = set(hints)
        if hints:
            if "use_gate_in_kernel" in names and "safe_gate" in names:
                hints += ["use_gate_in_kernel", "lower_bound"]
            body = f"    _check_hints({', '.join(f'{x}={x}' for x in hints)})\n"
        given = ", ".join(f"{x}={x}" for x in names if x not in unused)
        lines = [
            f"def {name}({rest[:-1]}):",
            f"    _arguments = ({', '.join(names)},)",
            "    _result = _repeat(_arguments)",
            "    if _result is not None:",
            "        return _result",
            f"{body}    return _learn(_repeat, _arguments, _adapter, {given})",
        ]
        exec("\n".join(lines), namespace)  # noqa: S102
        function = namespace[name]
        function.__module__ = "linattn.fla"
        function.__doc__ = _describe(summary, formula, note, names, parameters)
        functions.append(function)
    return functions


def _takes_inplace(adapter):
    """Whether an adapter can update the initial state in place."""
    parameters = inspect.signature(adapter).parameters.values()
    return any(x.name == "inplace" or x.kind is x.VAR_KEYWORD for x in parameters)


def _learn(repeat, arguments, adapter, **options):
    """Calls the adapter, and has `repeat` learn from it, so that a call like this one
    goes straight to its plan. An adapter decides by which arguments are None and by those
    that are not arrays; an array that it changes before it hands it on is not learnt."""
    latest.recorded = True
    try:
        result = adapter(**options)
    finally:
        call, latest.call, latest.recorded = latest.call, None, False
    if call is not None and isinstance(result, tuple):
        *call, made = call
        repeat.learn(arguments, *call, result, made)
    return result


def _describe(summary, formula, note, names, parameters):
    lines = [summary, "", "Per head, for t = 0, 1, …::", "", textwrap.indent(formula, "    "), ""]
    if note:
        lines += [textwrap.fill(note, 88), ""]
    lines.append("Args:")
    for name in names:
        text = f"{name}: {parameters.get(name) or _PARAMETERS.get(name) or _HINTS[name]}"
        lines.append(textwrap.fill(text, 88, initial_indent="  ", subsequent_indent="    "))
    lines += [
        "", "Returns:",
        "  " + parameters.get("returns", "``(o, final_state)``: ``o [B, T, max(H, HV), V]``, of the first\n"
        "  operand's kind and dtype; final_state None unless output_final_state."),
        "", "Raises:",
        "  ValueError, TypeError: naming the operand, what was expected and what came.",
        "  UnsupportedError: what flash-linear-attention has and linattn does not.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _check_hints(
    cu_seqlens_cpu=None, chunk_indices=None, cp_context=None, chunk_size=None, checkpoint_level=0,
    disable_recompute=False, return_intermediate_states=False, output_attentions=False, safe_gate=False,
    use_gate_in_kernel=False, lower_bound=None, use_graph=False, max_num_seqs=None,
):  # fmt: skip
    check_flag("use_graph", use_graph)
    if max_num_seqs is not None:
        if isinstance(max_num_seqs, bool) or not isinstance(max_num_seqs, (int, np.integer)):
            raise TypeError(f"max_num_seqs: expected an integer or None, but got {type(max_num_seqs).__name__}")
        if max_num_seqs < 1:
            raise ValueError(f"max_num_seqs: expected at least 1, but got {max_num_seqs}")
    if cp_context is not None:
        raise UnsupportedError(f"cp_context: expected None, but got {type(cp_context).__name__}")
    if chunk_size is not None:
        if isinstance(chunk_size, bool) or not isinstance(chunk_size, (int, np.integer)):
            raise TypeError(f"chunk_size: expected an integer or None, but got {type(chunk_size).__name__}")
        if chunk_size < 1 or chunk_size & (chunk_size - 1):
            raise ValueError(f"chunk_size: expected a power of 2, but got {chunk_size}")
    if checkpoint_level not in (0, 1, 2):
        raise ValueError(f"checkpoint_level: expected 0, 1 or 2, but got {checkpoint_level!r}")
    check_flag("disable_recompute", disable_recompute)
    for name, value in (
        ("return_intermediate_states", return_intermediate_states), ("output_attentions", output_attentions),
    ):  # fmt: skip
        if check_flag(name, value):
            raise UnsupportedError(f"{name}: expected False, but got True")
    if check_flag("safe_gate", safe_gate) and use_gate_in_kernel and lower_bound is None:
        raise ValueError("lower_bound: expected a number with safe_gate and use_gate_in_kernel, but got None")


def swap_state(state, v_first):
    """A state ``[N, H, K, V]`` seen as ``[N, H, V, K]``, or the other way round."""
    if state is None or not check_flag("state_v_first", v_first):
        return state
    if len(state.shape) != 4:
        raise ValueError(f"initial_state: expected shape (N, HV, V, K), but got {tuple(state.shape)}")
    return state.swapaxes(2, 3)
