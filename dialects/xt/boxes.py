"""Boxes that overlap."""

import numpy as np

from xcc.dialects.xt.fields import operand, optional
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.sort import order
from xcc.dialects.xt.types import TensorType


class BestBoxes(XtOp, name="best_boxes"):
    """Greedy non-maximum suppression: for each image and class the i32 numbers of the boxes that are kept, the highest
    score first, and -1 behind the last: [batch, classes, n].

    boxes [batch, n, 4] are y1, x1, y2, x2 (or x first); scores [batch, classes, n], of which ties go by number and NaN
    counts as the largest. In this order a box is kept, up to `most` (i64 scalar), where its intersection with each one
    kept before is at most `overlap` (scalar, of the boxes' type) of their union, and its score above `least` (scalar,
    of the scores' type), if there is one.
    """

    boxes = operand()
    scores = operand()
    most = operand()
    overlap = operand()
    least = optional()

    def infer(a: Attrs, boxes: TensorType, scores: TensorType, most: TensorType, overlap: TensorType,
              least: TensorType | None = None) -> TensorType:
        check_float(boxes)
        check_float(scores)
        if boxes.rank != 3 or boxes.shape[2] != 4 or scores.rank != 3 or not all(
                map(same_dims, boxes.shape[:2], (scores.shape[0], scores.shape[2]))):
            raise InferError(f"boxes {boxes} and scores {scores} are not [batch, n, 4] and [batch, classes, n]")
        wanted = [(most, "i64"), (overlap, boxes.dtype), *([(least, scores.dtype)] if least is not None else [])]
        for t, dtype in wanted:
            if t != TensorType((), dtype):
                raise InferError(f"a limit is {t}, not a scalar of {dtype}")
        return scores.with_dtype("i32")

    def evaluate(a: Attrs, boxes: Array, scores: Array, most: Array, overlap: Array,
                 least: Array | None = None) -> Array:
        wide = np.float64 if boxes.dtype == np.float64 else np.float32
        boxes, overlap = boxes.astype(wide), overlap.astype(wide)
        ranked = order(scores, 2, True)
        out = np.full(scores.shape, -1, np.int32)
        for image, label in np.ndindex(*scores.shape[:2]):
            kept: list[int] = []
            for at in ranked[image, label]:
                if len(kept) >= most:
                    break
                if least is not None and not scores[image, label, at] > least:
                    continue
                if not (_overlaps(boxes[image, at], boxes[image, kept]) > overlap).any():
                    kept.append(int(at))
            out[image, label, :len(kept)] = kept
        return out


def _overlaps(box: Array, others: Array) -> Array:
    """Intersection over union of a box [4] and others [k, 4]: 0 where the union is empty."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.maximum(high - low, 0).prod(1)
    union = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - both
    return np.where(union > 0, both / np.where(union > 0, union, 1), 0)
