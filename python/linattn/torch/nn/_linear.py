"""Linear attention without gates, and Performer's."""

from __future__ import annotations

import torch
from torch import nn

import linattn
from linattn import feature_maps

from ..._core._checks import check_choice, check_size
from ..._core._sizes import count_random_features
from ..._maps._features import TRAINED_MAPS, check_layer_map
from ._base import OutputNorm, ProjectedLayer, merge_heads, recur

__all__ = ["FeatureMap", "LinearAttention", "NormAttention", "PerformerAttention"]


class FeatureMap(nn.Module):
    """The trained parameters of a feature map, for each head.

    Args:
      kind: "hedgehog", softmax([Wx, −Wx]); "t2r", relu(Wx + b); "hadamard", W₁x ⊙ W₂x.
      heads, head_dim: of the tokens.

    The parameters are `weight` ``[heads, head_dim, head_dim]``, at first the identity, with
    "t2r" `bias` and with "hadamard" `weight2`.
    """

    def __init__(self, kind, heads, head_dim):
        super().__init__()
        self.kind = check_choice("kind", kind, TRAINED_MAPS)
        self.weight = nn.Parameter(torch.eye(head_dim).expand(heads, -1, -1).clone())
        if kind == "t2r":
            self.bias = nn.Parameter(torch.zeros(heads, head_dim))
        if kind == "hadamard":
            self.weight2 = nn.Parameter(torch.eye(head_dim).expand(heads, -1, -1).clone())

    def forward(self, x):
        """The features of ``[B, T, heads, head_dim]``, by PyTorch."""
        y = torch.einsum("bthd,hmd->bthm", x, self.weight)
        if self.kind == "hedgehog":
            return torch.cat([y, -y], dim=-1).softmax(-1)
        if self.kind == "t2r":
            return (y + self.bias).relu()
        return y * torch.einsum("bthd,hmd->bthm", x, self.weight2)

    def token_map(self):
        """The feature map as linattn's functions take it."""
        return getattr(feature_maps, self.kind)(*(getattr(self, name) for name in TRAINED_MAPS[self.kind]))

    def extra_repr(self):
        return f"{self.kind}, heads={self.weight.shape[0]}, head_dim={self.weight.shape[-1]}"


class LinearAttention(ProjectedLayer):
    """Linear attention.

        >>> layer = linattn.torch.nn.LinearAttention(512, heads=8)
        >>> y = layer(torch.randn(2, 128, 512))

    Args:
      hidden_size: of the tokens.
      heads: of the queries.
      kv_heads: of the keys and values; as many unless given, else a divisor.
      head_dim, value_head_dim: hidden_size / heads unless given.
      feature_map: what `linattn.attention` takes, "elu" for elu + 1; or one with parameters
        that are trained: "hedgehog", "t2r", "hadamard" (`FeatureMap`).
      normalize: divide by the sum of the weights.
      causal: every token attends to those before it and itself.
      rotary_base: of rotary embeddings; none unless given.
      output_norm: None, or "rms" for an RMS norm of every head, which is `norm`.
      bias: of the four projections.
      dropout: of the output.
      norm_eps: of `output_norm`.

    Katharopoulos et al., "Transformers are RNNs", 2020.
    """

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, head_dim=None, value_head_dim=None, feature_map="elu",
        normalize=True, causal=True, rotary_base=None, output_norm=None, bias=False, dropout=0.0, norm_eps=1e-5,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=value_head_dim,
            rotary_base=rotary_base, bias=bias, dropout=dropout,
        )  # fmt: skip
        self.normalize, self.causal = normalize, causal
        self.scale = 1.0 if normalize else self.head_dim**-0.5
        self.feature_map = check_layer_map(feature_map)
        if isinstance(feature_map, str) and feature_map in TRAINED_MAPS:
            self.feature_map_q = FeatureMap(feature_map, self.heads, self.head_dim)
            self.feature_map_k = FeatureMap(feature_map, self.key_heads, self.head_dim)
        check_choice("output_norm", output_norm, (None, "rms"))
        self.norm = OutputNorm(self.value_head_dim, eps=norm_eps) if output_norm else nn.Identity()

    def map_tokens(self, q, k):
        """(q, k, how linattn is to map and divide them)."""
        feature_map = self.feature_map
        if hasattr(self, "feature_map_q"):
            feature_map = self.feature_map_q.token_map().with_keys(self.feature_map_k.token_map())
        return q, k, {"feature_map": feature_map, "normalize": self.normalize, "scale": self.scale}

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project_rotated(x, cache, cu_seqlens)
        q, k, options = self.map_tokens(q, k)
        if self.causal:
            o = recur(
                linattn.scan, q, k, v, cache=cache, returns="return_state", cu_seqlens=cu_seqlens, **options
            )  # fmt: skip
        elif cache is not None:
            raise ValueError("cache: expected it only for a causal layer, but got it for causal=False")
        else:
            o = self._attend_all(q, k, v, cu_seqlens, options)
        return self.o_proj(merge_heads(self.norm(o)))

    def _attend_all(self, q, k, v, cu_seqlens, options):
        if cu_seqlens is None:
            return linattn.attention(q, k, v, **options)
        parts = [linattn.attention(*tokens, **options) for tokens in zip(*(_split(x, cu_seqlens) for x in (q, k, v)))]
        return torch.cat(parts, 1)


