"""The recurrences token by token, and attention by its formula, in float64, written with what NumPy and PyTorch spell
alike; [B, T, H, D]."""

__all__ = ["attention", "scan"]


def _column(factor, state):
    """Factors of a head, [B, H] or [H], or of its keys, [B, H, D], beside [B, H, D, D]."""
    return factor[..., None, None] if factor.ndim < state.ndim - 1 else factor[..., None]


def _mapped(xp, rule, arrays):
    q, k, v = (arrays[name] for name in "qkv")
    if rule.feature_map == "elu1":
        # Beyond the branch that counts, exp must not overflow.
        q, k = (xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, 0 * x, x))) for x in (q, k))
    return q, k, v


def attention(xp, rule, arrays, scale, eps):
    """o of an attention in its quadratic form, head by head."""
    q, k, v = _mapped(xp, rule, arrays)
    heads = []
    for h in range(q.shape[2]):
        weights = scale * (q[:, :, h] @ k[:, :, h].swapaxes(-1, -2))
        visible = xp.ones_like(weights)
        visible = (xp.tril(visible) if "causal" in rule.attention else visible) > 0
        if "softmax" in rule.attention:
            weights = xp.where(visible, weights, weights.min())
            weights = xp.exp(weights - xp.amax(weights, -1)[..., None])
        weights = xp.where(visible, weights, 0 * weights)
        divisor = weights.sum(-1)[..., None] + (eps if rule.normalize else 0)
        heads.append(weights @ v[:, :, h] / divisor)
    return xp.stack(heads, 2)


def scan(xp, rule, arrays, state, scale, eps):
    """(o, state, normalizer) for q, k, v and gates by name; `state` is (S, z)."""
    q, k, v = _mapped(xp, rule, arrays)
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
        if "gv" in arrays:
            S = S * xp.exp(arrays["gv"][:, t])[..., None, :]
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
