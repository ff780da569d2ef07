"""Language models from configurations of transformers: two layers of 64 features."""

from __future__ import annotations

from typing import Any

from exported.spec import calling, exported, floats, lengths_mask, ones_mask, tokens

VOCABULARY = 96
SIZES = ({"batch": 1, "seq": 9}, {"batch": 3, "seq": 24})
IDS = {"input_ids": tokens(VOCABULARY, "batch", "seq")}
MASKED = {**IDS, "attention_mask": lengths_mask("batch", "seq")}
FIXED = {"input_ids": tokens(VOCABULARY, "batch", 16)}
SMALL: dict[str, Any] = dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                             intermediate_size=96, max_position_embeddings=128)
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "use_cache": False}


def of(family: str, head: str, **config: Any) -> Any:
    """The class FAMILYHEAD of transformers on the configuration of FAMILY."""
    import transformers

    return getattr(transformers, family + head)(getattr(transformers, f"{family}Config")(**config))


def encoder(family: str, **config: Any) -> Any:
    """A model of the last hidden state from tokens and their mask."""
    return calling(of(family, "Model", **{**SMALL, **config}),
                   lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).last_hidden_state)


def decoder(family: str, **config: Any) -> Any:
    """A model of the logits of the next token."""
    return calling(of(family, "ForCausalLM", **config), lambda m, ids: m(input_ids=ids).logits)


@exported(MASKED, *SIZES)
def bert() -> Any:
    return encoder("Bert")


@exported(MASKED, *SIZES)
def roberta() -> Any:
    """Positions are counted from the tokens that are no padding."""
    return encoder("Roberta")


@exported(MASKED, *SIZES)
def deberta() -> Any:
    """Attention with relative positions of both sides, in logarithmic buckets."""
    return encoder("DebertaV2", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"],
                   share_att_key=True, norm_rel_ebd="layer_norm", max_relative_positions=128)


@exported({**IDS, "attention_mask": ones_mask("batch", "seq")}, *SIZES)
def modernbert() -> Any:
    """Local attention in a window, rotary positions of two periods.

    Nothing is hidden: padding beyond a window would see no key, and its rows mean nothing in f16.
    """
    return encoder("ModernBert", local_attention=8, global_attn_every_n_layers=2, pad_token_id=0, bos_token_id=1,
                   eos_token_id=1, cls_token_id=1, sep_token_id=1)


@exported(IDS, *SIZES)
def xlnet() -> Any:
    """Relative positions by shifting."""
    model = of("XLNet", "Model", vocab_size=VOCABULARY, d_model=64, n_layer=2, n_head=4, d_inner=96)
    return calling(model, lambda m, ids: m(input_ids=ids, use_mems=False).last_hidden_state)


@exported(FIXED, {"batch": 1}, {"batch": 3})
def fnet() -> Any:
    """Fourier transforms instead of attention."""
    model = of("FNet", "Model", **{**SMALL, "pad_token_id": 0, "type_vocab_size": 2})
    return calling(model, lambda m, ids: m(input_ids=ids).last_hidden_state)


@exported({"input_ids": tokens(VOCABULARY, "batch", "source"), "attention_mask": lengths_mask("batch", "source"),
           "decoder_input_ids": tokens(VOCABULARY, "batch", "target")},
          {"batch": 1, "source": 7, "target": 5}, {"batch": 2, "source": 20, "target": 11})
def t5() -> Any:
    model = of("T5", "ForConditionalGeneration", vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=2,
               num_heads=4, use_cache=False)
    return calling(model, _translate)


@exported({"input_ids": tokens(VOCABULARY, "batch", "source"), "attention_mask": lengths_mask("batch", "source"),
           "decoder_input_ids": tokens(VOCABULARY, "batch", "target")},
          {"batch": 1, "source": 7, "target": 5}, {"batch": 2, "source": 20, "target": 11})