def _split(x, cu_seqlens):
    return x.split(cu_seqlens.diff().tolist(), dim=1)


class NormAttention(LinearAttention):
    """Linear attention with an RMS norm of every head in place of its denominator: the global attention of
    TransNormer.

    Args:
      hidden_size, heads, kv_heads, head_dim, value_head_dim, feature_map, causal, rotary_base, bias, dropout,
        norm_eps: as in `LinearAttention`.

    Qin et al., "The Devil in Linear Transformer", 2022.
    """

    def __init__(self, hidden_size, heads, **options):
        super().__init__(hidden_size, heads, normalize=False, output_norm="rms", **options)


class PerformerAttention(LinearAttention):
    """Attention whose weights estimate those of softmax by positive random features (FAVOR+).

    Args:
      hidden_size, heads, kv_heads, head_dim, value_head_dim, causal, bias, dropout: as in
        `LinearAttention`.
      features: how many; about d·log d of a head of size d unless given.
      redraw_every: draw the features anew after so many training steps, None for never.
      seed: of the features; the same seed gives the same ones everywhere.

    The features are the buffer `projection_matrix` ``[features, head_dim]``, which a
    checkpoint keeps. `redraw` draws the next ones; a cache of the former ones is then refused.

    Choromanski et al., "Rethinking attention with Performers", 2021.
    """

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, head_dim=None, value_head_dim=None, causal=True, features=None,
        redraw_every=None, seed=0, bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=value_head_dim, causal=causal,
            bias=bias, dropout=dropout, feature_map=None,
        )  # fmt: skip
        self.features, self.seed = count_random_features(features, self.head_dim), seed
        self.redraw_every = None if redraw_every is None else check_size("redraw_every", redraw_every)
        self.register_buffer("projection_matrix", self._draw(0))
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))
        self._steps = 0

    def _draw(self, draw):
        return torch.from_numpy(linattn.random_projection(self.features, self.head_dim, seed=self.seed, draw=draw))

    @torch.no_grad()
    def redraw(self):
        """Draws the next features."""
        self.draws += 1
        self.projection_matrix.copy_(self._draw(int(self.draws)))

    def map_tokens(self, q, k):
        # Early keys may be far below the largest, to which an eps of the usual size would be relative.
        options = {"normalize": True, "scale": 1.0, "eps": 1e-30}
        return q, k, {"feature_map": feature_maps.favor(self.projection_matrix), **options}

    def mix(self, x, cache, cu_seqlens):
        if self.training and self.redraw_every is not None and cache is None:
            self._steps += 1
            if self._steps % self.redraw_every == 0:
                self.redraw()
        if cache is not None:
            draw = int(self.draws)
            if cache.parts.setdefault("draw", draw) != draw:
                raise ValueError(
                    f"cache: expected one of draw {draw} of the features, but got one of draw {cache.get('draw')}"
                )
        return super().mix(x, cache, cu_seqlens)
