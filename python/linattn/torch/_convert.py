"""Softmax attention replaced by linear attention, and its feature maps trained to imitate it."""

from __future__ import annotations

import contextlib
import threading
import warnings

import torch
from torch import nn

import linattn

from .._core._checks import check_choice
from .._maps._features import TRAINED_MAPS
from .nn._base import merge_heads, split_heads
from .nn._linear import FeatureMap, LinearAttention
from .nn._softmax import MultiHeadAttention

__all__ = ["convert", "converted_layers", "distill"]


class _Local(threading.local):
    is_softmax = False


_local = _Local()


@contextlib.contextmanager
def _softmax():
    """Inside of it converted layers compute what they did before."""
    before, _local.is_softmax = _local.is_softmax, True
    try:
        yield
    finally:
        _local.is_softmax = before


def convert(model, feature_map="hedgehog", layers=None):
    """Replaces softmax attention of a model by linear attention, with the weights it has.

    The attention layers of transformers' models that compute softmax(QKᵀ)V by transformers'
    own interface, `torch.nn.MultiheadAttention` and `linattn.torch.nn.MultiHeadAttention` keep
    their projections, norms and rotary embeddings; φ(q)·φ(k) takes the place of e^(q·k). Models
    of transformers then keep a state of fixed size in their dynamic caches. The feature maps
    are new: `distill` trains them, and training the whole model follows.

    Args:
      model: a module, which is changed.
      feature_map: "hedgehog", "t2r" or "hadamard": `linattn.torch.nn.FeatureMap`.
      layers: the names of the modules to convert, as `named_modules` has them; all that can
        be unless given.

    Returns:
      The model.

    Raises:
      ValueError: no layer can be converted, or one that was named cannot, and why.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, but got {type(model).__name__}")
    check_choice("feature_map", feature_map, TRAINED_MAPS)
    if layers is not None and (isinstance(layers, str) or not all(isinstance(name, str) for name in layers)):
        raise TypeError("layers: expected a list of names of modules, but got another thing")
    converters, refusals = {}, {}
    for name, module in model.named_modules():
        if layers is None or name in layers:
            converter, refusal = _find_converter(module)
            if converter is not None:
                converters[name] = converter
            elif refusal is not None or layers is not None:
                refusals[name] = refusal or f"a {type(module).__name__} is not a known softmax attention"
    for name in layers or ():
        if name not in converters:
            reason = refusals.get(name, "no module has that name")
            raise ValueError(f"layers: expected names of layers that can be converted, but got {name!r}: {reason}")
    if not converters:
        reasons = "".join(f"; {name}: {reason}" for name, reason in refusals.items())
        raise ValueError(f"model: expected one with a layer of softmax attention, but got none{reasons}")
    for name, reason in refusals.items():
        warnings.warn(f"linattn.convert: {name} stays as it is: {reason}", stacklevel=2)
    for name, converter in converters.items():
        module = model.get_submodule(name)
        like, training = next(module.parameters()), module.training
        replacement = converter(module, feature_map)
        replacement.to(like.device, like.dtype).train(training)
        if replacement is not module:
            if not name:
                return replacement
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, replacement)
    return model


def converted_layers(model):
    """The layers of a model that `convert` has made, by name."""
    return {name: module for name, module in model.named_modules() if hasattr(module, "_linattn_teacher")}


def _find_converter(module):
    """(a function (module, feature map) -> the layer, None), or (None, why not or None)."""
    if hasattr(module, "_linattn_teacher"):
        return None, None
    if isinstance(module, MultiHeadAttention):
        return (_convert_layer, None) if module.window is None else (None, "it has a window")
    if isinstance(module, nn.MultiheadAttention):
        for fine, what in (
            (module._qkv_same_embed_dim, "keys and values have sizes of their own"),
            (module.bias_k is None and not module.add_zero_attn, "it adds keys and values of its own"),
        ):
            if not fine:
                return None, what
        return _LinearMultiheadAttention, None
    if all(hasattr(module, name) for name in ("config", "layer_idx", "is_causal", "head_dim")):
        return _check_transformers(module)
    return None, None


def _check_transformers(module):
    if getattr(module, "is_cross_attention", False):
        return None, "its keys come from elsewhere"
    for name in ("sliding_window", "attn_logit_softcapping", "sinks"):
        if getattr(module, name, None) is not None:
            return None, f"it has {name}"
    if not hasattr(module.config, "num_attention_heads"):
        return None, "its config does not give the number of heads"
    return _convert_transformers, None


# ----------------------------------------------------------------------------
# Layers of this package and of PyTorch
# ----------------------------------------------------------------------------


def _convert_layer(layer, feature_map):
    linear = LinearAttention(
        layer.hidden_size, layer.heads, kv_heads=layer.key_heads, head_dim=layer.head_dim, causal=layer.causal,
        feature_map=feature_map, rotary_base=layer.rotary_base, bias=layer.q_proj.bias is not None,
        dropout=layer.dropout.p,
    )  # fmt: skip
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        setattr(linear, name, getattr(layer, name))
    linear.__dict__["_linattn_teacher"] = layer.eval().forward
    return linear


class _LinearMultiheadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` with linear attention: a call of the same form."""

    # PyTorch's encoder layers, which would compute softmax of the weights themselves, read it.
    _qkv_same_embed_dim = property(lambda self: False, lambda self, value: None)

    def __init__(self, layer, feature_map):
        super().__init__(
            layer.embed_dim, layer.num_heads, layer.dropout, layer.in_proj_bias is not None, batch_first=layer.batch_first,
            device="meta",
        )  # fmt: skip
        self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        self.in_proj_weight, self.in_proj_bias, self.out_proj = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj
        self.feature_map_q = FeatureMap(feature_map, layer.num_heads, layer.head_dim)
        self.feature_map_k = FeatureMap(feature_map, layer.num_heads, layer.head_dim)
        self.__dict__["_linattn_teacher"] = layer.eval().forward

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
        is_causal=False,
    ):  # fmt: skip
        """(the output, None): it has no weights to return."""
        if query is not key or key is not value:
            raise linattn.UnsupportedError("key: expected the query itself, since a converted layer is one of self-attention")
        x = query if self.batch_first or query.ndim == 2 else query.transpose(0, 1)
        rows = x.unsqueeze(0) if x.ndim == 2 else x
        parts = nn.functional.linear(rows, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.head_dim) for part in parts)
        mask = _kept(key_padding_mask, rows)
        if attn_mask is not None or is_causal:
            _check_causal(attn_mask, rows.shape[1])
            o = linattn.scan(q, k, v, feature_map=_token_map(self), normalize=True, scale=1.0, mask=mask)
        else:
            o = linattn.attention(q, k, v, feature_map=_token_map(self), mask=mask)
        y = self.out_proj(merge_heads(o))
        y = y.squeeze(0) if query.ndim == 2 else y
        return (y if self.batch_first or query.ndim == 2 else y.transpose(0, 1)), None


