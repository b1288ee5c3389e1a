"""Calls of recurrences and of softmax attention, recorded while a function or a model runs."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from dataclasses import dataclass, field

import numpy as np

import linattn

from .._compiler._explain import explain_call
from .._core import _arrays
from .._families._family import Family
from .._families._named import families

__all__ = ["Call", "no_gradients", "record", "number_titles", "watched"]

# Functions outside the table of families.
_PLAIN = ("attention", "scan")
_STATES = {name: ("initial_state", "return_state") for name in _PLAIN}
_KEYS, _QUERIES, _VALUES = ("k", "K", "B"), ("q", "r", "Q", "C"), ("v", "V", "x")
# Arguments with effects beside the output.
_EFFECTS = ("out", "inplace", "states_every", "num_threads")
# Operands whose first axis is neither sequences nor tokens.
_PER_HEAD = ("bonus", "slopes", "sinks")
_lock = threading.Lock()


@dataclass
class Call:
    """One call, with its arguments by name; those that are arrays are of one sequence.

    `layer` is the path of the module that made it and `kind` the module's class; both are
    empty outside of a model. `suffix` distinguishes calls of one layer.
    """

    name: str
    arguments: dict
    layer: str = ""
    kind: str = ""
    suffix: str = ""
    function: object = field(default=None, repr=False)

    def __post_init__(self):
        self.function = self.function or getattr(linattn, self.name)
        family = families.get(self.name)
        self._layouts = {} if family is None else {name: layouts for name, _, layouts in family.operands}
        self.state, self.returns_state = (family.state, family.returns_state) if family else _STATES.get(self.name, (None, None))
        for name in _EFFECTS:
            self.arguments.pop(name, None)
        for name in (self.state, self.returns_state):
            self.arguments.pop(name, None)
        self.q_name, self.k_name, self.v_name = (
            next((name for name in role if name in self.arguments), None) for role in (_QUERIES, _KEYS, _VALUES)
        )

    # ------------------------------------------------------------------------
    # Sizes
    # ------------------------------------------------------------------------

    @property
    def title(self):
        """Its name in pictures: the layer and its class, or the function."""
        return (" · ".join(filter(None, (self.layer, self.kind))) or self.name) + self.suffix

    @property
    def is_softmax(self):
        return self.name == "softmax" or self.arguments.get("weights") == "softmax"

    @property
    def is_causal(self):
        if self.name in ("softmax", "attention"):
            masked = self.arguments.get("attn_mask") is not None
            return bool(self.arguments.get("causal") or self.arguments.get("is_causal") or masked)
        return True

    @property
    def window(self):
        return self.arguments.get("window")

    @property
    def has_tokens(self):
        """Whether queries, keys and values are there as ``[B, T, H, D]``, as pictures need them."""
        arrays = [self.arguments.get(name) for name in (self.q_name, self.k_name, self.v_name) if name]
        return len(arrays) == 3 and all(array.ndim == 4 for array in arrays) and len({x.shape[1] for x in arrays}) == 1

    @property
    def tokens(self):
        return self.arguments[self.v_name].shape[1]

    @property
    def sizes(self):
        """(heads, heads of keys, size of a key, size of a value)."""
        q, k, v = (self.arguments[name] for name in (self.q_name, self.k_name, self.v_name))
        return max(q.shape[2], v.shape[2]), k.shape[2], k.shape[3], v.shape[3]

    def operand(self, role):
        """"q", "k" or "v" as float32 ``[T, H, D]``."""
        name = {"q": self.q_name, "k": self.k_name, "v": self.v_name}[role]
        return _numpy(self.arguments[name])[0]

    # ------------------------------------------------------------------------
    # Running it again
    # ------------------------------------------------------------------------

    def run(self, **others):
        """The output; `others` take the places of arguments."""
        with no_gradients():
            return self.function(**{**self.arguments, **others})

    def weights(self):
        """The implicit attention matrix ``[H, T, T]``: what the call makes of the identity as
        values. Every row says how much of each token's value is in the output.

        Raises:
          ValueError: the output is not linear in the values, or mixes their features; the
            matrix times the values then is not the output.
        """
        v = self.arguments[self.v_name]
        T, heads = v.shape[1], v.shape[2]
        identity = np.broadcast_to(np.eye(T, dtype=np.float32)[None, :, None], (1, T, heads, T))
        weights = _numpy(self.run(**{self.v_name: _like(identity, v)}))[0].transpose(1, 0, 2)
        values = np.repeat(self.operand("v"), weights.shape[0] // heads, axis=1)
        expected = _numpy(self.run())[0]
        error = np.abs(np.einsum("htu,uhd->thd", weights, values) - expected).max()
        if not error <= 0.02 * max(np.abs(expected).max(), 1e-30):
            raise ValueError(f"its output is not a weighted sum of values: the two differ by {error:.1e}")
        return weights

    def states(self, most=48):
        """The states ``[t, K, V]`` of the first head after each of the first tokens.

        Raises:
          ValueError: the call has no state of the shape ``[K, V]``, or packed sequences.
        """
        if self.is_softmax or self.returns_state is None or not self.is_causal:
            raise ValueError("it has no state")
        if self.arguments.get("cu_seqlens") is not None:
            raise ValueError("its sequences are packed")
        state, found = None, []
        for t in range(min(most, self.tokens)):
            given = {self.returns_state: True} | ({} if state is None else {self.state: state})
            with no_gradients():
                _, state = self.function(**{**self._token(t), **given})
            S = state.S if isinstance(state, linattn.State) else state[0] if isinstance(state, tuple) else state
            if S.ndim != 4:
                raise ValueError(f"its state is {tuple(S.shape)}, not a matrix of each head")
            found.append(_numpy(S)[0, 0].copy())
        return np.stack(found)

    def explain(self):
        """The compiler's remarks, a line each; of what PyTorch computes, that."""
        if self.name == "softmax":
            return ["computed by PyTorch: scaled_dot_product_attention"]
        return (explain_call(self.run) or "no remarks").splitlines()

    def _token(self, t):
        return {name: self._cut(name, value, slice(t, t + 1)) for name, value in self.arguments.items()}

    def _cut(self, name, value, part):
        axis = self._token_axis(name, value)
        return value if axis is None else value[(slice(None),) * axis + (part,)]

    def _token_axis(self, name, value):
        if not hasattr(value, "ndim") or name in _PER_HEAD:
            return None
        if name in self._layouts:
            for layout in self._layouts[name].split("|"):
                dims = layout.split("->")[0].split()
                if len(dims) == value.ndim:
                    return dims.index("T") if "T" in dims else None
            return None
        return 1 if value.ndim >= 2 and value.shape[1] == self.tokens else None


