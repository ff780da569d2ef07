"""Models of torchvision; its two common ones of 8 and 28 million weights at full size."""

from __future__ import annotations

from typing import Any

from exported.spec import calling, exported, floats

BATCHES = ({"batch": 1}, {"batch": 2})
IMAGES = {"image": floats("batch", 3, 64, 64)}
ANY_SIZE = {"image": floats("batch", 3, "height", "width")}
SIZES = ({"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 96, "width": 128})


@exported(ANY_SIZE, *SIZES)
def densenet121() -> Any:
    from torchvision.models import densenet121

    return densenet121(num_classes=10)


@exported({"image": floats("batch", 3, 224, 224)}, *BATCHES)
def swin_t() -> Any:
    """Windows of 49 keys, shifted."""
    from torchvision.models import swin_t

    return swin_t(num_classes=10)


@exported(IMAGES, *BATCHES)
def efficientnet_b0() -> Any:
    from torchvision.models import efficientnet_b0

    return efficientnet_b0(num_classes=10)


@exported(ANY_SIZE, *SIZES)
def shufflenet() -> Any:
    """Channels are shuffled by a reshape and a transpose."""
    from torchvision.models import shufflenet_v2_x0_5

    return shufflenet_v2_x0_5(num_classes=10)


@exported(IMAGES, *BATCHES)
def convnext() -> Any:
    """Convolutions of a channel each, norms with the channels last."""
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(32, 64, 1), CNBlockConfig(64, None, 2)], num_classes=10)


@exported(IMAGES, *BATCHES)
def maxvit() -> Any:
    """Attention in windows and over grids."""
    from torchvision.models import MaxVit

    return MaxVit(input_size=(64, 64), stem_channels=16, partition_size=4, block_channels=[16, 32],
                  block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0, num_classes=10)


@exported(ANY_SIZE, *SIZES)
def lraspp() -> Any:
    """Segmentation: what was pooled is resized to the image."""
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large

    model = lraspp_mobilenet_v3_large(num_classes=5, weights=None, weights_backbone=None)
    return calling(model, lambda m, x: m(x)["out"])
