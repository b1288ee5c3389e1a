"""Small random models of transformers, by the names of their modeling files."""

import torch
import transformers

_COMMON = {"vocab_size": 64, "hidden_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
_ATTENTION = {**_COMMON, "num_attention_heads": 2, "num_key_value_heads": 1}
_HEADS = {**_ATTENTION, "head_dim": 16, "intermediate_size": 48}
_EXPERTS = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
_SHARED = {**_EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 16}
_LINEAR = {
    "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2,
    "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
}  # fmt: skip
_LATENT = {
    **_COMMON, **_EXPERTS, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 48, "kv_lora_rank": 16,
    "v_head_dim": 16, "qk_nope_head_dim": 16, "num_hidden_layers": 2,
}  # fmt: skip
_MAMBA2 = {
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_expand": 2,
    "mamba_chunk_size": 16,
}  # fmt: skip
_CONV = {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]}

# Modeling file -> (model, config, options of the config).
MODELS = {
    # The gated delta rule.
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", {**_HEADS, **_LINEAR, **_SHARED}),
    "qwen3_5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", {**_HEADS, **_LINEAR}),
    "qwen3_5_moe": ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", {**_HEADS, **_LINEAR, **_SHARED}),
    "qwen4_exp": (
        "Qwen4ExpForCausalLM", "Qwen4ExpTextConfig",
        {**_HEADS, **_LINEAR, **_SHARED, "num_hidden_layers": 3, "layer_types": ["linear_attention"] * 2 + ["indexed_attention"],
         "hc_count": 2, "hc_lowrank": 8, "ple_layer_ids": [1, 2], "eos_token_id": 2, "ple_embed_dim": 32, "ngram_vocab_size_base": 50,
         "make_ngram_vocab_size_divisible_by": 8, "heads_per_ngram": 2, "split_ngram_parts": 2, "indexer_n_heads": 2,
         "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 64, "indexer_compress_ratio": 4},
    ),
    "olmo_hybrid": ("OlmoHybridForCausalLM", "OlmoHybridConfig", {**_ATTENTION, **_LINEAR, "intermediate_size": 48}),
    # Kimi delta attention.
    "kimi_linear": (
        "KimiLinearForCausalLM", "KimiLinearConfig",
        {**_LATENT, "layer_types": ["linear_attention", "full_attention"], "linear_head_dim": 16, "linear_num_heads": 2,
         "qk_rope_head_dim": 8, "num_local_experts": 4},
    ),
    "glm5_next": (
        "Glm5NextForConditionalGeneration", "Glm5NextConfig",
        {"text_config": {
            **_LATENT, "layer_types": ["linear_attention", "indexed_attention"], "linear_head_dim": 16, "linear_num_heads": 2,
            "q_lora_rank": 16, "n_routed_experts": 4, "hc_mult": 2, "index_topk": 64, "index_head_dim": 16, "index_n_heads": 2,
            "index_kpool": 4},
         "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 32}},
    ),
    "bailing_hybrid": (
        "BailingHybridForCausalLM", "BailingHybridConfig",
        {**_LATENT, "layer_types": ["linear_attention", "full_attention"], "head_dim": 16, "qk_rope_head_dim": 8, "num_local_experts": 8,
         "n_group": 2, "topk_group": 1},
    ),
    # Mamba-2.
    "mamba2": (
        "Mamba2ForCausalLM", "Mamba2Config",
        {**_COMMON, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 16, "state_size": 8, "expand": 2, "n_groups": 2,
         "chunk_size": 16},
    ),
    "bamba": (
        "BambaForCausalLM", "BambaConfig",
        {**_ATTENTION, **_MAMBA2, "intermediate_size": 48, "num_hidden_layers": 2, "attn_layer_indices": [1]},
    ),
    "falcon_h1": (
        "FalconH1ForCausalLM", "FalconH1Config",
        {**_HEADS, **_MAMBA2, "num_hidden_layers": 2, "mamba_d_ssm": 64, "mamba_rms_norm": True},
    ),
    "granitemoehybrid": (
        "GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig",
        {**_ATTENTION, **_MAMBA2, "intermediate_size": 48, "num_hidden_layers": 2, "layer_types": ["mamba", "attention"],
         "shared_intermediate_size": 16, "num_local_experts": 4},
    ),
    "nemotron_h": (
        "NemotronHForCausalLM", "NemotronHConfig",
        {**_HEADS, "layers_block_type": ["mamba", "moe", "attention", "mamba"], "ssm_state_size": 8, "mamba_num_heads": 4,
         "mamba_head_dim": 16, "n_groups": 2, "chunk_size": 16, "n_routed_experts": 4, "moe_intermediate_size": 16,
         "moe_shared_expert_intermediate_size": 16},
    ),
    "zamba2": (
        "Zamba2ForCausalLM", "Zamba2Config",
        {**_ATTENTION, "intermediate_size": 48, "num_hidden_layers": 3, "layers_block_type": ["mamba", "hybrid", "mamba"],
         "mamba_d_state": 8, "n_mamba_heads": 4, "mamba_ngroups": 2, "chunk_size": 16, "num_mem_blocks": 1, "adapter_rank": 8},
    ),
    # Mamba-1.
    "mamba": (
        "MambaForCausalLM", "MambaConfig",
        {**_COMMON, "num_hidden_layers": 2, "state_size": 8, "intermediate_size": 64, "time_step_rank": 4},
    ),
    "falcon_mamba": (
        "FalconMambaForCausalLM", "FalconMambaConfig",
        {**_COMMON, "num_hidden_layers": 2, "state_size": 8, "intermediate_size": 64, "time_step_rank": 4},
    ),
    "jamba": (
        "JambaForCausalLM", "JambaConfig",
        {**_ATTENTION, "intermediate_size": 48, "num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
         "num_experts": 2, "num_experts_per_tok": 1, "mamba_d_state": 8, "mamba_dt_rank": 4},
    ),
    "zamba": (
        "ZambaForCausalLM", "ZambaConfig",
        {**_ATTENTION, "num_key_value_heads": 2, "intermediate_size": 48, "num_hidden_layers": 3,
         "layers_block_type": ["mamba", "hybrid", "hybrid"], "mamba_d_state": 8, "mamba_dt_rank": 4},
    ),
    # Short convolutions alone.
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", {**_ATTENTION, **_CONV, "intermediate_size": 48}),
    "lfm2_moe": (
        "Lfm2MoeForCausalLM", "Lfm2MoeConfig",
        {**_ATTENTION, **_CONV, **_EXPERTS, "intermediate_size": 48, "num_experts": 4, "num_dense_layers": 1},
    ),
    "lfm3": ("Lfm3ForCausalLM", "Lfm3Config", {**_HEADS, **_CONV}),
    "inkling": (
        "InklingForCausalLM", "InklingTextConfig",
        {**_HEADS, "num_hidden_layers": 2, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 1, "swa_head_dim": 16,
         "d_rel": 4, "rel_extent": 16, **_EXPERTS, "n_routed_experts": 4, "n_shared_experts": 1},
    ),
    "inkling2": (
        "Inkling2ForCausalLM", "Inkling2TextConfig",
        {**_ATTENTION, "head_dim": 16, "num_hidden_layers": 2, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 1,
         "swa_head_dim": 16, "d_rel": 4, "rel_extent": 16, "unpadded_vocab_size": 64, **_EXPERTS, "n_routed_experts": 4},
    ),
    # Layers without a decorator of transformers.
    "minimax": (
        "MiniMaxForCausalLM", "MiniMaxConfig",
        {**_HEADS, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "block_size": 16,
         "num_local_experts": 2},
    ),
    "rwkv": ("RwkvForCausalLM", "RwkvConfig", {**_COMMON, "num_hidden_layers": 2, "context_length": 128}),
    "xlstm": ("xLSTMForCausalLM", "xLSTMConfig", {**_COMMON, "hidden_size": 128, "num_hidden_layers": 2, "num_heads": 2, "chunk_size": 16}),
    "recurrent_gemma": (
        "RecurrentGemmaForCausalLM", "RecurrentGemmaConfig",
        {**_ATTENTION, "intermediate_size": 48, "num_hidden_layers": 3, "attention_window_size": 64, "lru_width": 32},
    ),
}  # fmt: skip


def make_model(name, seed=0):
    model_class, config_class, options = MODELS[name]
    torch.manual_seed(seed)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**options)).eval()
    model.generation_config.eos_token_id = None
    # Larger than transformers draws them, so that the recurrence is seen in the logits.
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding, torch.nn.Conv1d)):
                module.weight.mul_(0.2 / module.weight.std().clamp(min=1e-6))
    return model


def make_tokens(rows=2, length=37, padding=5, seed=1):
    """Tokens and their mask; the first row is padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 64, (rows, length), generator=generator)
    mask = torch.ones_like(tokens)
    mask[0, :padding] = 0
    return tokens, mask
