"""Layers made of modules of transformers compute what these do."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from linattn.torch import nn  # noqa: E402
from linattn.torch.nn._loading import translate  # noqa: E402
from transformers import DynamicCache  # noqa: E402
from transformers_models import make_model  # noqa: E402

T = 37
# Modeling file -> the class of its mixer and ours.
MIXERS = {
    "qwen3_next": ("Qwen3NextGatedDeltaNet", nn.GatedDeltaNet),
    "qwen3_5": ("Qwen3_5GatedDeltaNet", nn.GatedDeltaNet),
    "olmo_hybrid": ("OlmoHybridGatedDeltaNet", nn.GatedDeltaNet),
    "kimi_linear": ("KimiLinearDeltaAttention", nn.KimiDeltaAttention),
    "glm5_next": ("Glm5NextTextLinearAttention", nn.KimiDeltaAttention),
    "mamba2": ("Mamba2Mixer", nn.Mamba2),
}


@pytest.fixture(params=MIXERS)
def pair(request):
    """(a module of transformers, the layer made of it, a model's config)"""
    model = make_model(request.param)
    name, kind = MIXERS[request.param]
    module = next(module for module in model.modules() if type(module).__name__ == name)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    layer = nn.from_transformers(module)
    assert type(layer) is kind
    return module, layer, model.config


def error(found, expected):
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


def draw(module):
    return torch.randn(2, T, module.hidden_size, generator=torch.Generator().manual_seed(1))


def test_outputs_and_gradients(pair):
    module, layer, _ = pair
    x = draw(module)
    y, expected = layer(x), module(x)
    assert error(y, expected) <= 1e-5
    y.square().sum().backward()
    expected.square().sum().backward()
    gradients = translate(module, {name: parameter.grad for name, parameter in module.named_parameters()})
    assert set(gradients) == {name for name, _ in layer.named_parameters()}
    for name, parameter in layer.named_parameters():
        assert error(parameter.grad, gradients[name]) <= 1e-4, name


@pytest.mark.sampled(2)
@torch.no_grad()
def test_decoding(pair):
    module, layer, config = pair
    x, cache = draw(module), nn.Cache()
    theirs = DynamicCache(config=config)
    for begin, end in [(0, 30), *((t, t + 1) for t in range(30, T))]:
        expected = module(x[:, begin:end], cache_params=theirs)
        assert error(layer(x[:, begin:end], cache=cache), expected) <= 1e-5


@pytest.mark.sampled(3)
@torch.no_grad()
def test_padding(pair):
    module, layer, _ = pair
    x, mask = draw(module), torch.ones(2, T, dtype=torch.bool)
    mask[0, :9] = False
    expected = module(x, attention_mask=mask.long())
    assert error(layer(x, mask=mask)[mask], expected[mask]) <= 1e-5


def test_refusals():
    with pytest.raises(TypeError, match="module: expected a gated delta net, .* but got torch.nn.modules.linear.Linear"):
        nn.from_transformers(torch.nn.Linear(2, 2))
    model = make_model("mamba2")
    mixer = model.backbone.layers[0].mixer
    mixer.activation = "gelu"
    with pytest.raises(ValueError, match="module: expected the activation silu, but got gelu"):
        nn.from_transformers(mixer)
