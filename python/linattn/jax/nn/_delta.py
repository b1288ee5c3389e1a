"""Layers whose recurrence corrects what its state holds: the delta rule and its kin."""

from __future__ import annotations

import jax

import linattn

from ._base import Projected, dense, layer, low_rank, merge, norm, split

__all__ = ["DeltaNet", "GatedDeltaNet", "KimiDeltaAttention"]


@layer
class _Delta(Projected):
    """A layer with the strength of its writes, `b_proj`, a norm of every head, `o_norm`, and its gate, `g_proj`."""

    value_head_dim: int | None = None
    conv_size: int | None = 4
    conv_bias: bool = False
    allow_neg_eigval: bool = False
    norm_eps: float = 1e-5

    use_gate = True
    _activation = staticmethod(jax.nn.silu)

    def _init(self, draws):
        params, sizes = super()._init(draws), self._sizes
        if self.use_gate:
            params["g_proj"] = self._init_gate(draws, sizes)
        params["b_proj"] = draws.dense(self.hidden_size, sizes.value_heads)
        return params | {"o_norm": draws.norm(sizes.value_head_dim)}

    def _init_gate(self, draws, sizes):
        return draws.dense(self.hidden_size, sizes.output)

    def _cached(self):
        return self._state(self._sizes.value_heads)

    def _recur(self, params, x, calls, function, *gates, **options):
        o = calls.recur(
            function, *self._project(params, x, calls), *gates, dense(params["b_proj"], x), use_qk_l2norm_in_kernel=True,
            use_beta_sigmoid_in_kernel=True, allow_neg_eigval=self.allow_neg_eigval, **options,
        )  # fmt: skip
        return o

    def _finish(self, params, o, gate=None, **options):
        gate = None if gate is None else split(gate, self._sizes.value_head_dim)
        return dense(params["o_proj"], merge(norm(params["o_norm"], o, gate, eps=self.norm_eps, **options)))


@layer
class DeltaNet(_Delta):
    """The delta rule: `linattn.torch.nn.DeltaNet`.

    Args:
      hidden_size, heads: of the tokens, of queries, keys and values.
      head_dim, value_head_dim: hidden_size / heads unless given.
      conv_size: of the short convolutions behind the projections, None for silu alone.
      conv_bias: whether these have biases.
      use_gate: gate the outputs, by `g_proj`.
      allow_neg_eigval: β between 0 and 2 instead of 0 and 1.
      norm_eps: of the output norm.
      dropout: of the output, where `apply` gets a key.
    """

    use_gate: bool = False

    def _mix(self, params, x, calls):
        o = self._recur(params, x, calls, linattn.delta_rule)
        return self._finish(params, o, dense(params["g_proj"], x) if self.use_gate else None)


@layer
class GatedDeltaNet(_Delta):
    """The gated delta rule: `linattn.torch.nn.GatedDeltaNet`.

    Args:
      hidden_size, heads: of the tokens, of queries and keys.
      value_heads: of values, gates and states, a multiple of `heads`; as many unless given.
      value_head_dim: head_dim unless given.
      head_dim, conv_size, conv_bias, use_gate, allow_neg_eigval, norm_eps, dropout: as in `DeltaNet`.
    """

    value_heads: int | None = None
    use_gate: bool = True

    def _init(self, draws):
        heads = self._sizes.value_heads
        return super()._init(draws) | {
            "a_proj": draws.dense(self.hidden_size, heads), "A_log": draws.rates(heads, 0.01), "dt_bias": draws.steps(heads),
        }  # fmt: skip

    def _mix(self, params, x, calls):
        o = self._recur(
            params, x, calls, linattn.gated_delta_rule, dense(params["a_proj"], x), use_gate_in_kernel=True,
            A_log=params["A_log"], dt_bias=params["dt_bias"],
        )  # fmt: skip
        return self._finish(params, o, dense(params["g_proj"], x) if self.use_gate else None)


@layer
class KimiDeltaAttention(_Delta):
    """The delta rule with a decay per channel and token: `linattn.torch.nn.KimiDeltaAttention`.

    Args:
      hidden_size, heads, value_heads, head_dim, value_head_dim: as in `GatedDeltaNet`.
      conv_size, conv_bias, allow_neg_eigval, norm_eps, dropout: as in `GatedDeltaNet`.
      gate_rank: of the two projections `f_proj` to decays and `g_proj` to output gates; value_head_dim unless given.
      gate_bias: whether the second one of `g_proj` has a bias.
      lower_bound: the decay is this times a sigmoid, from −5 to below 0, instead of a softplus.
    """

    value_heads: int | None = None
    gate_rank: int | None = None
    gate_bias: bool = True
    lower_bound: float | None = None

    @property
    def _rank(self):
        return self._sizes.value_head_dim if self.gate_rank is None else self.gate_rank

    def _init(self, draws):
        heads = self._sizes.value_heads
        gates = heads * self._sizes.head_dim
        return super()._init(draws) | {
            "f_proj": draws.low_rank(self.hidden_size, self._rank, gates),
            "A_log": draws.rates(heads), "dt_bias": draws.steps(gates),
        }  # fmt: skip

    def _init_gate(self, draws, sizes):
        return draws.low_rank(self.hidden_size, self._rank, sizes.output, self.gate_bias)

    def _mix(self, params, x, calls):
        g = split(low_rank(params["f_proj"], x), self._sizes.head_dim)
        o = self._recur(
            params, x, calls, linattn.kda, g, use_gate_in_kernel=True, A_log=params["A_log"], dt_bias=params["dt_bias"],
            lower_bound=self.lower_bound,
        )  # fmt: skip
        return self._finish(params, o, low_rank(params["g_proj"], x), activation="sigmoid")
