"""Compiles PP-OCRv6 text detection for this CPU, finds the text in a picture that it draws, cross-compiles for GPUs.

    python demo/detect_text.py --output build/demo

The model is a file in the wheel `rapidocr` (installed without its requirements); nothing of its code is used.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import xcc

Array = np.ndarray[Any, Any]
Box = tuple[int, int, int, int]
LINES = ("xcc compiles this model", "for CPUs, NVIDIA and AMD", "without a vendor library", "2026")
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def model_file() -> Path:
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo needs the model in the wheel rapidocr: pip install --no-deps rapidocr")
    return Path(spec.submodule_search_locations[0]) / "models" / "PP-OCRv6_det_small.onnx"


def draw_picture(size: int = 640) -> Image.Image:
    """A picture with four lines of text on a shaded ground."""
    shade = np.linspace(150, 250, size, dtype=np.uint8)
    picture = Image.fromarray(np.stack([np.tile(shade, (size, 1))] * 3, axis=-1))
    draw = ImageDraw.Draw(picture)
    for i, line in enumerate(LINES):
        font = ImageFont.load_default(size=34 + 6 * i)
        draw.text((40 + 30 * i, 80 + 130 * i), line, fill=(20, 30 * i, 60), font=font)
    return picture


def to_input(picture: Image.Image) -> Array:
    """[1, 3, height, width], normalised as the model was trained."""
    pixels = np.asarray(picture, np.float32)[..., ::-1] / 255
    return np.ascontiguousarray(((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None])


def find_boxes(probability: Array, threshold: float = 0.3, sure: float = 0.5, grow: float = 1.6) -> list[Box]:
    """Boxes (left, top, right, bottom) around connected areas over `threshold` whose mean is over `sure`.

    The model marks shrunken text regions: a box is grown by area * grow / perimeter on each side (DB, Liao 2020).
    """
    boxes = []
    for rows, columns in components(probability > threshold):
        if len(rows) < 30 or probability[rows, columns].mean() < sure:
            continue
        top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
        height, width = bottom - top, right - left
        by = int(height * width * grow / (2 * (height + width)))
        h, w = probability.shape
        box = (max(0, left - by), max(0, top - by), min(w, right + by), min(h, bottom + by))
        boxes.append((int(box[0]), int(box[1]), int(box[2]), int(box[3])))
    return sorted(boxes, key=lambda b: b[1])


def components(mask: Array) -> list[tuple[Array, Array]]:
    """The pixels (rows, columns) of each 4-connected area: labels spread until nothing changes, along whole runs."""
    labels = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        spread = labels
        for view in (lambda a: a, lambda a: a[::-1], lambda a: a.T, lambda a: a.T[::-1]):
            spread = _sweep(spread.copy(), mask, view)
        if np.array_equal(spread, labels):
            break
        labels = spread
    return [np.nonzero(labels == n) for n in np.unique(labels) if n]


def _sweep(labels: Array, mask: Array, view: Callable[[Array], Array]) -> Array:
    """One pass over the rows of `view`: a pixel takes the larger label of its own and the one above."""
    rows, inside = view(labels), view(mask)
    for i in range(1, len(rows)):
        rows[i] = np.where(inside[i], np.maximum(rows[i], rows[i - 1]), 0)
    return labels


def median_ms(call: Callable[[], Any], runs: int = 10) -> float:
    call()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[runs // 2] * 1e3


def reference(path: Path, x: Array) -> tuple[Array, float] | None:
    """onnxruntime's output and time; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return session.run(None, feed)[0], median_ms(lambda: session.run(None, feed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="build/demo", type=Path, help="folder for the picture and the artifacts")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    path = model_file()

    begin = time.perf_counter()
    model = xcc.compile(path, target="cpu")
    print(f"compiled {path.name} for {model.chip} in {time.perf_counter() - begin:.1f} s")
    size = model.save(args.output / "detect-cpu.xcm")
    print(f"{args.output / 'detect-cpu.xcm'}: {size / 1e6:.1f} MB, of that {weight_bytes(model) / 1e6:.1f} MB weights")

    picture = draw_picture()
    x = to_input(picture)
    probability = model(x)
    boxes = find_boxes(probability[0, 0])
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        draw.rectangle(box, outline=(220, 30, 30), width=3)
    picture.save(args.output / "boxes.png")
    print(f"found {len(boxes)} lines of text, see {args.output / 'boxes.png'}")

    print(f"one run takes {median_ms(lambda: model(x)):.1f} ms")
    expected = reference(path, x)
    wrong = len(boxes) != len(LINES)
    if expected is not None:
        difference = float(np.abs(probability - expected[0]).max())
        wrong |= not difference < 1e-3
        print(f"onnxruntime takes {expected[1]:.1f} ms; largest difference of the outputs: {difference:.2e}")

    for target in ("nvptx", "amdgcn"):
        begin = time.perf_counter()
        gpu = xcc.compile(path, target=target)
        size = gpu.save(args.output / f"detect-{target}.xcm")
        print(f"cross-compiled for {target} {gpu.chip} in {time.perf_counter() - begin:.1f} s: {size / 1e6:.1f} MB, "
              f"{len(gpu.artifact.manifest['kernels'])} kernels, {(size - weight_bytes(gpu)) / 1e6:.2f} MB of code")
    if wrong:
        print("the demo did not find what it drew, or differs from onnxruntime", file=sys.stderr)
    return int(wrong)


def weight_bytes(model: Any) -> int:
    return sum(w.nbytes for w in model.artifact.weights.values())


if __name__ == "__main__":
    sys.exit(main())
