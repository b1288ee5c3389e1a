"""Layers made of modules of transformers, weights included."""

from __future__ import annotations

from ._additive import Mamba2
from ._delta import GatedDeltaNet, KimiDeltaAttention

__all__ = ["from_transformers", "translate"]


def from_transformers(module):
    """The layer of this package that computes what a module of transformers does, with copies
    of its parameters.

    Args:
      module: the gated delta net of Qwen3-Next, Qwen3.5 or OLMo-hybrid, the delta attention of
        Kimi-Linear or GLM-5, or the mixer of Mamba-2.

    Returns:
      A `GatedDeltaNet`, `KimiDeltaAttention` or `Mamba2`.

    Raises:
      TypeError: another module.
      ValueError: one with an activation other than silu.
    """
    build = next((build for test, build in _KINDS if test(module)), None)
    if build is None:
        raise TypeError(
            "module: expected a gated delta net, a Kimi delta attention or a Mamba-2 mixer of transformers, but got "
            f"{type(module).__module__}.{type(module).__name__}"
        )
    if getattr(module, "activation", "silu") not in ("silu", "swish"):
        raise ValueError(f"module: expected the activation silu, but got {module.activation}")
    layer = build(module)
    parameter = next(module.parameters())
    layer.to(parameter.device, parameter.dtype)
    tensors = translate(module, module.state_dict())
    layer.load_state_dict(tensors)
    for name, tensor in tensors.items():
        # Gates may have more bits than the rest.
        layer.get_parameter(name).data = tensor.clone()
    return layer.train(module.training)


def translate(module, tensors):
    """`tensors`, by names of the module's parameters, by those of the layer: a state dict, or
    gradients. Every one of the module's is needed."""
    tensors = dict(tensors)
    if _is_mamba2(module):
        return tensors
    if hasattr(module, "in_proj_qkvz"):
        tensors = _split_groups(module, tensors)
    if "conv1d.weight" in tensors:
        sizes = [module.key_dim] * 2 + [module.value_dim] if hasattr(module, "key_dim") else 3
        parts = tensors.pop("conv1d.weight")
        parts = parts.split(sizes) if isinstance(sizes, list) else parts.chunk(sizes)
        tensors |= zip(("q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight"), parts)
    if "in_proj_qkv.weight" in tensors:
        parts = tensors.pop("in_proj_qkv.weight").split([module.key_dim, module.key_dim, module.value_dim])
        tensors |= zip(("q_proj.weight", "k_proj.weight", "v_proj.weight"), parts)
    renamed = {_rename(name): tensor for name, tensor in tensors.items()}
    if "A_log" in renamed:
        renamed["A_log"] = renamed["A_log"].flatten()
    return renamed


_NAMES = {
    "in_proj_z.": "g_proj.", "in_proj_b.": "b_proj.", "in_proj_a.": "a_proj.", "f_a_proj.": "f_proj.0.",
    "f_b_proj.": "f_proj.1.", "g_a_proj.": "g_proj.0.", "g_b_proj.": "g_proj.1.", "norm.": "o_norm.", "out_proj.": "o_proj.",
}  # fmt: skip


def _rename(name):
    name = name.removeprefix("forget_gate.")
    for theirs, ours in _NAMES.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def _split_groups(module, tensors):
    """Qwen3-Next has the queries, keys, values and gates of one key head side by side."""
    heads, values = module.num_k_heads, module.num_v_heads // module.num_k_heads
    wide = values * module.head_v_dim
    qkvz = tensors.pop("in_proj_qkvz.weight").unflatten(0, (heads, -1))
    parts = qkvz.split([module.head_k_dim, module.head_k_dim, wide, wide], dim=1)
    names = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "g_proj.weight")
    tensors |= zip(names, (part.flatten(0, 1) for part in parts))
    ba = tensors.pop("in_proj_ba.weight").unflatten(0, (heads, -1)).split(values, dim=1)
    tensors |= zip(("b_proj.weight", "a_proj.weight"), (part.flatten(0, 1) for part in ba))
    return tensors


def _is_mamba2(module):
    return all(hasattr(module, name) for name in ("in_proj", "A_log", "dt_bias", "n_groups", "ssm_state_size"))


def _is_kimi(module):
    return hasattr(module, "forget_gate") and hasattr(module.forget_gate, "f_a_proj") and hasattr(module, "g_a_proj")


def _is_gated_delta_net(module):
    return all(hasattr(module, name) for name in ("num_v_heads", "num_k_heads", "head_k_dim", "A_log", "dt_bias"))


def _eps(norm):
    return getattr(norm, "variance_epsilon", getattr(norm, "eps", None))


def _make_mamba2(module):
    return Mamba2(
        module.hidden_size, module.num_heads, head_dim=module.head_dim, state_size=module.ssm_state_size,
        expand=module.intermediate_size / module.hidden_size, groups=module.n_groups, conv_size=module.conv_kernel_size,
        conv_bias=module.conv1d.bias is not None, bias=module.out_proj.bias is not None, norm_eps=_eps(module.norm),
        dt_limit=module.time_step_limit,
    )  # fmt: skip


def _make_kimi(module):
    gate = module.forget_gate
    return KimiDeltaAttention(
        module.hidden_size, module.num_heads, head_dim=module.head_dim, conv_size=module.conv_kernel_size,
        gate_rank=gate.f_a_proj.out_features, gate_bias=module.g_b_proj.bias is not None,
        lower_bound=getattr(gate, "safe_gate_lower_bound", None), norm_eps=_eps(module.o_norm),
    )  # fmt: skip


def _make_gated_delta_net(module):
    norm = module.norm if hasattr(module, "norm") else module.o_norm
    return GatedDeltaNet(
        module.hidden_size, module.num_k_heads, value_heads=module.num_v_heads, head_dim=module.head_k_dim,
        value_head_dim=module.head_v_dim, conv_size=module.conv_kernel_size,
        allow_neg_eigval=getattr(module, "allow_neg_eigval", False), norm_eps=_eps(norm),
    )  # fmt: skip


_KINDS = ((_is_mamba2, _make_mamba2), (_is_kimi, _make_kimi), (_is_gated_delta_net, _make_gated_delta_net))
