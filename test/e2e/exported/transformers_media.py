"""Models of images, speech, audio and series from configurations of transformers."""

from __future__ import annotations

from typing import Any

from exported.spec import calling, exported, floats, lengths_mask, tokens
from exported.transformers_text import VOCABULARY, of

LAYERS: dict[str, Any] = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
BATCHES = ({"batch": 1}, {"batch": 3})
PIXELS = {"pixel_values": floats("batch", 3, 64, 64)}
SPEECH: dict[str, Any] = dict(LAYERS, vocab_size=32, conv_dim=[32] * 4, conv_stride=[5, 2, 2, 2],
                              conv_kernel=[10, 3, 3, 2], num_feat_extract_layers=4, num_conv_pos_embeddings=16,
                              num_conv_pos_embedding_groups=4)
RESNET: dict[str, Any] = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 32, 48, 64],
                              depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage2", "stage3", "stage4"])


@exported({"input_features": floats("batch", 16, 64), "decoder_input_ids": tokens(VOCABULARY, "batch", "seq")},
          {"batch": 1, "seq": 4}, {"batch": 2, "seq": 9})
def whisper() -> Any:
    model = of("Whisper", "ForConditionalGeneration", vocab_size=VOCABULARY, num_mel_bins=16, d_model=64,
               encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=32, max_target_positions=32,
               use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1,
               suppress_tokens=None, begin_suppress_tokens=None)
    return calling(model, lambda m, x, ids: m(input_features=x, decoder_input_ids=ids).logits)


@exported({"input_values": floats("batch", "samples")}, {"batch": 1, "samples": 1203}, {"batch": 2, "samples": 1640})
def wav2vec2() -> Any:
    """A chain of strided convolutions, whose lengths follow from the number of samples."""
    return calling(of("Wav2Vec2", "ForCTC", **SPEECH), lambda m, x: m(input_values=x).logits)


@exported({"input_values": floats("batch", "samples")}, {"batch": 1, "samples": 1203}, {"batch": 2, "samples": 1640})
def wavlm() -> Any:
    """Gated relative positions."""
    return calling(of("WavLM", "Model", **SPEECH), lambda m, x: m(input_values=x).last_hidden_state)


@exported({"input_values": floats("batch", 1, 400)}, *BATCHES)
def audio_codec() -> Any:
    """Convolutions down and up with periodic activations, between them codes nearest to vectors of tables (DAC)."""
    model = of("Dac", "Model", encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32,
               upsampling_ratios=[4, 2], n_codebooks=2, codebook_size=16, codebook_dim=4)
    return calling(model, lambda m, x: m(input_values=x).audio_values)


@exported({"past_values": floats("batch", 32, 3)}, *BATCHES)
def patch_series() -> Any:
    model = of("PatchTST", "ForPrediction", num_input_channels=3, context_length=32, patch_length=8, patch_stride=4,
               d_model=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, prediction_length=8,
               scaling="std", loss="mse")
    return calling(model, lambda m, x: m(past_values=x).prediction_outputs)


