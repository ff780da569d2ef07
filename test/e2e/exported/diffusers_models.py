"""Parts of diffusion models from configurations of diffusers."""

from __future__ import annotations

from typing import Any

from exported.spec import calling, exported, floats

SIZES = ({"batch": 1, "height": 16, "width": 24}, {"batch": 2, "height": 24, "width": 32})
BATCHES = ({"batch": 1}, {"batch": 2})
LATENT = {"sample": floats("batch", 4, "height", "width"), "timestep": floats("batch", scale=100.0)}
PROMPTED = {**LATENT, "prompt": floats("batch", 7, 32)}
CROSS: dict[str, Any] = dict(in_channels=4, block_out_channels=(16, 32), norm_num_groups=8, cross_attention_dim=32,
                             attention_head_dim=8, layers_per_block=1,
                             down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"))


def of(family: str, **config: Any) -> Any:
    import diffusers

    return getattr(diffusers, family)(**config)


@exported(LATENT, *SIZES)
def unet() -> Any:
    model = of("UNet2DModel", in_channels=4, out_channels=4, block_out_channels=(16, 32), norm_num_groups=8,
               layers_per_block=1, attention_head_dim=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
               up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return calling(model, lambda m, x, t: m(x, t, return_dict=False)[0])


@exported(PROMPTED, *SIZES)
def unet_prompted() -> Any:
    model = of("UNet2DConditionModel", **CROSS, out_channels=4, up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    return calling(model, lambda m, x, t, p: m(x, t, p, return_dict=False)[0])


@exported({"sample": floats("batch", 4, 16, 16), "timestep": floats("batch", scale=100.0),
           "prompt": floats("batch", 7, 32), "condition": floats("batch", 3, 32, 32)}, *BATCHES)
def controlnet() -> Any:
    model = of("ControlNetModel", **CROSS, conditioning_embedding_out_channels=(8, 16))
    for p in model.controlnet_down_blocks.parameters():
        p.data.normal_(std=0.1)         # these begin at zero
    return calling(model, _controls)


def _controls(model: Any, x: Any, t: Any, prompt: Any, condition: Any) -> Any:
    down, middle = model(x, t, prompt, condition, return_dict=False)
    return (*down, middle)


AUTOENCODER: dict[str, Any] = dict(block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4,
                                   layers_per_block=1, down_block_types=("DownEncoderBlock2D",) * 2,
                                   up_block_types=("UpDecoderBlock2D",) * 2)


@exported({"image": floats("batch", 3, "height", "width")}, *SIZES)
def autoencoder() -> Any:
    """To the mean of the latents and back."""
    return calling(of("AutoencoderKL", **AUTOENCODER),
                   lambda m, x: m.decode(m.encode(x).latent_dist.mode(), return_dict=False)[0])


@exported({"latent": floats("batch", 4, "height", "width")}, *SIZES)
def tiny_autoencoder() -> Any:
    model = of("AutoencoderTiny", encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16),
               num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1))
    return calling(model, lambda m, x: m.decode(x, return_dict=False)[0])


@exported({"latent": floats("batch", 4, 16, 16), "timestep": floats("batch", scale=100.0),
           "prompt": floats("batch", "seq", 32), "pooled": floats("batch", 24)},
          {"batch": 1, "seq": 5}, {"batch": 2, "seq": 11})
def sd3_transformer() -> Any:
    """Image and prompt attend to each other; norms are modulated."""
    model = of("SD3Transformer2DModel", sample_size=16, patch_size=2, in_channels=4, num_layers=2,
               attention_head_dim=16, num_attention_heads=4, joint_attention_dim=32, caption_projection_dim=64,
               pooled_projection_dim=24, out_channels=4, pos_embed_max_size=16)
    return calling(model, lambda m, x, t, p, v: m(x, p, v, t, return_dict=False)[0])