def _token_map(module):
    return module.feature_map_q.token_map().with_keys(module.feature_map_k.token_map())


def _kept(key_padding_mask, rows):
    """True where there is a token, of a mask that is True, or −∞, where there is none."""
    if key_padding_mask is None:
        return None
    mask = key_padding_mask if key_padding_mask.dtype == torch.bool else key_padding_mask < 0
    return ~mask.expand(rows.shape[:2])


def _check_causal(attn_mask, tokens):
    if attn_mask is None:
        return
    hidden = attn_mask if attn_mask.dtype == torch.bool else attn_mask < 0
    causal = torch.ones(tokens, tokens, dtype=torch.bool, device=attn_mask.device).triu(1)
    if not (hidden == causal).all():
        raise linattn.UnsupportedError("attn_mask: expected None or the causal mask for a converted layer, but got another")


# ----------------------------------------------------------------------------
# Layers of transformers
# ----------------------------------------------------------------------------


def _convert_transformers(module, feature_map):
    """Gives the layer feature maps; its model then calls `_interface`."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("linattn", _interface)
    AttentionMaskInterface.register("linattn", sdpa_mask)
    config = module.config
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    module.feature_map_q = FeatureMap(feature_map, heads, module.head_dim)
    module.feature_map_k = FeatureMap(feature_map, kv_heads, module.head_dim)
    config._attn_implementation = "linattn"
    module.register_forward_pre_hook(_take_cache, with_kwargs=True)
    module.__dict__["_linattn_teacher"] = module.forward
    return module


def _interface(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """The attention function of transformers' models, softmax(QKᵀ)V; heads come before tokens."""
    if _local.is_softmax or not hasattr(module, "feature_map_q"):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs
        )  # fmt: skip
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    if q.shape[1] != k.shape[1]:
        raise linattn.UnsupportedError(
            f"past_key_values: expected a DynamicCache given by name for a converted layer, but got {k.shape[1]} keys "
            f"for {q.shape[1]} queries"
        )
    # The last token sees all before it but padding.
    mask = None if attention_mask is None else attention_mask[:, 0, -1, -q.shape[1] :].expand(q.shape[:2])
    if mask is not None and mask.dtype != torch.bool:
        mask = mask >= 0
    is_causal = kwargs.get("is_causal")
    if not (module.is_causal if is_causal is None else is_causal):
        return linattn.attention(q, k, v, feature_map=_token_map(module), mask=mask), None
    state = module.__dict__.get("_linattn_state")
    options = {"feature_map": _token_map(module), "normalize": True, "scale": 1.0, "mask": mask}
    if state is None:
        return linattn.scan(q, k, v, **options), None
    o, state.state = linattn.scan(q, k, v, initial_state=state.state, return_state=True, **options)
    return o, None


