"""Regions of interest and boxes."""

from __future__ import annotations

from typing import Any

from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op


@onnx_op("RoiAlign", since=10)
def roi_align(cx: Context) -> Any:
    """Y = RoiAlign(X, rois, batch_indices); before opset 16 coordinates are not shifted by half a pixel."""
    shifted = cx.opset >= 16 and cx.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return xt.roi_align(cx[0], cx[1], cx[2], mode=cx.attr("mode", "avg"), height=cx.attr("output_height", 1),
                        width=cx.attr("output_width", 1), sampling_ratio=cx.attr("sampling_ratio", 0),
                        scale=cx.attr("spatial_scale", 1.0), half_pixel=shifted)
