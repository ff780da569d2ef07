"""Comparison of a run's outputs with another's, by a tolerance that follows from what the model computed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from xcc.runtime.artifact import Artifact

__all__ = ["Tolerance", "compare", "computed_in", "stated"]

Array = np.ndarray[Any, Any]

SHARES = {"f64": 1e-10, "f32": 1e-4, "tf32": 1e-2, "f16": 2e-2, "i8": 2e-2, "bf16": 1e-1}
"""Least precise type of a model's compute -> largest difference, as a share of an output's largest magnitude.

About 1000 (f32) and 20 (f16, tf32, bf16) roundings of the type: sums of up to some thousand terms are added up in f32
whatever the type, so depth counts, and deep networks of f16 differ from f32 by up to 18 roundings. A quantised model
has steps of 1/127.
"""


@dataclass(frozen=True)
class Tolerance:
    """``absolute + relative * |wanted| + share * max |wanted|``; `name` says what `share` stands for."""

    relative: float = 0.0
    absolute: float = 0.0
    share: float = 0.0
    name: str = ""

    def of(self, wanted: Array) -> Array:
        """The largest difference allowed at each element of `wanted` (f64)."""
        size = np.abs(wanted)
        finite = size[np.isfinite(size)]
        largest = float(finite.max()) if finite.size else 0.0
        return np.asarray(self.absolute + self.share * largest + self.relative * np.where(np.isfinite(size), size, 0.0))


def computed_in(artifact: Artifact) -> set[str]:
    """Float types (and "i8") that a compiled model computes in: of its buffers, and of its option precision."""
    types = {b.dtype.removeprefix("u") for b in artifact.program.buffers if b.kind != "input"}
    return (types | {str(artifact.manifest.get("options", {}).get("precision", ""))}) & set(SHARES)


def stated(types: set[str]) -> Tolerance:
    """The tolerance of models that compute in `types`: that of the least precise one, at least f32's."""
    name = max(types | {"f32"} if types != {"f64"} else types, key=lambda t: SHARES[t])
    return Tolerance(share=SHARES[name], name=name)


def compare(name: str, got: Array, wanted: Array, tolerance: Tolerance) -> tuple[bool, str]:
    """Whether `got` is `wanted` within `tolerance`, and a line about it.

    NaN and infinities must be where `wanted` has them. Integers and booleans have no `share`: unless an absolute or
    relative tolerance is given they must be equal, also beyond the 53 bits of a float.
    """
    if got.shape != wanted.shape:
        return False, f"{name}: shape {list(got.shape)} against {list(wanted.shape)}"
    if not got.size:
        return True, f"{name}: both empty"
    if wanted.dtype.kind in "iub":
        tolerance = Tolerance(tolerance.relative, tolerance.absolute)
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.where((g == w) | (np.isnan(g) & np.isnan(w)), 0.0, np.abs(g - w))
    difference = np.nan_to_num(difference, nan=np.inf)
    if got.dtype.kind in "iub" and wanted.dtype.kind in "iub":
        difference = np.where(got == wanted, 0.0, np.maximum(difference, 1.0))
    allowed = tolerance.of(w)
    outside = int((difference > allowed).sum())
    worst = np.unravel_index(int(np.argmax(difference)), g.shape)
    line = (f"{name}: largest difference {difference[worst]:.3g} at {list(map(int, worst))}: "
            f"{_number(got[worst])} against {_number(wanted[worst])}")
    if tolerance.share:
        line += f" (allowed {allowed[worst]:.3g}: {tolerance.share:g} of the largest, for {tolerance.name})"
    return not outside, line + (f"; {outside} of {g.size} are outside the tolerance" if outside else "")


def _number(value: Any) -> str:
    return str(value) if value.dtype.kind in "iub" else f"{float(value):.6g}"
