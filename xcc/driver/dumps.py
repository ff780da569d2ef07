"""``--dump-stages=DIR``: the module after each stage as ``NN-stage.mlir``, weights beside it, to go on from there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from xcc._mlir import Context, Module, ir
from xcc.diagnostics import UserError
from xcc.driver.sources import STAGE_ATTRIBUTE
from xcc.driver.split import join_kernels
from xcc.weight_files import write_weights
from xcc.weights import WeightStore

__all__ = ["Dumper", "stage_text"]


class Dumper:
    """Writes stages into `folder`, numbered by their place in `stages`; does nothing when `folder` is empty."""

    def __init__(self, folder: str, stages: tuple[str, ...]) -> None:
        self.stages = stages
        self.folder = Path(folder) if folder else None
        self._weights: tuple[frozenset[str], Path] | None = None
        if self.folder:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise UserError(f"{folder}: cannot be made a folder: {e.strerror}") from None

    def module(self, stage: str, module: Module, weights: WeightStore) -> None:
        if self.folder:
            self._write(stage, stage_text(module, stage), weights)

    def kernels(self, main: str, kept: Mapping[str, Mapping[str, str]], weights: WeightStore, context: Context) -> None:
        """`kept` is kernel -> stage -> text."""
        for stage in self.stages if self.folder else ():
            texts = {name: by_stage[stage] for name, by_stage in kept.items() if stage in by_stage}
            if texts:
                self._write(stage, join_kernels(main, texts, stage, context), weights)

    def text(self, stage: str, text: str, weights: WeightStore | None = None) -> None:
        """The text of a stage; without `weights`, of a program that has none."""
        if self.folder:
            self._write(stage, text, WeightStore() if weights is None else weights)

    def _write(self, stage: str, text: str, weights: WeightStore) -> None:
        assert self.folder is not None
        path = self.folder / f"{self.stages.index(stage):02}-{stage}.mlir"
        path.write_text(text)
        if len(weights):
            self._write_weights(path.with_suffix(".safetensors"), weights)

    def _write_weights(self, path: Path, weights: WeightStore) -> None:
        """Equal weight sets share one file through a hard link."""
        names = frozenset(weights)
        if self._weights and self._weights[0] == names:
            path.unlink(missing_ok=True)
            try:
                os.link(self._weights[1], path)
                return
            except OSError:
                pass
        write_weights(path, weights)
        self._weights = (names, path)


def stage_text(module: Module, stage: str) -> str:
    """The module's text, marked as the result of `stage`."""
    with module.context:
        module.operation.attributes[STAGE_ATTRIBUTE] = ir.StringAttr.get(stage)
        text = str(module)
        del module.operation.attributes[STAGE_ATTRIBUTE]
    return text
