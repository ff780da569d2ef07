"""What a model of the table is: how it is built, what it is given, and at which sizes it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int | str, ...]
Build = Callable[[], Any]


@dataclass(frozen=True)
class Given:
    """An input: its shape, with names for free dims, and how its values are drawn from that shape."""

    shape: Shape
    values: Callable[[np.random.Generator, tuple[int, ...]], Array]

    def draw(self, rng: np.random.Generator, sizes: Mapping[str, int]) -> Array:
        """Values at these sizes of the free dims."""
        return self.values(rng, tuple(sizes[d] if isinstance(d, str) else d for d in self.shape))


def floats(*shape: int | str, scale: float = 1.0) -> Given:
    """Normal random numbers."""
    return Given(shape, lambda rng, s: (rng.standard_normal(s) * scale).astype(np.float32))


def tokens(vocabulary: int, *shape: int | str) -> Given:
    """Random tokens; 0 and 1 are left to padding and ends."""
    return Given(shape, lambda rng, s: rng.integers(2, vocabulary, s))


def lengths_mask(*shape: int | str) -> Given:
    """Rows of ones, then zeros: the first row is full, the others have random lengths from 1."""
    def draw(rng: np.random.Generator, s: tuple[int, ...]) -> Array:
        lengths = np.concatenate([[s[1]], rng.integers(1, s[1] + 1, s[0] - 1)])
        return (np.arange(s[1]) < lengths[:, None]).astype(np.int64)

    return Given(shape, draw)


def ones_mask(*shape: int | str) -> Given:
    """A mask that hides nothing."""
    return Given(shape, lambda rng, s: np.ones(s, np.int64))


@dataclass(frozen=True)
class Exported:
    """A model of the table.

    Attributes:
        name: of its folder and its row.
        library: where its configuration comes from.
        build: gives the module of torch, which takes the inputs in their order and returns tensors.
        inputs: by name.
        cases: sizes of the free dims; every dim differs between the first two. It is exported at those of the last.
    """

    name: str
    library: str
    build: Build
    inputs: Mapping[str, Given]
    cases: tuple[Mapping[str, int], ...]

    def feeds(self, case: int) -> dict[str, Array]:
        """The inputs of a case, the same ones each time."""
        rng = np.random.default_rng(case + 1)
        return {name: given.draw(rng, self.cases[case]) for name, given in self.inputs.items()}


TABLE: dict[str, Exported] = {}
"""All models by name, once the modules that define them are imported."""


def exported(inputs: Mapping[str, Given], *cases: Mapping[str, int]) -> Callable[[Build], Build]:
    """Puts a model into the table: the decorated function builds it, and gives it its name."""
    def add(build: Build) -> Build:
        name = build.__name__
        if name in TABLE:
            raise ValueError(f"two models are named {name}")
        library = build.__module__.rsplit(".", 1)[-1].partition("_")[0]
        TABLE[name] = Exported(name, library, build, inputs, cases or ({},))
        return build

    return add


def calling(model: Any, call: Callable[..., Any]) -> Any:
    """A module of torch whose positional inputs go through ``call(model, *inputs)``."""
    import torch

    class Calling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return call(self.model, *inputs)

    return Calling()
