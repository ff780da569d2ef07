"""Image models of timm, at few layers and channels."""

from __future__ import annotations

from typing import Any

from exported.spec import exported, floats

BATCHES = ({"batch": 1}, {"batch": 3})
IMAGES = {"image": floats("batch", 3, 64, 64)}
ANY_SIZE = {"image": floats("batch", 3, "height", "width")}
SIZES = ({"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 96, "width": 128})


def of(name: str, **config: Any) -> Any:
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **config)


@exported(IMAGES, *BATCHES)
def mixer() -> Any:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(num_classes=10, img_size=64, patch_size=16, num_blocks=2, embed_dim=64)


@exported(IMAGES, *BATCHES)
def nfnet() -> Any:
    """Convolutions whose weights are normed."""
    return of("nf_resnet26")


@exported(ANY_SIZE, *SIZES)
def pvt() -> Any:
    """Attention over pooled keys, convolutions inside the MLP."""
    return of("pvt_v2_b0", depths=(1, 1, 1, 1))


@exported(ANY_SIZE, *SIZES)
def ghostnet() -> Any:
    return of("ghostnet_050")


@exported(IMAGES, *BATCHES)
def levit() -> Any:
    """Norms of batches inside attention, whose biases are gathered."""
    return of("levit_128s", img_size=64, embed_dim=(32, 48, 64), depth=(1, 1, 1), num_heads=(2, 3, 4), key_dim=8)


@exported(IMAGES, *BATCHES)
def beit() -> Any:
    """Relative positions are gathered from a table."""
    return of("beit_base_patch16_224", img_size=64, embed_dim=64, depth=2, num_heads=4)


@exported(IMAGES, *BATCHES)
def volo() -> Any:
    """Outlook attention: windows are folded back."""
    from timm.models.volo import VOLO

    return VOLO([1, 1, 1, 1], img_size=64, num_classes=10, embed_dims=[32, 64, 64, 64], num_heads=[2, 4, 4, 4],
                outlook_attention=(True, False, False, False), downsamples=(True, False, False, False))


@exported(IMAGES, *BATCHES)
def xcit() -> Any:
    """Attention between channels."""
    return of("xcit_nano_12_p16_224", img_size=64, depth=2, embed_dim=64)


@exported(ANY_SIZE, *SIZES)
def hrnet() -> Any:
    """Branches of several sizes that exchange what they have."""
    return of("hrnet_w18_small")
