"""Small random models of transformers, by the names of their modeling files."""

import torch
import transformers

_COMMON = dict(vocab_size=64, hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=16)
_GATED_DELTA = dict(
    _COMMON, intermediate_size=32, num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4,
    linear_key_head_dim=16, linear_value_head_dim=16,
)  # fmt: skip

# Modeling file -> (model class, config class, options of the config).
MODELS = {
    "qwen3_next": (
        "Qwen3NextForCausalLM", "Qwen3NextConfig",
        dict(_GATED_DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16),
    ),
    "mamba2": (
        "Mamba2ForCausalLM", "Mamba2Config",
        dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_heads=4, head_dim=16, state_size=16, expand=2, n_groups=2, chunk_size=16),
    ),
}  # fmt: skip


def make_model(name, seed=0):
    model_class, config_class, options = MODELS[name]
    torch.manual_seed(seed)
    return getattr(transformers, model_class)(getattr(transformers, config_class)(**options)).eval()


def make_tokens(rows=2, length=37, padding=5, seed=1):
    """Tokens and their mask; the first row is padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 64, (rows, length), generator=generator)
    mask = torch.ones_like(tokens)
    mask[0, :padding] = 0
    return tokens, mask
