"""Layers made of modules of transformers compute what these do."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
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


# ----------------------------------------------------------------------------
# Softmax attention and its relatives
# ----------------------------------------------------------------------------


def make_softmax(kind, **options):
    """(A module's tokens and outputs within its model, the module, the layer with its state dict)"""
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 64}
    config = getattr(transformers, f"{kind}Config")(**sizes, num_hidden_layers=1, **options)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    module, seen = model.layers[0].self_attn, {}
    module.register_forward_hook(lambda _, args, kwargs, y: seen.update(kwargs, y=y[0]), with_kwargs=True)
    model(inputs_embeds=torch.randn(2, T, 32))
    layer = nn.MultiHeadAttention(32, 4, kv_heads=2, rotary_base=1e4, window=options.get("sliding_window"))
    layer.load_state_dict(module.state_dict())
    return seen["hidden_states"].detach(), seen["y"], module, layer


def make_nystrom():
    config = transformers.NystromformerConfig(
        hidden_size=32, num_attention_heads=4, num_landmarks=4, segment_means_seq_len=36, conv_kernel_size=5
    )
    module, x = transformers.models.nystromformer.modeling_nystromformer.NystromformerSelfAttention(config).eval(), torch.randn(2, 36, 32)
    module.init_option = "exact"  # not by the largest norm of a batch
    layer = nn.NystromAttention(32, 4, landmarks=4, conv_size=5, bias=True)
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
    tensors = {names.get(name.split(".")[0], "conv") + "." + name.split(".")[1]: x for name, x in module.state_dict().items()}
    layer.load_state_dict(tensors | {"o_proj.weight": torch.eye(32), "o_proj.bias": torch.zeros(32)})
    return x, module(x)[0], module, layer


def make_fnet():
    module = transformers.models.fnet.modeling_fnet.FNetBasicFourierTransform(transformers.FNetConfig())
    x = torch.randn(2, T, 32)
    return x, module(x)[0], module, nn.FNet(32)


RELATIVES = {
    "softmax": lambda: make_softmax("Llama"), "window": lambda: make_softmax("Mistral", sliding_window=6),
    "nystrom": make_nystrom, "fnet": make_fnet,
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_of_softmax(name):
    torch.manual_seed(0)
    x, expected, module, layer = RELATIVES[name]()
    y = layer(x)
    assert error(y, expected) <= 1e-5
    if name != "fnet":
        y.square().sum().backward()
        expected.square().sum().backward()
    ours = [parameter.grad for key, parameter in layer.named_parameters() if name != "nystrom" or "o_proj" not in key]
    theirs = [parameter.grad for parameter in module.parameters()]
    for found, other in zip(ours, theirs, strict=True):
        # A parameter that shifts all scores of a query, as a bias of keys does, has no gradient but rounding.
        assert (found - other).abs().max() <= 1e-4 * max(other.abs().max(), 1e-2)
    if name in ("softmax", "window"):
        with torch.no_grad():
            cache = nn.Cache()
            steps = [layer(x[:, t : t + 1], cache=cache) for t in range(T)]
        assert error(torch.cat(steps, 1), expected) <= 1e-5


def test_refusals():
    with pytest.raises(TypeError, match="module: expected a gated delta net, .* but got torch.nn.modules.linear.Linear"):
        nn.from_transformers(torch.nn.Linear(2, 2))
    model = make_model("mamba2")
    mixer = model.backbone.layers[0].mixer
    mixer.activation = "gelu"
    with pytest.raises(ValueError, match="module: expected the activation silu, but got gelu"):
        nn.from_transformers(mixer)