@exported({"pixel_values": floats("batch", 3, "height", "width")},
          {"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 96, "width": 128})
def segformer() -> Any:
    """Attention over fewer keys; features of all levels resized to one."""
    model = of("Segformer", "ForSemanticSegmentation", depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64],
               num_attention_heads=[1, 2, 3, 4], sr_ratios=[4, 2, 2, 1], decoder_hidden_size=32, num_labels=5)
    return calling(model, lambda m, x: m(pixel_values=x).logits)


@exported(PIXELS, *BATCHES)
def detr() -> Any:
    import transformers

    model = of("Detr", "ForObjectDetection", d_model=64, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=96,
               decoder_ffn_dim=96, encoder_attention_heads=4, decoder_attention_heads=4, num_queries=10, num_labels=7,
               use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
               backbone_config=transformers.ResNetConfig(**{**RESNET, "out_features": ["stage4"]}))
    return calling(model, _detections)


@exported(PIXELS, *BATCHES)
def deformable_detr() -> Any:
    """Attention that samples images between their pixels."""
    import transformers

    model = of("DeformableDetr", "ForObjectDetection", d_model=64, encoder_layers=1, decoder_layers=2,
               encoder_ffn_dim=96, decoder_ffn_dim=96, encoder_attention_heads=4, decoder_attention_heads=4,
               num_queries=10, num_labels=7, num_feature_levels=3, use_timm_backbone=False,
               use_pretrained_backbone=False, backbone=None, backbone_config=transformers.ResNetConfig(**RESNET))
    return calling(model, _detections)


def _detections(model: Any, pixels: Any) -> Any:
    out = model(pixel_values=pixels)
    return out.logits, out.pred_boxes


@exported({"input_ids": tokens(VOCABULARY, "texts", "seq"), "pixel_values": floats("batch", 3, 64, 64),
           "attention_mask": lengths_mask("texts", "seq")},
          {"texts": 2, "seq": 7, "batch": 1}, {"texts": 3, "seq": 16, "batch": 2})
def clip() -> Any:
    """The text's features are those of its token of the highest number."""
    model = of("CLIP", "Model", text_config=dict(LAYERS, vocab_size=VOCABULARY, eos_token_id=2),
               vision_config=dict(LAYERS, image_size=64, patch_size=16), projection_dim=32)
    return calling(model, lambda m, ids, x, mask: m(input_ids=ids, pixel_values=x, attention_mask=mask)
                   .logits_per_image)


@exported(PIXELS, *BATCHES)
def siglip() -> Any:
    """Images are pooled by an attention of their own."""
    model = of("SiglipVision", "Model", **LAYERS, image_size=64, patch_size=16)
    return calling(model, lambda m, x: m(pixel_values=x).pooler_output)


@exported({"pixel_values": floats("batch", 3, 64, 64), "input_points": floats("batch", 1, 2, 2, scale=20.0)}, *BATCHES)
def sam() -> Any:
    """An image encoder with windows and relative positions, and masks for points."""
    model = of("Sam", "Model", vision_config=dict(
        hidden_size=64, output_channels=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8,
        window_size=4, global_attn_indexes=[1], mlp_dim=96, num_pos_feats=16),
        prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=8, mask_input_channels=4),
        mask_decoder_config=dict(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=2,
                                 iou_head_hidden_dim=32))
    return calling(model, _masks)


def _masks(model: Any, pixels: Any, points: Any) -> Any:
    out = model(pixel_values=pixels, input_points=points)
    return out.pred_masks, out.iou_scores


@exported({"pixel_values": floats("batch", 3, "height", "width")},
          {"batch": 1, "height": 48, "width": 64}, {"batch": 2, "height": 64, "width": 80})
def dinov2() -> Any:
    """Learned positions are resized to the image."""
    model = of("Dinov2", "Model", **LAYERS, image_size=64, patch_size=16)
    return calling(model, lambda m, x: m(pixel_values=x).last_hidden_state)


@exported(PIXELS, *BATCHES)
def swinv2() -> Any:
    """Cosine attention in shifted windows, biases from a small network."""
    model = of("Swinv2", "Model", image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
               window_size=4)
    return calling(model, lambda m, x: m(pixel_values=x).last_hidden_state)


@exported(PIXELS, *BATCHES)
def depth_anything() -> Any:
    """A transformer's features at several sizes, added up from coarse to fine."""
    import transformers

    model = of("DepthAnything", "ForDepthEstimation", backbone_config=transformers.Dinov2Config(
        **LAYERS, image_size=64, patch_size=16, out_features=["stage1", "stage2"], reshape_hidden_states=False),
        patch_size=16, reassemble_hidden_size=64, reassemble_factors=[2, 1], neck_hidden_sizes=[16, 32],
        fusion_hidden_size=16, head_in_index=-1, head_hidden_size=16)
    return calling(model, lambda m, x: m(pixel_values=x).predicted_depth)


@exported({"pixel_values": floats("batch", 4, 3, 32, 32)}, *BATCHES)
def video() -> Any:
    """Patches of space and time (VideoMAE)."""
    model = of("VideoMAE", "ForVideoClassification", **LAYERS, image_size=32, patch_size=8, num_frames=4,
               tubelet_size=2)
    return calling(model, lambda m, x: m(pixel_values=x).logits)
