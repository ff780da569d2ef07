"""The compiler starts while torch still traces, for a graph that has not been met: about a second, on another core."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

import torch

from xcc.cache import cache
from xcc.frontends.torch.partition import target_for

__all__ = ["start_compiler"]

SUFFIX = ".seen"        # of empty files beside the artifacts in the cache


def start_compiler(module: torch.fx.GraphModule, inputs: Sequence[Any], options: Any) -> None:
    """Has a process import what compiling needs, unless Dynamo's graph was compiled before for such inputs.

    options: the BackendOptions, which is part of what has been met; without its cache nothing has.
    """
    from xcc.process.isolation import expect

    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    device = next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))
    target = target_for(device)
    if target and not (options.cache and _is_known(module, tensors, options)):
        expect(target, ".pt2")


def _is_known(module: torch.fx.GraphModule, tensors: Sequence[Any], options: Any) -> bool:
    """Whether the graph has been met; from now on it has."""
    h = hashlib.blake2b(digest_size=20)
    for part in (cache.compiler_version(), str(getattr(module, "code", module)), repr(options),
                 *(f"{t.dtype} {t.device} {tuple(t.shape)} {t.requires_grad}" for t in tensors),
                 str(torch.is_grad_enabled())):
        h.update(part.encode() + b"\0")
    path = cache.folder() / "models" / (h.hexdigest() + SUFFIX)
    known = path.exists()
    with contextlib.suppress(OSError):      # a full or read-only disk is no error
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return known
