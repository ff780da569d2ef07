"""Weights live beside the module, never in IR text: a name maps to an array that may be memory-mapped or lazy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xcc.diagnostics import UserError


class WeightStore:
    """Name -> numpy array. A lazy entry is a function called once, at first use."""

    def __init__(self) -> None:
        self._entries: dict[str, np.ndarray[Any, Any] | Callable[[], np.ndarray[Any, Any]]] = {}
        self.missing: dict[str, str] = {}   # names that a module uses without a value here: what to say of them
        self.files: list[Path] = []         # what a frontend has mapped for them, beside the model's own file

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name in self.missing and name not in self._entries:
            raise UserError(self.missing[name])
        entry = self._entries[name]
        if callable(entry):
            entry = self._entries[name] = entry()
        return entry

    def add(self, name: str, value: np.ndarray[Any, Any] | Callable[[], np.ndarray[Any, Any]]) -> str:
        """Stores `value` under `name`, or under ``name.1``, ``name.2``... when taken; returns the name used."""
        unique, n = name, 0
        while unique in self._entries:
            n += 1
            unique = f"{name}.{n}"
        self._entries[unique] = value
        return unique

    def remove(self, name: str) -> None:
        del self._entries[name]

    def digest(self, name: str) -> str:
        """A hash of the entry's dtype, shape and bytes."""
        a = np.asarray(self[name], order="C")
        h = hashlib.blake2b(f"{a.dtype}{a.shape}".encode(), digest_size=16)
        h.update(a.view(np.uint8).reshape(-1).data if a.size else b"")
        return h.hexdigest()