def _take_cache(module, arguments, options):
    """Before a layer of transformers runs: has its cache keep a state instead of keys."""
    module.__dict__["_linattn_state"] = None
    cache = options.get("past_key_values")
    if cache is None or _local.is_softmax:
        return
    from ._state_layer import take_place

    module.__dict__["_linattn_state"] = take_place(cache, module.layer_idx)


# ----------------------------------------------------------------------------
# Attention transfer
# ----------------------------------------------------------------------------


def distill(model, batches, *, lr=1e-2, optimizer=None):
    """Trains the feature maps of a converted model, and nothing else, so that each layer gives
    what it gave with softmax: attention transfer, the first stage of LoLCATs.

    Every layer gets the inputs that it had in the softmax model, and its loss is the mean
    squared difference of its output, relative to the mean square of softmax's. Dropout is off.

    Args:
      model: one that `convert` has made.
      batches: for every step a tensor, or a dict of keywords, that the model is called with.
      lr: of Adam.
      optimizer: another one, of the parameters in `converted_layers`.

    Returns:
      The losses of the steps, each the mean over the layers.

    Raises:
      ValueError: the model has no converted layer.
    """
    layers = list(converted_layers(model).values())
    if not layers:
        raise ValueError("model: expected one that linattn.convert has made, but got one without converted layers")
    trained = {id(parameter) for layer in layers for parameter in _maps(layer)}
    parameters = list(model.parameters())
    required = [parameter.requires_grad for parameter in parameters]
    training = [(module, module.training) for module in model.modules()]
    optimizer = optimizer or torch.optim.Adam([x for x in parameters if id(x) in trained], lr=lr)
    losses, terms = [], []
    hooks = [layer.register_forward_hook(_compare(terms), with_kwargs=True) for layer in layers]
    try:
        for parameter in parameters:
            parameter.requires_grad_(id(parameter) in trained)
        model.eval()  # dropout would be part of the differences
        for batch in batches:
            terms.clear()
            model(**batch) if isinstance(batch, dict) else model(batch)
            loss = torch.stack(terms).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    finally:
        for hook in hooks:
            hook.remove()
        for parameter, value in zip(parameters, required):
            parameter.requires_grad_(value)
            parameter.grad = None
        for module, value in training:
            module.training = value
    return losses


def _maps(layer):
    return [*layer.feature_map_q.parameters(), *layer.feature_map_k.parameters()]


def _compare(terms):
    def hook(layer, arguments, options, output):
        with torch.no_grad(), _softmax():
            expected = layer._linattn_teacher(*arguments, **options)
        found, target = (y[0] if isinstance(y, tuple) else y for y in (output, expected))
        terms.append((found - target).square().mean() / target.square().mean().clamp(min=1e-12))
        return expected

    return hook