def marian() -> Any:
    model = of("Marian", "MTModel", vocab_size=VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2,
               encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96,
               max_position_embeddings=64, pad_token_id=0, decoder_start_token_id=0, use_cache=False)
    return calling(model, _translate)


def _translate(model: Any, ids: Any, mask: Any, target: Any) -> Any:
    return model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits


@exported(MASKED, *SIZES)
def gpt2() -> Any:
    model = of("GPT2", "LMHeadModel", n_embd=64, n_layer=2, n_head=4, vocab_size=VOCABULARY, n_positions=64,
               use_cache=False)
    return calling(model, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).logits)


@exported({"input_ids": tokens(VOCABULARY, "batch", "new"), "attention_mask": ones_mask("batch", "total"),
           **{f"past_{kind}_{n}": floats("batch", 2, "past", 16) for n in range(2) for kind in ("key", "value")}},
          {"batch": 1, "new": 1, "past": 4, "total": 5}, {"batch": 2, "new": 3, "past": 17, "total": 20})
def llama_step() -> Any:
    """Some tokens behind those whose keys and values are given; the longer ones come back."""
    model = of("Llama", "ForCausalLM", **{**GROUPED, "use_cache": True})
    return calling(model, _step)


def _step(model: Any, ids: Any, mask: Any, *past: Any) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache(ddp_cache_data=[(past[i], past[i + 1]) for i in range(0, len(past), 2)])
    out = model(input_ids=ids, attention_mask=mask, past_key_values=cache)
    kept = [t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)]
    return (out.logits, *kept)


@exported(IDS, *SIZES)
def llama() -> Any:
    """Rotary positions whose low frequencies are stretched."""
    return decoder("Llama", **GROUPED, rope_parameters={
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32})


@exported(IDS, *SIZES)
def qwen3() -> Any:
    """Queries and keys are normed a head."""
    return decoder("Qwen3", **GROUPED)


@exported(IDS, *SIZES)
def gemma2() -> Any:
    """Soft caps on scores and logits, a sliding window in every other layer."""
    return decoder("Gemma2", **GROUPED, sliding_window=8, query_pre_attn_scalar=16)


@exported(MASKED, *SIZES)
def bloom() -> Any:
    """Biases that grow with the distance (alibi)."""
    model = of("Bloom", "ForCausalLM", vocab_size=VOCABULARY, hidden_size=64, n_layer=2, n_head=4, use_cache=False)
    return calling(model, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).logits)


@exported(IDS, *SIZES)
def mixtral() -> Any:
    """A mixture of experts, whose weights are gathered for each token."""
    return decoder("Mixtral", **GROUPED, num_local_experts=4, num_experts_per_tok=2,
                   experts_implementation="batched_mm")


@exported(IDS, *SIZES)
def gpt_oss() -> Any:
    """Attention with a learned sink; experts with biases and clamped gates."""
    return decoder("GptOss", **GROUPED, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
                   experts_implementation="batched_mm")


@exported(IDS, *SIZES)
def deepseek() -> Any:
    """Attention over compressed keys and values; no experts."""
    return decoder("DeepseekV3", **{**SMALL, "use_cache": False}, first_k_dense_replace=2, q_lora_rank=32,
                   kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, num_key_value_heads=4)


@exported(FIXED, {"batch": 1}, {"batch": 3})
def mamba() -> Any:
    """A selective state space: its steps are unrolled, so that the length is fixed."""
    return decoder("Mamba", vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, state_size=8, use_cache=False)


@exported(FIXED, {"batch": 1}, {"batch": 3})
def mamba2() -> Any:
    """State spaces by chunks: cumulative sums of segments."""
    return decoder("Mamba2", vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, state_size=8, num_heads=8,
                   head_dim=16, expand=2, n_groups=2, chunk_size=8, use_cache=False)


@exported(IDS, *SIZES)
def lfm2() -> Any:
    """Short gated convolutions beside attention."""
    return decoder("Lfm2", **GROUPED, layer_types=["conv", "full_attention"])
