"""The ONNX ``Backend`` API over xcc: ``xcc.onnx_backend.prepare(model, device="CPU").run(inputs)``.

    import xcc.onnx_backend as backend
    y, = backend.prepare(model).run([x])

Devices are CPU and CUDA (target nvptx). A model that computes shapes from the values of an input is compiled at the
first run, with those inputs as constants, and again when they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from xcc.diagnostics import UserError

__all__ = ["XccBackend", "XccBackendRep", "prepare", "run_model", "supports_device"]

_TARGETS = {"CPU": "cpu", "CUDA": "nvptx"}
_SMALL = 64
Array = np.ndarray[Any, Any]


class XccBackendRep(BackendRep):
    """A model ready to run. `engine` is "compile" (the target's code) or "interpret" (the xt interpreter)."""

    def __init__(self, model: ModelProto, target: str, engine: str, options: dict[str, Any]) -> None:
        self.model = model
        self.target = target
        self.engine = engine
        self.options = options
        initializers = {t.name for t in model.graph.initializer}
        self.names = [i.name for i in model.graph.input if i.name not in initializers]
        self.outputs = [o.name for o in model.graph.output]
        self.fixed: dict[str, Array] = {}
        self.runner = self._try_build()

    def _try_build(self) -> Any:
        """The runner, None while the values of some inputs are needed first."""
        from xcc.frontends.onnx.context import RuntimeShape

        try:
            return self._build(with_constants(self.model, self.fixed))
        except RuntimeShape as e:
            self.missing: tuple[str, ...] = tuple(n for n in e.inputs if n in self.names and n not in self.fixed)
            if not self.missing:
                raise
            return None

    def _build(self, model: ModelProto) -> Any:
        if self.engine == "interpret":
            from xcc.dialects.xt.interpret import interpret
            from xcc.frontends.onnx.importer import load

            module, weights = load(model)
            return lambda feeds: interpret(module, feeds, weights)
        import xcc

        compiled = xcc.compile(model, target=self.target, **self.options)
        return lambda feeds: [compiled.run(feeds)[name] for name in self.outputs]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on `inputs`: a sequence in the order of the model's inputs, or a dict by name."""
        feeds = dict(inputs) if isinstance(inputs, dict) else dict(zip(self.names, _sequence(inputs), strict=False))
        feeds = {name: np.asarray(value) for name, value in feeds.items()}
        if any(not np.array_equal(value, feeds[name]) for name, value in self.fixed.items()):
            self.fixed, self.runner = {}, None
            self.runner = self._try_build()
        while self.runner is None:
            large = [n for n in self.missing if feeds[n].size > _SMALL]
            if large:
                raise UserError(f"shapes depend on the values of the input '{large[0]}', which has "
                                f"{feeds[large[0]].size} elements")
            self.fixed |= {n: feeds[n] for n in self.missing}
            self.runner = self._try_build()
        values = self.runner({k: v for k, v in feeds.items() if k not in self.fixed})
        return tuple(namedtupledict("Outputs", self.outputs)(*values))


def _sequence(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, list | tuple) else [inputs]


def with_constants(model: ModelProto, values: dict[str, Array]) -> ModelProto:
    """The model with the inputs in `values` turned into initializers."""
    if not values:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    inputs = [i for i in out.graph.input if i.name not in values]
    del out.graph.input[:]
    out.graph.input.extend(inputs)
    out.graph.initializer.extend(numpy_helper.from_array(np.ascontiguousarray(v).reshape(v.shape), n)
                                 for n, v in values.items())
    return out


class XccBackend(Backend):
    """The entry points that ONNX's test runner and scoreboards call."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", engine: str = "compile",
                **kwargs: Any) -> XccBackendRep:
        if not cls.supports_device(device):
            raise UserError(f"there is no device '{device}'; devices are {', '.join(_TARGETS)}")
        kwargs.pop("no_check_UNSAFE", None)
        return XccBackendRep(model, _TARGETS[device.partition(":")[0]], engine, kwargs)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.partition(":")[0] in _TARGETS


prepare = XccBackend.prepare
run_model = XccBackend.run_model
supports_device = XccBackend.supports_device