# ----------------------------------------------------------------------------
# Arrays
# ----------------------------------------------------------------------------


def _numpy(array):
    array = _arrays.to_numpy(array.detach() if hasattr(array, "detach") else array)
    return np.asarray(array).astype(np.float32)


def _like(array, like):
    return _arrays.cast_like(_arrays.convert_like(np.ascontiguousarray(array), like), like)


def _keep(value):
    """A copy of an argument, which the call may overwrite."""
    if hasattr(value, "detach"):
        return value.detach().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def _first(call_name, arguments):
    """The arguments for the first sequence of the batch alone."""
    layouts = {name: layout for name, _, layout in families[call_name].operands} if call_name in families else {}
    batch = next((arguments[name].shape[0] for name in _VALUES if getattr(arguments.get(name), "ndim", 0) == 4), 1)

    def cut(name, value):
        if batch == 1 or not hasattr(value, "ndim") or name in _PER_HEAD or value.ndim < 2:
            return value
        if layouts and not layouts.get(name, "").startswith("B"):
            return value
        return value[:1] if value.shape[0] == batch else value

    return {name: _keep(cut(name, value)) for name, value in arguments.items()}


def no_gradients():
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch else contextlib.nullcontext()


# ----------------------------------------------------------------------------
# Recording
# ----------------------------------------------------------------------------


def watched(function):
    """() → the function, or what stands for it while `record` watches."""
    name = next((name for name in _PLAIN if function is getattr(linattn, name)), None)
    return (lambda: function) if name is None else (lambda: getattr(linattn, name))


def record(function, modules=()):
    """The calls that `function()` makes, in their order.

    Functions of linattn and PyTorch's `scaled_dot_product_attention` are watched for the time
    of the call, in the whole process; one thread records at a time.

    Args:
      function: called once, without gradients.
      modules: (path, module of PyTorch) whose calls are to be distinguished.
    """
    calls, stack = [], [("", "")]

    def note(name, arguments, called=None):
        arguments = {key: value for key, value in arguments.items() if value is not None}
        calls.append(Call(name, _first(name, arguments), *stack[-1], function=called))

    with _lock, contextlib.ExitStack() as exits:
        _watch_families(exits, note)
        for name in _PLAIN:
            _watch_function(exits, name, note)
        _watch_softmax(exits, note)
        for path, module in modules:
            entered = module.register_forward_pre_hook(
                lambda module, _, path=path: stack.append((path, type(module).__name__))
            )
            left = module.register_forward_hook(lambda *_: stack.pop() and None, always_call=True)
            exits.callback(entered.remove)
            exits.callback(left.remove)
        with no_gradients():
            function()
    return calls


def number_titles(calls):
    """Gives calls of one title different ones."""
    titles = [call.title for call in calls]
    for call, title in zip(calls, titles):
        if titles.count(title) > 1 and call.kind:
            call.suffix = f" ({call.name})"
    seen = {}
    for call in calls:
        seen[call.title] = number = seen.get(call.title, 0) + 1
        if number > 1:
            call.suffix += f" #{number}"


def _patch(exits, owner, name, value):
    exits.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _watch_families(exits, note):
    original = Family.__call__

    def call(self, operands, options, initial_state, *others, **keywords):
        if hasattr(linattn, self.name):
            note(self.name, dict(zip((name for name, *_ in self.operands), operands)) | dict(options))
        return original(self, operands, options, initial_state, *others, **keywords)

    _patch(exits, Family, "__call__", call)


def _watch_function(exits, name, note):
    original = getattr(linattn, name)
    signature = inspect.signature(original)

    def call(*args, **kwargs):
        note(name, signature.bind(*args, **kwargs).arguments, original)
        return original(*args, **kwargs)

    _patch(exits, linattn, name, call)


def _watch_softmax(exits, note):
    torch = sys.modules.get("torch")
    if torch is None:
        return
    original = torch.nn.functional.scaled_dot_product_attention

    def softmax(q, k, v, **options):
        return original(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), **options).transpose(1, 2)

    def call(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        options = dict(attn_mask=attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
        if query.ndim == 4:
            heads = {name: x.transpose(1, 2) for name, x in zip("qkv", (query, key, value))}
            note("softmax", heads | options, softmax)
        return original(query, key, value, dropout_p=dropout_p, **options)

    _patch(exits, torch.nn.functional, "scaled_dot_product_attention", call)
