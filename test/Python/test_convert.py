"""Softmax models made linear, and taught to imitate softmax."""

import importlib.util
import pathlib

import pytest

import linattn

torch = pytest.importorskip("torch")
import linattn.torch  # noqa: E402
from linattn.torch import nn  # noqa: E402

SIZE, HEADS, T = 32, 4, 19


def error(found, expected):
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


def draw(rows=2, tokens=T, seed=1):
    return torch.randn(rows, tokens, SIZE, generator=torch.Generator().manual_seed(seed))


def by_formula(layer, q, k, v, causal, mask=None):
    """Linear attention of ``[B, T, H, D]`` in float64, by the features."""
    features = [m.double()(x.double()) for m, x in ((layer.feature_map_q, q), (layer.feature_map_k, k))]
    layer.float()
    features[1] = features[1].repeat_interleave(q.shape[2] // k.shape[2], 2)
    v = v.double().repeat_interleave(q.shape[2] // v.shape[2], 2)
    weights = torch.einsum("bthm,bshm->bhts", *features)
    weights = weights.tril() if causal else weights
    weights = weights if mask is None else weights * mask[:, None, None]
    return torch.einsum("bhts,bshv->bthv", weights / (weights.sum(-1, keepdim=True) + 1e-6), v)


def perturb(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for layer in linattn.torch.converted_layers(model).values():
            for parameter in [*layer.feature_map_q.parameters(), *layer.feature_map_k.parameters()]:
                parameter.add_(0.3 * torch.randn_like(parameter))


@pytest.mark.parametrize("kind", ["hedgehog", "t2r", "hadamard"])
@torch.no_grad()
def test_own_layer(kind):
    torch.manual_seed(0)
    softmax = nn.MultiHeadAttention(SIZE, HEADS, kv_heads=2, bias=True)
    model = torch.nn.Sequential(softmax)
    linattn.convert(model, feature_map=kind)
    perturb(model)
    (layer,) = linattn.torch.converted_layers(model).values()
    assert isinstance(layer, nn.LinearAttention) and layer.q_proj is softmax.q_proj
    x = draw()
    q, k, v = layer.project(x, None, None)
    if kind == "hadamard":  # whose weights have any sign, and their sum may vanish
        layer.feature_map_q.weight2, layer.feature_map_k.weight2 = layer.feature_map_q.weight, layer.feature_map_k.weight
    expected = by_formula(layer, q, k, v, True).flatten(2) @ layer.o_proj.weight.double().T + layer.o_proj.bias
    assert error(model(x), expected) <= 1e-5


@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_layer_of_pytorch(causal):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(SIZE, HEADS, 48, batch_first=True).eval()
    model = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    linattn.convert(model)
    perturb(model)
    (attention,) = linattn.torch.converted_layers(model).values()
    x, mask = draw(), torch.ones(2, T, dtype=torch.bool)
    mask[1, 12:] = False
    q, k, v = (y.unflatten(-1, (HEADS, -1)) for y in torch.nn.functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1))
    expected = attention.out_proj(by_formula(attention, q, k, v, causal, mask).flatten(2).float())
    upper = torch.nn.Transformer.generate_square_subsequent_mask(T) if causal else None
    found, weights = attention(x, x, x, attn_mask=upper, key_padding_mask=~mask, is_causal=causal)
    assert weights is None and error(found[mask], expected[mask]) <= 1e-5
    # The encoder calls the layer, also where PyTorch would compute softmax by a path of its own.
    block = model.layers[0]
    hidden = block.norm1(x + attention(x, x, x, attn_mask=upper)[0])
    hidden = block.norm2(hidden + block.linear2(torch.relu(block.linear1(hidden))))
    assert error(model(x, mask=upper, is_causal=causal), hidden) <= 1e-5
    with pytest.raises(linattn.UnsupportedError, match="attn_mask: expected None or the causal mask"):
        attention(x, x, x, attn_mask=torch.eye(T).bool())
    with pytest.raises(linattn.UnsupportedError, match="key: expected the query itself"):
        attention(x, draw(), x)


# ----------------------------------------------------------------------------
# transformers
# ----------------------------------------------------------------------------


def make_model(**options):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=64, hidden_size=SIZE, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, pad_token_id=0, **options,
    )  # fmt: skip
    model = transformers.Qwen3ForCausalLM(config).eval()
    model.generation_config.eos_token_id = None
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                module.weight.mul_(0.2 / module.weight.std())
    return model


def draw_tokens(rows=2, seed=1, tokens=T):
    return torch.randint(3, 64, (rows, tokens), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def converted():
    model = linattn.convert(make_model())
    perturb(model)
    return model


@torch.no_grad()
def test_model_of_transformers(converted):
    inputs = {}
    layer = converted.model.layers[0].self_attn
    hook = layer.register_forward_hook(lambda _, args, kwargs, out: inputs.update(kwargs, out=out[0]), with_kwargs=True)
    converted(draw_tokens())
    hook.remove()
    x, (cos, sin) = inputs["hidden_states"], inputs["position_embeddings"]
    q = layer.q_norm(layer.q_proj(x).unflatten(-1, (-1, 8)))
    k = layer.k_norm(layer.k_proj(x).unflatten(-1, (-1, 8)))
    v = layer.v_proj(x).unflatten(-1, (-1, 8))
    turned = lambda y: torch.cat([-y[..., 4:], y[..., :4]], -1)  # noqa: E731
    q, k = (y * cos.unsqueeze(2) + turned(y) * sin.unsqueeze(2) for y in (q, k))
    expected = layer.o_proj(by_formula(layer, q, k, v, True).flatten(2).float())
    assert error(inputs["out"], expected) <= 1e-5


@torch.no_grad()
def test_generation_keeps_a_state(converted):
    tokens = draw_tokens()
    whole = converted(tokens).logits
    cache = converted(tokens[:, :9], use_cache=True).past_key_values
    outputs = []
    for begin, end in [(9, 12), *((t, t + 1) for t in range(12, T))]:
        outputs.append(converted(tokens[:, begin:end], past_key_values=cache).logits)
    assert error(torch.cat(outputs, 1), whole[:, 9:]) <= 1e-5
    assert cache.get_seq_length() == T and tuple(cache.layers[1].state.S.shape) == (2, 2, 16, 8)
    # A row that is padded on the left is continued as it is alone.
    mask = torch.ones_like(tokens)
    mask[0, :6] = 0
    options = dict(max_new_tokens=6, do_sample=False)
    padded = converted.generate(tokens, attention_mask=mask, **options)
    assert torch.equal(padded[0, T:], converted.generate(tokens[:1, 6:], **options)[0, T - 6 :])
    assert torch.equal(padded[1, T:], converted.generate(tokens[1:], **options)[0, T:])
    beams = converted.generate(tokens, num_beams=3, **options)
    assert torch.equal(beams, converted.generate(tokens, num_beams=3, use_cache=False, **options))


def test_distillation():
    model, softmax = linattn.convert(make_model()), make_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fixed = draw_tokens(4, seed=7)
    with torch.no_grad():
        expected = softmax(fixed).logits
        first = error(model(fixed).logits, expected)
    losses = linattn.torch.distill(model, [draw_tokens(4, seed) for seed in range(40)], lr=2e-2)
    # Layers see what they saw in the softmax model, so the first loss is that of the first layer and
    # the second one each on their own.
    assert losses[-1] < 0.7 * losses[0]
    with torch.no_grad():
        assert error(model(fixed).logits, expected) < first
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {name for name in before if "feature_map" in name}
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_losses_are_those_of_the_layers():
    torch.manual_seed(0)
    softmax = nn.MultiHeadAttention(SIZE, HEADS, dropout=0.5)
    model, x = torch.nn.Sequential(softmax), draw()
    with torch.no_grad():
        expected = softmax.eval()(x)
        linattn.convert(model.train())
        assert all(module.training for module in model.modules())
        loss = (model.eval()(x) - expected).square().mean() / expected.square().mean()
    assert linattn.torch.distill(model.train(), [x])[0] == pytest.approx(float(loss), rel=1e-5)
    assert all(module.training for module in model.modules())


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def test_part_of_a_model():
    model = make_model()
    linattn.convert(model, layers=["model.layers.1.self_attn"])
    assert list(linattn.torch.converted_layers(model)) == ["model.layers.1.self_attn"]
    with torch.no_grad():
        tokens = draw_tokens()
        cache = model(tokens[:, :9], use_cache=True).past_key_values
        found = model(tokens[:, 9:], past_key_values=cache).logits
        assert error(found, model(tokens).logits[:, 9:]) <= 1e-5
        assert cache.layers[0].keys.shape[-2] == T


def test_refusals():
    with pytest.raises(ValueError, match="feature_map: expected one of hedgehog, t2r, hadamard, but got 'elu'"):
        linattn.convert(torch.nn.Linear(2, 2), feature_map="elu")
    with pytest.raises(ValueError, match="model: expected one with a layer of softmax attention, but got none"):
        linattn.convert(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="but got none; 0: it has a window"):
        linattn.convert(torch.nn.Sequential(nn.MultiHeadAttention(SIZE, HEADS, window=4)))
    with pytest.raises(ValueError, match="layers: .* but got '1': a ReLU is not a known softmax attention"):
        linattn.convert(torch.nn.Sequential(nn.MultiHeadAttention(SIZE, HEADS), torch.nn.ReLU()), layers=["0", "1"])
    with pytest.raises(ValueError, match="layers: .* but got '7': no module has that name"):
        linattn.convert(torch.nn.Sequential(nn.MultiHeadAttention(SIZE, HEADS)), layers=["7"])
    mixed = torch.nn.Sequential(nn.MultiHeadAttention(SIZE, HEADS), nn.MultiHeadAttention(SIZE, HEADS, window=4))
    with pytest.warns(UserWarning, match="linattn.convert: 1 stays as it is: it has a window"):
        linattn.convert(mixed)
    with pytest.raises(ValueError, match="model: expected one that linattn.convert has made"):
        linattn.torch.distill(torch.nn.Linear(2, 2), [])


@torch.no_grad()
def test_caches_that_cannot_hold_a_state(converted):
    transformers = pytest.importorskip("transformers")
    cache = transformers.StaticCache(config=converted.config, max_cache_len=32)
    with pytest.raises(linattn.UnsupportedError, match="past_key_values: expected an empty dynamic layer .* but got a StaticLayer"):
        converted(draw_tokens(), past_key_values=cache)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="model: expected a torch.nn.Module, but got dict"):
        linattn.convert({})
    with pytest.raises(TypeError, match="layers: expected a list of names of modules"):
        linattn.convert(torch.nn.Linear(2, 2), layers="0")


def test_example():
    path = pathlib.Path(__file__).parents[2] / "examples/convert.py"
    spec = importlib.util.spec_from_file_location("convert_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    losses = example.main(["--steps=16", "--batch=4", "--tokens=32", "--layers=1", "--width=32", "--heads=2"])
    assert losses["linear, all weights trained further"] < losses["linear, with the same weights"]
