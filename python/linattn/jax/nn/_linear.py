"""Linear attention without gates, and Performer's."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import linattn
from linattn import feature_maps

from ..._core._checks import check_choice
from ..._core._sizes import count_random_features
from ..._maps._features import TRAINED_MAPS, check_layer_map, count_features
from ._base import Projected, dense, layer, merge, norm

__all__ = ["Linear", "LinearAttention", "NormAttention", "PerformerAttention"]


@layer
class Linear(Projected):
    """A layer whose weights are products of feature maps."""

    kv_heads: int | None = None
    bias: bool = False

    feature_map = None
    normalize = causal = True
    output_norm = None
    norm_eps = 1e-5

    def __post_init__(self):
        super().__post_init__()
        check_layer_map(self.feature_map)
        check_choice("output_norm", self.output_norm, (None, "rms"))

    @property
    def _is_trained(self):
        return isinstance(self.feature_map, str) and self.feature_map in TRAINED_MAPS

    @property
    def _refused(self):
        why = "causal=False"
        return {} if self.causal else {"cache": f"of {why}", "cu_seqlens": f"of {why}"}

    def _init(self, draws):
        params, sizes = super()._init(draws), self._sizes
        if self._is_trained:
            for side, heads in (("q", sizes.heads), ("k", sizes.key_heads)):
                unit = jnp.tile(jnp.eye(sizes.head_dim, dtype=draws.dtype), (heads, 1, 1))
                zero = jnp.zeros((heads, sizes.head_dim), draws.dtype)
                names = TRAINED_MAPS[self.feature_map]
                params[f"feature_map_{side}"] = {name: zero if name == "bias" else unit for name in names}
        return params | {"norm": draws.norm(sizes.value_head_dim)} if self.output_norm else params

    def _map(self, params):
        """The feature map as linattn's functions take it."""
        if not self._is_trained:
            return self.feature_map
        make, names = getattr(feature_maps, self.feature_map), TRAINED_MAPS[self.feature_map]
        queries, keys = (make(*(params[f"feature_map_{side}"][name] for name in names)) for side in "qk")
        return queries.with_keys(keys)

    def _make_cache(self, batch, dtype):
        phi, sizes = self._map(jax.eval_shape(self.init, jax.random.key(0))), self._sizes
        state = linattn.State.zeros(
            batch, sizes.key_heads, count_features(phi, sizes.head_dim), sizes.value_head_dim, normalize=self.normalize,
            like=jnp.zeros(()), feature_map=phi,
        )  # fmt: skip
        return super()._make_cache(batch, dtype) | {"state": state if self.normalize else state.S}

    def _options(self, params):
        """How linattn is to map the tokens and divide their sums."""
        scale = 1.0 if self.normalize else self._sizes.head_dim**-0.5
        return {"feature_map": self._map(params), "normalize": self.normalize, "scale": scale}

    def _map_tokens(self, params, q, k, calls):
        return q, k, self._options(params)

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        q, k, options = self._map_tokens(params, q, k, calls)
        if self.causal:
            o = calls.recur(linattn.scan, q, k, v, returns="return_state", **options)
        else:
            o = linattn.attention(q, k, v, **options)
        if self.output_norm:
            o = norm(params["norm"], o, eps=self.norm_eps)
        return dense(params["o_proj"], merge(o))


@layer
class LinearAttention(Linear):
    """Linear attention: `linattn.torch.nn.LinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim, value_head_dim: hidden_size / heads unless given.
      feature_map: what `linattn.attention` takes, or "hedgehog", "t2r" or "hadamard", trained as `feature_map_q` and
        `feature_map_k`, whose `weight` is ``[heads, head_dim, head_dim]``.
      normalize: divide by the sum of the weights.
      causal: every token attends to those before it and itself; without, there are no caches and packed sequences.
      rotary_base: of rotary embeddings; none unless given.
      output_norm: None, or "rms" for an RMS norm of every head, which is `norm`.
      bias: of the four projections.
      norm_eps: of `output_norm`.
      dropout: of the output, where `apply` gets a key.
    """

    value_head_dim: int | None = None
    feature_map: str = "elu"
    normalize: bool = True
    causal: bool = True
    rotary_base: float | None = None
    output_norm: str | None = None
    norm_eps: float = 1e-5


@layer
class NormAttention(Linear):
    """Linear attention with an RMS norm of every head in place of its denominator: `linattn.torch.nn.NormAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, value_head_dim, feature_map, causal, rotary_base, bias, norm_eps, dropout:
        as in `LinearAttention`.
    """

    value_head_dim: int | None = None
    feature_map: str = "elu"
    causal: bool = True
    rotary_base: float | None = None
    norm_eps: float = 1e-5

    normalize = False
    output_norm = "rms"


@layer
class PerformerAttention(Linear):
    """Attention whose weights estimate those of softmax by positive random features (FAVOR+):
    `linattn.torch.nn.PerformerAttention`.

        >>> params = layer.redraw(params, step // 1000)         # other features from then on

    Args:
      hidden_size, heads, kv_heads, head_dim, value_head_dim, causal, bias, dropout: as in `LinearAttention`.
      features: how many; about d·log d of a head of size d unless given.
      seed: of the features; the same seed gives the same ones everywhere.

    The features are `projection_matrix` ``[features, head_dim]`` of the parameters, at first draw 0 of the seed. Their
    gradient is zero: leave them out of what an optimizer decays. A call with a cache has no gradient.
    """

    value_head_dim: int | None = None
    causal: bool = True
    features: int | None = None
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        count_random_features(self.features, self._sizes.head_dim)

    def redraw(self, params, draw):
        """The parameters with other features.

        Args:
          draw: which ones, an integer from 0: 1 and so on are those that the layer of PyTorch draws one after another.

        A cache belongs to the features that it was filled with.
        """
        count, dtype = count_random_features(self.features, self._sizes.head_dim), params["q_proj"]["kernel"].dtype
        matrix = linattn.random_projection(count, self._sizes.head_dim, seed=self.seed, draw=draw)
        return params | {"projection_matrix": jnp.asarray(matrix, dtype)}

    def _init(self, draws):
        return self.redraw(super()._init(draws), 0)

    def _map(self, params):
        # Drawn, not trained: a layer of PyTorch holds it as a buffer.
        return feature_maps.favor(jax.lax.stop_gradient(params["projection_matrix"]))

    def _map_tokens(self, params, q, k, calls):
        # Early keys may be far below the largest, to which an eps of the usual size would be relative.
        options = {"normalize": True, "scale": 1.0, "eps": 1e-30}
        return q, k, {"feature_map": self._map(params), **options}
