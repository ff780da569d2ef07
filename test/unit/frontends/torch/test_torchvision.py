"""Ops of torchvision, whose library need not be there: their schemas are declared here, with what they mean."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch_programs import check

SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
                 "int sampling_ratio, bool aligned) -> Tensor",
    "deform_conv2d": "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
                     "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
                     "SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
}


def nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Box by box, the best first."""
    kept: list[int] = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if all(_overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _overlap(a: Any, b: Any) -> float:
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    both = (high - low).clamp(min=0).prod()
    return float(both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both))


def roi_align(x: Any, rois: Any, scale: float, height: int, width: int, samples: int, aligned: bool) -> Any:
    """Means of bilinear reads inside the image, by a grid for each box."""
    out = []
    for box in rois:
        x1, y1, x2, y2 = (box[1:] * scale - (0.5 if aligned else 0.0)).tolist()
        w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        ys, xs = (start + (torch.arange(n * samples) + 0.5) * size / (n * samples)
                  for start, size, n in ((y1, h, height), (x1, w, width)))
        rows, columns = x.shape[2:]
        grid = torch.stack(torch.meshgrid(xs * 2 / (columns - 1) - 1, ys * 2 / (rows - 1) - 1, indexing="xy"), -1)
        read = F.grid_sample(x[int(box[0])][None], grid[None], align_corners=True)
        out.append(F.avg_pool2d(read, samples)[0])
    return torch.stack(out)


def deform_conv2d(x: Any, weight: Any, offset: Any, mask: Any, bias: Any, *rest: int) -> Any:
    """Tap by tap, each a grid of places in the image; of one group."""
    (rows, columns), (height, width) = x.shape[2:], offset.shape[2:]
    out = bias[:, None, None]
    for tap, (i, j) in enumerate(torch.cartesian_prod(*map(torch.arange, weight.shape[2:])).tolist()):
        ys = torch.arange(height)[:, None] * rest[0] - rest[2] + i * rest[4] + offset[:, 2 * tap]
        xs = torch.arange(width) * rest[1] - rest[3] + j * rest[5] + offset[:, 2 * tap + 1]
        read = F.grid_sample(x, torch.stack([xs * 2 / (columns - 1) - 1, ys * 2 / (rows - 1) - 1], -1),
                             align_corners=True)
        out = out + torch.einsum("nchw,oc->nohw", read * (mask[:, tap:tap + 1] if rest[8] else 1), weight[:, :, i, j])
    return out


def _fake_nms(boxes: Any, scores: Any, threshold: float) -> Any:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _fake_roi_align(x: Any, rois: Any, scale: float, height: int, width: int, *rest: Any) -> Any:
    return x.new_empty(rois.shape[0], x.shape[1], height, width)


def _fake_deform_conv2d(x: Any, weight: Any, offset: Any, *rest: Any) -> Any:
    return x.new_empty(x.shape[0], weight.shape[0], *offset.shape[2:])


if not hasattr(torch.ops.torchvision, "nms"):
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in SCHEMAS.items():
        LIBRARY.define(name + schema)
        torch.library.impl(f"torchvision::{name}", "CPU", globals()[name], lib=LIBRARY)
        torch.library.register_fake(f"torchvision::{name}", globals()[f"_fake_{name}"], lib=LIBRARY)


class Kept(torch.nn.Module):
    """Boxes of a corner and a size."""

    def forward(self, corners: Any, sizes: Any, scores: Any) -> Any:
        boxes = torch.cat([corners, corners + sizes], 1)
        return boxes[torch.ops.torchvision.nms(boxes, scores, 0.4)]


def test_boxes_that_overlap_less() -> None:
    def given(n: int) -> tuple[Any, ...]:
        return torch.rand(n, 2) * 20, torch.rand(n, 2) * 15 + 1, torch.rand(n)

    torch.manual_seed(0)
    boxes = torch.export.Dim("boxes", max=1000)
    args = given(25)
    assert 5 < len(Kept()(*args)) < 20
    check(Kept(), args, given(7), given(1), given(0), dynamic_shapes=({0: boxes},) * 3)


class Pooled(torch.nn.Module):
    def forward(self, x: Any, rois: Any) -> Any:
        op = torch.ops.torchvision.roi_align
        return op(x, rois, 0.5, 3, 2, 2, True), op(x, rois, 0.25, 2, 2, 1, False)


def test_regions_of_images() -> None:
    torch.manual_seed(0)
    low = torch.rand(5, 2) * 4 + 2
    rois = torch.cat([torch.tensor([0.0, 1, 1, 0, 1])[:, None], low, low + torch.rand(5, 2) * 8], 1)
    check(Pooled(), (torch.randn(2, 3, 9, 10), rois))


class Deformed(torch.nn.Module):
    def forward(self, x: Any, w: Any, offset: Any, mask: Any, bias: Any) -> Any:
        op = torch.ops.torchvision.deform_conv2d
        return [op(x, w, offset, mask, bias, 2, 1, 1, 0, 1, 2, 1, 1, masked) for masked in (True, False)]


def test_taps_that_are_moved() -> None:
    torch.manual_seed(0)
    check(Deformed(), (torch.randn(2, 3, 9, 8), torch.randn(4, 3, 3, 2), torch.randn(2, 12, 5, 6),
                       torch.rand(2, 6, 5, 6), torch.randn(4)))
