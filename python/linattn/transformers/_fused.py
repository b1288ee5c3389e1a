"""Whole mixers of Mamba-1 and Mamba-2 as one call: convolution, projections, scan, gate and
norm, in the functions that do these one by one."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .._operators._norm import output_norm
from ._conv import causal_conv1d_fn
from ._guard import PassOn
from ._linear import product
from ._mamba import mamba_chunk_scan_combined, selective_scan_fn
from ._run import detach, of_dtype

__all__ = ["mamba_inner_fn", "mamba_split_conv1d_scan_combined"]


def _refuse(kwargs, known):
    """Passes on a call with arguments that mean something here and are not computed."""
    for name, value in kwargs.items():
        if value is not None and name not in known:
            raise PassOn(f"{name}, which the whole mixer does not take")


def _check_padding(tokens, dim, bias):
    """A layer clears padded tokens before the convolution and behind it; the whole mixer
    sees them only before, where they are 0."""
    if bias is not None and bool((tokens == 0).all(dim).any()):
        raise PassOn("padded tokens, which the layer clears behind the convolution")


def _linear(x, weight, bias):
    return product(of_dtype(x, weight.dtype), detach(weight), of_dtype(detach(bias), weight.dtype))


def _normed(x, weight, eps):
    """The RMS norm of a projection, if there is one."""
    if weight is None:
        return x
    if weight.shape != x.shape[-1:]:
        raise PassOn(f"a norm of {x.shape[-1]} elements with {weight.numel()} weights")
    return output_norm(x.contiguous(), weight=detach(weight), eps=float(eps))


def mamba_inner_fn(
    xz, conv1d_weight, conv1d_bias, x_proj_weight, delta_proj_weight, out_proj_weight, out_proj_bias, A,
    B=None, C=None, D=None, delta_bias=None, delta_softplus=True, b_rms_weight=None, c_rms_weight=None,
    dt_rms_weight=None, b_c_dt_rms_eps=1e-6, **kwargs,
):  # fmt: skip
    """Mamba-1's mixer between its two outer projections, and the second of these.

    Args:
      xz: ``[B, 2 D, T]``, what is scanned and its gate.
      conv1d_weight, conv1d_bias: ``[D, 1, W]`` or ``[D, W]``, and ``[D]``; silu follows.
      x_proj_weight: ``[R + 2 N, D]``; less N for each of B and C that is given.
      delta_proj_weight: ``[D, R]``.
      out_proj_weight, out_proj_bias: ``[E, D]`` and ``[E]``.
      A: ``[D, N]``. B, C: ``[D, N]`` or ``[B, N, T]``, else they are projected.
      D, delta_bias, delta_softplus: as in `linattn.selective_scan`.
      b_rms_weight, c_rms_weight, dt_rms_weight: weights of RMS norms of what is projected,
        with `b_c_dt_rms_eps`.
      B_proj_bias, C_proj_bias: ``[N]``, added to what is projected.

    Returns:
      ``[B, T, E]``.
    """
    _refuse(kwargs, ("checkpoint_lvl", "B_proj_bias", "C_proj_bias"))
    x, z = detach(xz).chunk(2, dim=1)
    conv1d_weight, conv1d_bias = detach(conv1d_weight), detach(conv1d_bias)
    _check_padding(x, 1, conv1d_bias)
    if conv1d_weight.ndim == 3:
        conv1d_weight = conv1d_weight.squeeze(1)
    x = causal_conv1d_fn(x, conv1d_weight, conv1d_bias, "silu")
    rank, states = delta_proj_weight.shape[1], A.shape[1]
    sizes = [rank] + [states for given in (B, C) if given is None]
    projected = list(_linear(x.transpose(1, 2), x_proj_weight, None).split(sizes, dim=-1))
    dt = _normed(projected.pop(0), dt_rms_weight, b_c_dt_rms_eps)

    def projection(given, bias, weight):
        if given is not None:
            return detach(given)
        found = projected.pop(0)
        found = found if bias is None else found + of_dtype(detach(bias), found.dtype)
        return _normed(found, weight, b_c_dt_rms_eps).transpose(1, 2)

    B = projection(B, kwargs.get("B_proj_bias"), b_rms_weight)
    C = projection(C, kwargs.get("C_proj_bias"), c_rms_weight)
    dt = _linear(dt, delta_proj_weight, None).transpose(1, 2)
    y = selective_scan_fn(x, dt, A, B, C, D, z, delta_bias, delta_softplus)
    return _linear(y.transpose(1, 2), out_proj_weight, out_proj_bias)


def mamba_split_conv1d_scan_combined(
    zxbcdt, conv1d_weight, conv1d_bias, dt_bias, A, D, chunk_size, initial_states=None,
    dt_limit=(0.0, float("inf")), return_final_states=False, activation="silu", rmsnorm_weight=None,
    rmsnorm_eps=1e-6, outproj_weight=None, outproj_bias=None, headdim=None, ngroups=1,
    norm_before_gate=True, **kwargs,
):  # fmt: skip
    """Mamba-2's mixer behind its first projection.

    Args:
      zxbcdt: ``[B, T, 2 M + 2 H P + 2 G N + H]``: of M channels without a recurrence gate
        and value, then gate z, x, B, C and step of the H heads.
      conv1d_weight, conv1d_bias: ``[H P + 2 G N, W]`` and ``[H P + 2 G N]``, of x, B and C.
      dt_bias, A, D: ``[H]``; D also ``[H, P]``.
      headdim: P, where D has no such dimension.
      initial_states, dt_limit, return_final_states, chunk_size: as in
        `mamba_chunk_scan_combined`; seq_idx likewise.
      rmsnorm_weight: ``[H P]``, of an RMS norm of `ngroups` groups, before the gate is
        applied or behind it; without, the output is gated alone.
      outproj_weight, outproj_bias: of the projection at the end, if there is one.

    Returns:
      ``[B, T, E]``, or with `return_final_states` that and the states ``[B, H, P, N]``.
    """
    _refuse(kwargs, ("seq_idx", "cu_seq_lens_q"))
    heads = D.shape[0]
    if D.ndim == 2:
        width = D.shape[1]
    elif headdim is None:
        raise TypeError("headdim: expected the head size beside a D of one number per head, but got None")
    else:
        width = headdim
    inner, tokens = heads * width, detach(zxbcdt)
    states = (conv1d_weight.shape[0] - inner) // ngroups // 2
    extra = (tokens.shape[-1] - 2 * inner - 2 * ngroups * states - heads) // 2
    sizes = [2 * extra, inner, inner + 2 * ngroups * states, heads]
    if extra < 0 or sum(sizes) != tokens.shape[-1]:
        raise ValueError(f"zxbcdt: expected {sum(sizes) - 2 * extra} channels, or an even number more, but got {tokens.shape[-1]}")
    _check_padding(tokens, 2, conv1d_bias)
    beside, z, xbc, dt = tokens.split(sizes, dim=-1)
    xbc = causal_conv1d_fn(
        xbc.transpose(1, 2), detach(conv1d_weight), detach(conv1d_bias), activation, **kwargs
    ).transpose(1, 2)  # fmt: skip
    x, B, C = xbc.split([inner, ngroups * states, ngroups * states], dim=-1)
    per_head = (heads, width)
    result = mamba_chunk_scan_combined(
        x.unflatten(-1, per_head), dt, A, B.unflatten(-1, (ngroups, states)), C.unflatten(-1, (ngroups, states)),
        chunk_size, D, dt_bias, initial_states, True, dt_limit, return_final_states,
        z=None if rmsnorm_weight is not None else z.unflatten(-1, per_head), seq_idx=kwargs.get("seq_idx"),
    )  # fmt: skip
    y, final = result if return_final_states else (result, None)
    y = y.flatten(2)
    if rmsnorm_weight is not None:
        y = output_norm(
            y.contiguous(), weight=detach(rmsnorm_weight), gate=z.contiguous(), gate_first=not norm_before_gate,
            groups=ngroups, eps=float(rmsnorm_eps),
        )  # fmt: skip
    if extra:
        gate, value = beside.chunk(2, dim=-1)
        y = torch.cat((F.silu(gate) * value, y), dim=-1)
    if outproj_weight is not None:
        y = _linear(y, outproj_weight, outproj_bias)
    return (y, final) if return_final_states else y
