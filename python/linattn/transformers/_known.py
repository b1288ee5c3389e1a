"""The functions of transformers that linattn knows: their parameters and their bodies.

A function is replaced only if it has the parameters that its adapter takes and a body
that was compared with the adapter. Bodies are known by a fingerprint of their source,
which comments, annotations, layout and the function's own name do not change.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types

from . import _linear

__all__ = ["Target", "find_targets", "fingerprint", "refuse"]


class Target:
    """A function in the globals of a module, or a method of a class.

    Args:
      owner: the module or the class.
      attribute: the name of the function there.
      kernel: what it computes, by the name that transformers gives it.
    """

    __slots__ = ("owner", "attribute", "kernel")

    def __init__(self, owner, attribute, kernel):
        self.owner, self.attribute, self.kernel = owner, attribute, kernel

    @property
    def value(self):
        return vars(self.owner).get(self.attribute)

    @property
    def module(self):
        return self.owner.__module__ if isinstance(self.owner, type) else self.owner.__name__

    @property
    def title(self):
        return f"{self.owner.__qualname__}.{self.attribute}" if isinstance(self.owner, type) else self.attribute


_STATES = "initial_state=None, output_final_state=False"
_UPDATE = "state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **kwargs"

# The release of transformers whose functions these are.
VERSIONS = "5.23"

_DELTA = f"query, key, value, g, beta, {{}}{_STATES}, use_qk_l2norm_in_kernel=False, **kwargs"
_LIMIT = "dt_limit=(0.0, float('inf')), return_final_states=False"

# For every kernel its parameters and the fingerprints of the bodies that were compared with
# linattn. Several: the steps of Mamba-1 and Mamba-2 are called alike.
KNOWN = {
    "chunk_gated_delta_rule": (_DELTA.format("chunk_size=64, "), ["ba218ac689e285fc"]),
    "fused_recurrent_gated_delta_rule": (_DELTA.format(""), ["79c55744edad6f5f"]),
    "chunk_kda": (_DELTA.format("chunk_size=64, "), ["4cbac607e3c3666a"]),
    "fused_recurrent_kda": (
        "query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel=False, **kwargs",
        ["642e24af22f337d6"],
    ),
    "mamba_chunk_scan_combined": (
        "hidden_states, dt, A, B, C, chunk_size, D=None, dt_bias=None, initial_states=None, dt_softplus=False, "
        f"{_LIMIT}, **kwargs",
        ["95ee54b919c7b5c8"],
    ),
    "selective_state_update": (_UPDATE, ["0c919ad2b0567afa", "f5b7936d43239b00"]),
    "selective_scan_fn": (
        "hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, "
        "return_last_state=False, use_mambapy=False, use_associative_scan=False, **kwargs",
        ["a52e04cb45c2ad17"],
    ),
    "mamba_inner_fn": (
        "xz, conv1d_weight, conv1d_bias, x_proj_weight, delta_proj_weight, out_proj_weight, out_proj_bias, A, "
        "B=None, C=None, D=None, delta_bias=None, delta_softplus=True, b_rms_weight=None, c_rms_weight=None, "
        "dt_rms_weight=None, b_c_dt_rms_eps=1e-6, **kwargs",
        ["f75bd022d6e50fc4"],
    ),
    "mamba_split_conv1d_scan_combined": (
        f"zxbcdt, conv1d_weight, conv1d_bias, dt_bias, A, D, chunk_size, initial_states=None, {_LIMIT}, "
        "activation='silu', rmsnorm_weight=None, rmsnorm_eps=1e-6, outproj_weight=None, outproj_bias=None, "
        "headdim=None, ngroups=1, norm_before_gate=True, **kwargs",
        ["9a8dcff7946b9d1c"],
    ),
    "causal_conv1d_fn": ("hidden_states, weight, bias=None, activation=None, **kwargs", ["748d1554a8447414"]),
    "causal_conv1d_update": (
        "hidden_states, conv_state, weight, bias=None, activation=None", ["834dccb93fbb4640"],
    ),
    "RMSNormGated": ("self, hidden_states, gate", ["52bf359a41c0a1ad"]),
    "RMSNormGated, optional": (
        "self, hidden_states, gate=None", ["70bf188da794c1c7", "9f08f5196326951c", "ac204370a3092214"],
    ),
    "lightning_attention": (
        "self, hidden_states, position_embeddings, attention_mask, past_key_values=None, **kwargs",
        ["881da64c9cbe08ff"],
    ),
    "rwkv_linear_attention": (
        "time_decay, time_first, key, value, state=None, return_state=False", ["b368b5007462796f"],
    ),
    "mlstm": (
        "self, query, key, value, igate, fgate, c_initial=None, n_initial=None, m_initial=None, "
        "return_last_states=None, mode=None",
        ["6213e1d3413d3f92"],
    ),
    "rg_lru": (
        "self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype=torch.float32",
        ["16af1a0c853ab611"],
    ),
    "Linear": ("self, input", ["87c189cbbde1c12b"]),
}  # fmt: skip

# Functions that have no decorator of transformers, as some modules and other releases have
# them, and methods, by their names.
_FUNCTIONS = {
    "causal_conv1d_fn": "causal_conv1d_fn",
    "causal_conv1d_update": "causal_conv1d_update",
    "torch_chunk_gated_delta_rule": "chunk_gated_delta_rule",
    "torch_recurrent_gated_delta_rule": "fused_recurrent_gated_delta_rule",
    "chunk_kimi_delta_attention": "chunk_kda",
    "recurrent_kimi_delta_attention": "fused_recurrent_kda",
    "mamba2_chunk_scan": "mamba_chunk_scan_combined",
    "mamba2_selective_state_update": "selective_state_update",
    "mamba_selective_scan": "selective_scan_fn",
    "mamba_selective_state_update": "selective_state_update",
    "rwkv_linear_attention_cpu": "rwkv_linear_attention",
}
_METHODS = (
    ("RMSNormGated", "forward", "RMSNormGated"),
    ("MiniMaxLightningAttention", "forward", "lightning_attention"),
    ("xLSTMBackend", "forward", "mlstm"),
    ("RecurrentGemmaRglru", "_rnn_scan", "rg_lru"),
)

# The module of PyTorch's linear layers, which models of 16 bits spend most of their time in.
_LINEAR = "torch.nn.modules.linear"


def find_targets(module):
    """The targets in the globals of a module."""
    if module.__name__ == _LINEAR:
        return [Target(module.Linear, "forward", "Linear")] if _linear.is_offered() else []
    modeling = module.__name__.rpartition(".")[2].startswith("modeling_")
    targets = []
    for attribute, value in list(vars(module).items()):
        # Not isinstance, which would wake up objects that are made when they are looked at.
        if type(value) is types.FunctionType:
            hook = getattr(value, "__linattn_hook__", None)
            kernel = hook.name if hook is not None else _kernel_of(value)
            if kernel is None and modeling and value.__module__ == module.__name__:
                kernel = _FUNCTIONS.get(value.__name__)
            if kernel is not None:
                targets.append(Target(module, attribute, kernel))
        elif modeling and issubclass(type(value), type) and value.__module__ == module.__name__:
            for suffix, method, kernel in _METHODS:
                if value.__name__.endswith(suffix) and isinstance(vars(value).get(method), types.FunctionType):
                    targets.append(Target(value, method, kernel))
    return targets


def _kernel_of(function):
    """The name under which transformers looks for a faster function, which its decorator
    keeps; None if it has no such decorator."""
    if not hasattr(function, "__wrapped__") or function.__closure__ is None:
        return None
    for name, cell in zip(function.__code__.co_freevars, function.__closure__):
        if name == "func_name":
            try:
                kernel = cell.cell_contents
            except ValueError:  # empty
                return None
            return kernel if isinstance(kernel, str) and kernel in KNOWN else None
    return None


def refuse(kernel, function):
    """Why a function is not replaced; None if it is known."""
    plain = inspect.unwrap(function)
    parameters = _parameters(plain)
    known = [KNOWN[name] for name in (kernel, f"{kernel}, optional") if name in KNOWN]
    bodies = [bodies for text, bodies in known if _parse(text) == parameters]
    if not bodies:
        return f"its parameters are not known ({', '.join(name for name, _, _ in parameters)})"
    found = fingerprint(plain)
    if found is None:
        return "its source cannot be read"
    if found not in bodies[0]:
        return f"its body is not known ({found})"
    return None


def _parse(text):
    import torch

    return _parameters(eval(f"lambda {text}: None", {"torch": torch}))  # noqa: S307


def _parameters(function):
    parameters = inspect.signature(function).parameters.values()
    return [(x.name, x.kind, x.default) for x in parameters]


def fingerprint(function):
    """A hash of what a function's source does; None if there is none to read."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    tree.name = "f"
    tree.decorator_list = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]
