"""The ONNX ``Backend`` API over xcc: ``xcc.onnx_backend.prepare(model, device="CPU").run(inputs)``.

    import xcc.onnx_backend as backend
    y, = backend.prepare(model).run([x])

Devices are CPU and CUDA (target nvptx). A model that computes shapes from the values of an input is compiled at the
first run, with those inputs as constants, and again when they change; so is one that takes sequences or optional
values, for their length and whether they are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TypeProto, helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from xcc.diagnostics import UserError, listed
from xcc.targets.base import get_target, target_names
from xcc.targets.hints import called

__all__ = ["XccBackend", "XccBackendRep", "prepare", "run_model", "supports_device"]

_SMALL = 64
Array = np.ndarray[Any, Any]
Form = dict[str, tuple[int, ...] | None]
"""The ranks of the elements of each input that is a sequence or an optional value; None for one that is absent."""


class XccBackendRep(BackendRep):
    """A model ready to run. `engine` is "compile" (the target's code) or "interpret" (the xt interpreter). `number`: of
    the GPU."""

    def __init__(self, model: ModelProto, target: str, engine: str, options: dict[str, Any], number: int = 0) -> None:
        self.model = model
        self.target, self.number = target, number
        self.engine = engine
        self.options = options
        initializers = {t.name for t in model.graph.initializer}
        self.names = [i.name for i in model.graph.input if i.name not in initializers]
        self.outputs = {o.name: _is_list(o.type) for o in model.graph.output}
        self.lists = {i.name: i.type for i in model.graph.input if _is_list(i.type) or i.type.HasField("optional_type")}
        self.form: Form = {}
        self.fixed: dict[str, Array] = {}
        self.missing: tuple[str, ...] = ()
        self.runner = None if self.lists else self._try_build()

    def _try_build(self) -> Any:
        """The runner, None while the values of some inputs are needed first."""
        from xcc.frontends.onnx.context import RuntimeShape

        try:
            return self._build(with_lists(with_constants(self.model, self.fixed), self.lists, self.form))
        except RuntimeShape as e:
            self.missing = tuple(n for n in e.inputs if n in self.names and n not in self.fixed)
            if not self.missing:
                raise
            return None

    def _build(self, model: ModelProto) -> Any:
        if self.engine == "interpret":
            from xcc.dialects.xt.interpret import interpret
            from xcc.frontends.onnx.importer import load

            module, weights = load(model)
            names = [a["xt.name"].value for a in module.body.operations[0].operation.attributes["res_attrs"]]
            return lambda feeds: dict(zip(names, interpret(module, feeds, weights), strict=True))
        import xcc

        compiled = xcc.compile(model, target=self.target, **self.options)
        compiled.settle(self.number)
        return compiled.run

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on `inputs`: a sequence in the order of the model's inputs, or a dict by name."""
        given = dict(inputs) if isinstance(inputs, dict) else dict(zip(self.names, _sequence(inputs), strict=False))
        form = {n: None if given[n] is None else tuple(np.ndim(v) for v in _sequence(given[n])) for n in self.lists}
        feeds: dict[str, Array] = {}
        for name, value in given.items():
            if isinstance(value, list):
                feeds |= {f"{name}[{i}]": np.asarray(v) for i, v in enumerate(value)}
            elif value is not None:
                feeds[name] = np.asarray(value)
        if form != self.form or any(not np.array_equal(value, feeds[name]) for name, value in self.fixed.items()):
            self.fixed, self.form, self.runner = {}, form, None
            self.runner = self._try_build()
        while self.runner is None:
            large = [n for n in self.missing if feeds[n].size > _SMALL]
            if large:
                raise UserError(f"shapes depend on the values of the input '{large[0]}', which has "
                                f"{feeds[large[0]].size} elements")
            self.fixed |= {n: feeds[n] for n in self.missing}
            self.runner = self._try_build()
        values = self.runner({k: v for k, v in feeds.items() if k not in self.fixed})
        return tuple(namedtupledict("Outputs", list(self.outputs))(*(_output(n, values) for n in self.outputs)))


def _is_list(kind: TypeProto) -> bool:
    return bool(kind.HasField("sequence_type")
                or kind.HasField("optional_type") and kind.optional_type.elem_type.HasField("sequence_type"))


def _output(name: str, values: Mapping[str, Any]) -> Any:
    """The output `name`; a list where it is a sequence, whose elements are outputs of the compiled model."""
    if name in values:
        return values[name]
    return [values[f"{name}[{i}]"] for i in range(sum(n.startswith(f"{name}[") for n in values))]


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


def with_lists(model: ModelProto, lists: Mapping[str, TypeProto], form: Form) -> ModelProto:
    """The model with an input ``x[i]`` for each element of the sequence `x`, whose sizes are its own."""
    if not lists:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    del out.graph.input[:]
    made: list[NodeProto] = []
    for info in model.graph.input:
        kind, ranks = lists.get(info.name), form.get(info.name)
        if kind is None:
            out.graph.input.append(info)
            continue
        held = kind.optional_type.elem_type if kind.HasField("optional_type") else kind
        if ranks is None:
            made.append(helper.make_node("Optional", [], [info.name], type=held))
        elif not held.HasField("sequence_type"):
            out.graph.input.append(helper.make_value_info(info.name, held))
        else:
            element = held.sequence_type.elem_type.tensor_type.elem_type
            names = [f"{info.name}[{i}]" for i in range(len(ranks))]
            out.graph.input.extend(helper.make_tensor_value_info(n, element, [None] * rank)
                                   for n, rank in zip(names, ranks, strict=True))
            made.append(helper.make_node("SequenceConstruct", names, [info.name]) if names else
                        helper.make_node("SequenceEmpty", [], [info.name], dtype=element))
    nodes = [*made, *out.graph.node]
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    return out


def _target_of(device: str) -> tuple[str, int]:
    """The target that ONNX's `device` ("CPU", "CUDA:0") means, and the device's number; "" for none."""
    name, _, number = device.partition(":")
    found = called(name.lower(), map(get_target, target_names()))
    known = len(found) == 1 and (not number or number.isdecimal())
    return (found[0].name, int(number or 0)) if known else ("", 0)


class XccBackend(Backend):
    """The entry points that ONNX's test runner and scoreboards call."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", engine: str = "compile",
                **kwargs: Any) -> XccBackendRep:
        if not cls.supports_device(device):
            raise UserError(f"there is no device '{device}'; give a target ({listed(target_names())}), or CUDA, ...")
        kwargs.pop("no_check_UNSAFE", None)
        target, number = _target_of(device)
        return XccBackendRep(model, target, engine, kwargs, number)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return _target_of(device)[0] != ""


prepare = XccBackend.prepare
run_model = XccBackend.run_model
supports_device = XccBackend.supports_device
