"""LightNet: linear attention whose keys are divided by their running sums."""

from __future__ import annotations

from ._families import Family, offsets

__all__ = ["lightnet"]


_lightnet = Family("lightnet")


def lightnet(
    q, k, v, scale=None, initial_state=None, output_final_state=False, *, cu_seqlens=None, inplace=False,
    out=None, num_threads=None, form="auto", target=None,
):  # fmt: skip
    """LightNet: keys under a running softmax, per channel.

    Per head, for t = 0, 1, …::

        z_t = log(e^z_{t-1} + e^k_t)
        S_t = Diag(e^(z_{t-1} − z_t)) S_{t-1} + e^(k_t − z_t) v_tᵀ
        o_t = scale · S_tᵀq_t

    Qin et al., "You Only Scan Once: Efficient Multi-dimension Sequential Modeling
    with LightNet", 2024. It runs as `gla`; keys and decays are made beforehand, token
    by token, z in float64.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, H, K]``, logarithms of the keys, and ``[B, T, H, V]``, of q's
        rank and dtype. Head counts divide one another.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``(S [N, H, K, V], z [N, H, K])``, float32 (float64 for float64
        tokens); 0 and −∞ unless given.
      output_final_state: also return the state after the last token.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, (S, z))``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _lightnet(
        (q, k, v, offsets(cu_seqlens)), {"scale": scale},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip
