"""The recurrences token by token in float64, written with what NumPy and PyTorch spell
alike; [B, T, H, D]."""

__all__ = ["scan"]


def _column(factor, state):
    """Factors of a head, [B, H] or [H], or of its keys, [B, H, D], beside [B, H, D, D]."""
    return factor[..., None, None] if factor.ndim < state.ndim - 1 else factor[..., None]


def scan(xp, rule, arrays, state, scale, eps):
    """(o, state, normalizer) for q, k, v and gates by name; `state` is (S, z)."""
    q, k, v = (arrays[name] for name in "qkv")
    if rule.feature_map == "elu1":
        # Beyond the branch that counts, exp must not overflow.
        q, k = (xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, 0 * x, x))) for x in (q, k))
    S, z = state
    out = []
    outer = lambda x, y: x[..., :, None] * y[..., None, :]  # noqa: E731
    read = lambda S, x: (x[..., None, :] @ S)[..., 0, :]  # noqa: E731
    for t in range(q.shape[1]):
        q_t, k_t, v_t = q[:, t], k[:, t], v[:, t]
        before = S
        if "g" in arrays:
            g = arrays["g"]
            S = S * _column(xp.exp(g if g.ndim == 1 else g[:, t]), S)
        if rule.is_delta:
            S = S + outer(k_t, arrays["beta"][:, t][..., None] * (v_t - read(S, k_t)))
        else:
            S = S + outer(k_t, v_t)
        if "a" in arrays:
            S = S + outer(arrays["b"][:, t], read(before, arrays["a"][:, t]))
        if "bonus" in arrays:
            weight = (q_t * arrays["bonus"] * k_t).sum(-1)[..., None]
            out.append(scale * (read(before, q_t) + weight * v_t))
        elif rule.normalize:
            z = z + k_t
            out.append(scale * read(S, q_t) / (scale * (q_t * z).sum(-1)[..., None] + eps))
        else:
            out.append(scale * read(S, q_t))
    return xp.stack(out, 1), S, z
