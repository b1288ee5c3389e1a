"""A layer of transformers' caches that keeps a linear attention's state."""

from __future__ import annotations

import linattn

from transformers.cache_utils import CacheLayerMixin, DynamicLayer

__all__ = ["StateLayer", "take_place"]


class StateLayer(CacheLayerMixin):
    """The state of one layer, and how many tokens it has read."""

    is_croppable = False

    def __init__(self):
        super().__init__()
        self.state, self.tokens = None, 0

    def lazy_initialization(self, key_states, value_states):
        self.is_initialized = True

    def update(self, key_states, value_states, *args, **kwargs):
        """The new keys and values alone: those before are in the state."""
        self.is_initialized = True
        self.tokens += key_states.shape[-2]
        return key_states, value_states

    def get_mask_sizes(self, query_length):
        return self.tokens + query_length, 0

    def get_seq_length(self):
        return self.tokens

    def get_max_length(self):
        return -1

    def reset(self):
        self.state, self.tokens, self.is_initialized = None, 0, False

    def reorder_cache(self, beam_idx):
        self._map(lambda part: part.index_select(0, beam_idx.to(part.device)))

    def batch_repeat_interleave(self, repeats):
        self._map(lambda part: part.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices):
        self._map(lambda part: part[indices])

    def offload(self):
        """The state is small, and stays where it is."""

    def prefetch(self):
        """There is nothing to bring back."""

    def _map(self, function):
        if self.state is not None:
            parts = (self.state.S, self.state.z, self.state.m)
            self.state = linattn.State(*(None if part is None else function(part) for part in parts))


def take_place(cache, index):
    """The `StateLayer` of a cache, which takes the place of a layer that is still empty."""
    while len(cache.layers) <= index:
        cache.layers.append(cache.layer_class_to_replicate())
    layer = cache.layers[index]
    if isinstance(layer, StateLayer):
        return layer
    if type(layer) is not DynamicLayer or layer.get_seq_length():
        what = f"one with {layer.get_seq_length()} keys" if layer.get_seq_length() else f"a {type(layer).__name__}"
        raise linattn.UnsupportedError(
            f"past_key_values: expected an empty dynamic layer of a cache for a converted layer, but got {what}"
        )
    cache.layers[index] = StateLayer()
    return cache.layers[index]
