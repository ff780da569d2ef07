"""A captured program and its weights, in memory and on disk for another process.

Nothing here needs torch or MLIR to be imported, nor numpy before there are weights.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import UserError
from xcc.frontends.torch.graph import TorchGraph

if TYPE_CHECKING:
    import numpy as np

    from xcc.weights import WeightStore

__all__ = ["StoredProgram", "TorchProgram", "captured", "is_program"]


@dataclass
class TorchProgram:
    """A graph and the values of its parameters, buffers and constants: ``Input.target`` -> array."""

    graph: TorchGraph
    weights: dict[str, np.ndarray[Any, Any]]

    def key(self) -> str:
        """A hash of the graph and of the weights' bytes."""
        store, names = self.store()
        h = hashlib.sha256(self.graph.digest().encode())
        for target, name in sorted(names.items()):
            h.update(f"{target}={name}".encode() + b"\0")
        for name in store:
            h.update(store.digest(name).encode())
        return h.hexdigest()

    def store(self) -> tuple[WeightStore, dict[str, str]]:
        """Each array once, and target -> its name there."""
        from xcc.weights import WeightStore

        store = WeightStore()
        names: dict[str, str] = {}
        known: dict[int, str] = {}
        for target, array in self.weights.items():
            if id(array) not in known:
                known[id(array)] = store.add(target, array)
            names[target] = known[id(array)]
        return store, names

    def save(self, path: Path) -> StoredProgram:
        """Writes the weights to `path`, for a process that gets the rest by pickle."""
        from xcc.weight_files import write_weights

        store, names = self.store()
        write_weights(path, store)
        return StoredProgram(self.graph, names, str(path))


@dataclass(frozen=True)
class StoredProgram:
    """A program whose weights lie in the safetensors file `path`; `names`: target -> entry."""

    graph: TorchGraph
    names: dict[str, str]
    path: str

    def load(self) -> TorchProgram:
        """The program, its weights mapped from the file."""
        from xcc.weight_files import read_weights

        store = read_weights(self.path)
        return TorchProgram(self.graph, {target: store[name] for target, name in self.names.items()})


def is_program(model: Any) -> bool:
    """Whether `model` is a PyTorch program: a .pt2 file's path, an object of torch's classes, or a captured one."""
    if isinstance(model, str | Path):
        return Path(model).suffix == ".pt2"
    return isinstance(model, TorchProgram) \
        or any(c.__module__.partition(".")[0] == "torch" for c in type(model).__mro__)


def captured(model: Any) -> TorchProgram:
    """`model` as plain data; torch is imported only for what is not."""
    if isinstance(model, TorchProgram):
        return model
    try:
        from xcc.frontends.torch.capture import capture_export
    except ModuleNotFoundError as e:
        raise UserError(f"reading a PyTorch program needs the package '{e.name}': pip install xcc[torch]") from None
    return capture_export(model)
