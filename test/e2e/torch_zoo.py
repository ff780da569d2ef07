"""The models that test/e2e/torch_models.py checks: small configurations of the usual kinds, each at four sizes.

Most are those of the table of ONNX exports (``exported/``); here are the others, and the sizes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from exported.exporting import declare_compiled_ops
from exported.spec import TABLE, Exported, Given, calling, floats, lengths_mask, tokens
from exported.transformers_media import of
from exported.transformers_text import SMALL, VOCABULARY, encoder

Sizes = tuple[Mapping[str, int], ...]
LIBRARIES = ("transformers_text", "transformers_media", "torchvision_models", "diffusers_models")

MODELS: dict[str, Exported] = {}
TRAINED = ("transformer_training",)
"""Models that are checked by their gradients, too."""


def model(inputs: Mapping[str, Given], sizes: Sizes) -> Callable[[Callable[[], Any]], Any]:
    """Puts what the decorated function builds into the table."""
    def add(build: Callable[[], Any]) -> Any:
        MODELS[build.__name__] = Exported(build.__name__, build.__module__, build, inputs, sizes)
        return build

    return add


def sizes_of(**sizes: tuple[int, ...]) -> Sizes:
    """``sizes_of(batch=(1, 3), seq=(4, 9))``: the first of each, the second of each..."""
    return tuple(dict(zip(sizes, each, strict=True)) for each in zip(*sizes.values(), strict=True))


BATCH = (2, 1, 3, 5)
SEVERAL = (2, 3, 4, 5)
"""Batches of models whose own code asks whether a batch is 1 (masks of transformers' decoders): torch.compile compiles
those once more."""
BATCHES = sizes_of(batch=BATCH)
IMAGES = sizes_of(batch=BATCH, height=(64, 96, 128, 64), width=(96, 64, 64, 128))
LATENTS = sizes_of(batch=BATCH, height=(16, 24, 32, 16), width=(24, 16, 16, 32))
TEXTS = sizes_of(batch=BATCH, seq=(24, 9, 16, 33))
PAIRS = sizes_of(batch=BATCH, source=(20, 7, 16, 33), target=(11, 5, 9, 20))

ROWS = sizes_of(batch=SEVERAL, seq=(24, 9, 16, 33))

FROM_TABLE: Mapping[str, Sizes] = {
    "bert": TEXTS, "t5": PAIRS, "gpt2": TEXTS, "llama": ROWS, "qwen3": ROWS, "mamba": BATCHES, "swin_t": BATCHES,
    "convnext": BATCHES, "unet": LATENTS, "unet_prompted": LATENTS}


@model({"image": floats("batch", 3, "height", "width")}, IMAGES)
def resnet() -> Any:
    from torchvision.models import resnet18

    return resnet18(num_classes=10)


@model({"pixel_values": floats("batch", 3, 64, 64)}, BATCHES)
def vit() -> Any:
    return calling(of("ViT", "Model", **_layers(), image_size=64, patch_size=16),
                   lambda m, x: m(pixel_values=x).last_hidden_state)


@model({"input_ids": tokens(VOCABULARY, "batch", "seq"), "attention_mask": lengths_mask("batch", "seq")}, TEXTS)
def minilm() -> Any:
    """A sentence: the mean of its tokens, of length 1."""
    return calling(encoder("Bert"), _sentence)


def _sentence(model_: Any, ids: Any, mask: Any) -> Any:
    import torch

    weights = mask[:, :, None].float()
    hidden = model_(ids, mask)
    mean = (hidden * weights.to(hidden.dtype)).sum(1) / weights.sum(1).clamp(min=1e-9).to(hidden.dtype)
    return torch.nn.functional.normalize(mean, dim=1)


def _layers() -> dict[str, Any]:
    return dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)


def _whisper() -> Any:
    return of("Whisper", "Model", vocab_size=VOCABULARY, num_mel_bins=16, d_model=64, encoder_layers=2,
              decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96,
              decoder_ffn_dim=96, max_source_positions=32, max_target_positions=40, use_cache=False, pad_token_id=0,
              bos_token_id=1, eos_token_id=1, decoder_start_token_id=1)


@model({"input_features": floats("batch", 16, 64)}, BATCHES)
def whisper_encoder() -> Any:
    return calling(_whisper().encoder, lambda m, x: m(x).last_hidden_state)


@model({"decoder_input_ids": tokens(VOCABULARY, "batch", "seq"), "hidden": floats("batch", "frames", 64)},
       sizes_of(batch=BATCH, seq=(9, 4, 5, 33), frames=(32, 16, 20, 9)))
def whisper_decoder() -> Any:
    return calling(_whisper().decoder, lambda m, ids, hidden: m(
        input_ids=ids, encoder_hidden_states=hidden).last_hidden_state)


@model({"input_ids": tokens(VOCABULARY, "batch", "seq")}, ROWS)
def mixtral() -> Any:
    """Rows of tokens, sorted by expert."""
    experts = of("Mixtral", "ForCausalLM", **SMALL, num_key_value_heads=2, head_dim=16, use_cache=False,
                 num_local_experts=4, num_experts_per_tok=2)
    return calling(experts, lambda m, ids: m(input_ids=ids).logits)


@model({"image": floats("batch", 32, 8, 8), "points": floats("batch", 1, "points", 32)},
       sizes_of(batch=BATCH, points=(3, 2, 1, 6)))
def sam_decoder() -> Any:
    """Masks of an image's features and the features of points."""
    from transformers import SamMaskDecoderConfig
    from transformers.models.sam.modeling_sam import SamMaskDecoder

    config = SamMaskDecoderConfig(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=2,
                                  iou_head_hidden_dim=32)
    config._attn_implementation = "sdpa"
    return calling(SamMaskDecoder(config), _masks)


def _masks(decoder: Any, image: Any, points: Any) -> Any:
    masks, scores = decoder(image_embeddings=image, image_positional_embeddings=image * 0.5,
                            sparse_prompt_embeddings=points, dense_prompt_embeddings=image * 0.25,
                            multimask_output=True)[:2]
    return masks, scores


@model({"x": floats("batch", 12, 24)}, BATCHES)
def lstm() -> Any:
    """Two layers, both directions. torch.export knows one length only."""
    import torch

    return calling(torch.nn.LSTM(24, 32, num_layers=2, bidirectional=True, batch_first=True), lambda m, x: m(x)[0])


@model({"x": floats("batch", "seq", 32)}, TEXTS)
def transformer_training() -> Any:
    import torch

    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                               torch.nn.Linear(32, 5))


@cache
def zoo() -> dict[str, Exported]:
    """All models by name; needs the libraries."""
    declare_compiled_ops()
    for module in LIBRARIES:
        importlib.import_module(f"exported.{module}")
    taken = {name: Exported(name, TABLE[name].library, TABLE[name].build, TABLE[name].inputs, sizes)
             for name, sizes in FROM_TABLE.items()}
    return dict(sorted({**MODELS, **taken}.items()))
