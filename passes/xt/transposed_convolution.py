"""Transposed convolutions become convolutions of what is there, whose results are moved between each other.

A convolution of an input spread by s multiplies mostly zeros: of its k taps each result meets k / s. Which ones depends
on the result's place modulo s, its phase. So the results of all phases at a place are the outputs of one convolution
with ceil(k / s) taps and s times the outputs (Shi et al., "Is the deconvolution layer the same as a convolutional
layer?", 2016), or of a product where windows do not overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, ceildiv, evaluate, floordiv, is_static, product
from xcc.targets.base import Chip

RATE = 0.5      # of a GPU's peak, at which its matrix instructions multiply
UNKNOWN = 32    # a size that only a run knows
SPARED = 16     # of the multiplications with one input a group: outputs that share an input are no lanes of a vector


@register_pass
class TransposedConvolution(Pass):
    """Rewrites NHWC convolutions with `lhs_dilation`, without strides and dilations of the filter.

    Depthwise ones stay as they are, except where 15 of 16 multiplications are by zeros. A filter of unknown size is
    taken to meet every phase: filled up to whole steps.

    Before: ``xt.convolution(x, w) {lhs_dilation = [s, s], low = [l, l], high = [h, h]}``, w: [k, k, I, O]
    After:  ``y = xt.convolution(x, w')`` with w': [ceil(k/s), ceil(k/s), I, s*s*O], or ``xt.dot_general(x, w')`` where
            k <= s; y's s x s parts moved between the spatial dims by a transpose, and the result cut from that
    """

    weighed: bool = False       # against the time in which the results are moved, as on GPUs

    def run(self, module: Module, ctx: PassContext) -> None:
        chip = ctx.chip if self.weighed else None
        rewrite(module, {"convolution": lambda op: _by_phases(op) if _spreads(op) and (
            chip is None or _is_faster(op, chip)) else None})


def _spreads(op: Operation) -> bool:
    a = xt.attrs_of(op)
    if (a.layout, a.filter) != ("NHWC", "HWIO") or max(a.lhs_dilation, default=1) == 1:
        return False
    w = xt.shape_of(op.operands[1])
    if 0 in (*w, *xt.shape_of(op.operands[0])):
        return False
    if any(v != 1 for v in (*a.strides, *a.rhs_dilation)):
        return False
    spared = math.prod(_phases(s, k) for s, k in zip(a.lhs_dilation, w, strict=False))
    return a.groups == 1 or w[-2] != 1 or spared >= SPARED


def _phases(step: int, kernel: Dim) -> int:
    """The phases that meet a tap, as far as is known."""
    return min(kernel, step) if isinstance(kernel, int) else step


def _is_faster(op: Operation, chip: Chip) -> bool:
    """Whether multiplications by zeros take longer than moving the results of all phases, where both are known."""
    a = xt.attrs_of(op)
    if not is_static((*xt.shape_of(op.operands[1]), *a.low, *a.high)):
        return False
    axes, kind, w = _axes(op), xt.TensorType.of(op.results[0]), xt.shape_of(op.operands[1])
    batch, *places, outputs = (d if isinstance(d, int) else UNKNOWN for d in kind.shape)
    phased = [floordiv(n + v.cut + v.taps, v.step) * v.phases for n, v in zip(places, axes, strict=True)]
    results = batch * outputs
    before = _number(results, *places, *w[:-1])
    after = _number(results, *phased, *(v.taps for v in axes), w[-2])
    rates = dict(chip.flops)
    rate = RATE * rates.get("f16" if xt.width(kind.dtype) < 32 else "f32", 1e12)
    moved = 2 * _number(results, *phased) * xt.width(kind.dtype) / 8 / chip.bandwidth
    return 2 * (before - after) / rate > moved + chip.launch_seconds


def _number(*sizes: Dim) -> int:
    """The product of known sizes."""
    return evaluate(product(sizes), {})


def _axes(op: Operation) -> list[_Axis]:
    a = xt.attrs_of(op)
    kernel = xt.shape_of(op.operands[1])[:-2]
    return [_Axis.of(*sizes) for sizes in zip(a.lhs_dilation, kernel, a.low, a.high, strict=True)]


@dataclass(frozen=True)
class _Axis:
    """A spatial dim: results `phase` + step * q - cut, for phases below `phases`, are what `taps` taps at q give.

    The phases from `phases` to `step` meet no tap. low, high: the padding of the convolution that is left.
    """

    step: int
    phases: int
    taps: Dim
    cut: Dim
    low: Dim
    high: Dim

    @staticmethod
    def of(step: int, kernel: Dim, low: Dim, high: Dim) -> _Axis:
        """Of a window of `kernel` over an input spread by `step` between `low` and `high` zeros.

        Result o reads tap j where o + j - low is a multiple of `step`. Where low + cut is phases - 1 modulo `step`, all
        phases of place q read from the same input on, as few taps as can be.
        """
        phases, taps = _phases(step, kernel), ceildiv(kernel, step)
        front = ceildiv(low - phases + 1, step)
        cut = phases - 1 - low + step * front
        places = floordiv(low + high - kernel + 1 + cut, step)  # more than inputs, rounded up: with 1 - step + step - 1
        return _Axis(step, phases, taps, cut, front, places + taps - 1 - front)


def _by_phases(op: Operation) -> Value:
    a = xt.attrs_of(op)
    x, w = op.operands
    inputs, axes = xt.shape_of(w)[-2], _axes(op)
    filters = _filters(w, axes, a.groups)
    low, high = tuple(v.low for v in axes), tuple(v.high for v in axes)
    if a.groups == 1 and all(v.taps == 1 for v in axes) and not any((*low, *high)):
        flat = xt.reshape(filters, shape=(inputs, xt.shape_of(filters)[-1]))
        y = xt.dot_general(x, flat, lhs_contract=(len(axes) + 1,), rhs_contract=(0,), dtype=a.dtype,
                           precision=a.precision)
    else:
        y = xt.convolution(x, filters, layout="NHWC", filter="HWIO", low=low, high=high, groups=a.groups, dtype=a.dtype,
                           precision=a.precision)
    return _between(y, axes, a.groups, xt.shape_of(op.results[0]))


def _filters(w: Value, axes: list[_Axis], groups: int) -> Value:
    """[k..., I, G*O] as [taps..., I, G*phases...*O]: tap u of a phase p is w's step * u + phases - 1 - p."""
    n = len(axes)
    *kernel, inputs, outputs = xt.shape_of(w)
    more = tuple(v.taps * v.phases - k for v, k in zip(axes, kernel, strict=True))
    if any(more):
        w = xt.pad(w, low=(0,) * (n + 2), high=(*more, 0, 0), value=0.0)
    split = [d for v in axes for d in (v.taps, v.phases)]
    w = xt.reshape(w, shape=(*split, inputs, groups, floordiv(outputs, groups)))
    w = xt.reverse(w, axes=tuple(range(1, 2 * n, 2)))
    w = xt.transpose(w, perm=(*range(0, 2 * n, 2), 2 * n, 2 * n + 1, *range(1, 2 * n, 2), 2 * n + 2))
    return xt.reshape(w, shape=(*(v.taps for v in axes), inputs, product(v.phases for v in axes) * outputs))


def _between(y: Value, axes: list[_Axis], groups: int, shape: tuple[Dim, ...]) -> Value:
    """[N, Q..., G*phases...*O] as [N, H..., G*O] of `shape`."""
    n = len(axes)
    batch, *places, _ = xt.shape_of(y)
    outputs = shape[-1]
    y = xt.reshape(y, shape=(batch, *places, groups, *(v.phases for v in axes), floordiv(outputs, groups)))
    y = xt.transpose(y, perm=(0, *(d for i in range(n) for d in (1 + i, 2 + n + i)), 1 + n, 2 + 2 * n))
    unmet = tuple(v.step - v.phases for v in axes)
    if any(unmet):
        high = (0, *(d for v in unmet for d in (0, v)), 0, 0)
        y = xt.pad(y, low=(0,) * len(high), high=high, value=0.0)
    spread = tuple(q * v.step for q, v in zip(places, axes, strict=True))
    y = xt.reshape(y, shape=(batch, *spread, outputs))
    if (batch, *spread, outputs) == tuple(shape):
        return y
    cut = (0, *(v.cut for v in axes), 0)
    return xt.slice(y, starts=cut, limits=tuple(c + d for c, d in zip(cut, shape, strict=True)))
