"""A compiled model that can be called: what ``xcc.load`` and ``xcc.compile`` return."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xcc.diagnostics import UserError, counted
from xcc.runtime import dlpack, dtypes
from xcc.runtime.artifact import Artifact
from xcc.runtime.executors import executor_module, on_host
from xcc.runtime.given_inputs import given_input, gpu_of
from xcc.runtime.given_outputs import check_apart, given_outputs, stream_of
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.load_options import gpu_number, least_sizes, memory_for, thread_options, zeros
from xcc.runtime.ranks import Part
from xcc.runtime.signature import Sizes, TensorInfo, check_names, tensor_infos
from xcc.runtime.state import ModelState
from xcc.runtime.turn import Turn
from xcc.runtime.updated_inputs import UpdatedInputs

__all__ = ["Model", "load"]

SOURCES = (".mlir", ".onnx", ".pt2")      # files that xcc compiles
REMEMBERED_SHAPES = 256


class Model:
    """A compiled model. Threads may share one: its runs go one after the other. Load it again to run it beside itself.

    On CPUs, its threads, code and memory go with the last reference to it, outputs stay valid.
    """

    def __init__(self, artifact: Artifact, *, threads: int = 0, device: int | None = None) -> None:
        self.artifact = artifact
        self.part = Part(artifact)
        program = self.part.own.program
        target = str(artifact.manifest.get("target"))
        self._on_host = on_host(target)
        self._threads = thread_options(target, threads)
        self._number = gpu_number(target, device)       # where that is decided
        self.turn = Turn()          # to run: the arena and the pointers into it are the model's, not a run's
        self.inputs: tuple[TensorInfo, ...] = tensor_infos(program, program.inputs)
        self.outputs: tuple[TensorInfo, ...] = tensor_infos(program, program.outputs)
        self._names = {i.name for i in self.inputs}
        self._expected = [(i, i.name, dtypes.numpy_dtype(i.dtype) if i.dtype in dtypes.PLAIN else None, len(i.shape))
                          for i in self.inputs]
        self._output_names = [o.name for o in self.outputs]
        self._executor: Any = None
        self._sizes = Sizes(program)
        self._updated = UpdatedInputs(program)
        self._solved: dict[Any, dict[str, int]] = {}    # by the shapes of inputs, and the values that are sizes
        places = {b: n for n, b in enumerate(program.inputs)}
        self._values = [(places[v.source], v.index) for v in program.values]

    @property
    def target(self) -> str:
        return str(self.artifact.manifest["target"])

    @property
    def chip(self) -> str:
        return str(self.artifact.manifest["chip"])

    @property
    def threads(self) -> int:
        """CPU threads that a run uses, the caller's included; 1 where no kernel has work for several."""
        return int(getattr(self.executor, "threads", 1))

    @property
    def device(self) -> int | None:
        """The number of the GPU that it runs on: what it was loaded for, or else what :meth:`settle` was told, or where
        the first run found arrays on a GPU. None: not decided yet, or for CPUs."""
        return self._number

    def settle(self, device: int | None) -> None:
        """Has the model run on GPU `device`, if that is not decided yet."""
        if self._number is None and self._executor is None and not self._on_host:
            self._number = device

    def __repr__(self) -> str:
        return f"<xcc.Model for {self.chip}: {'; '.join(map(str, self.inputs))} -> {'; '.join(map(str, self.outputs))}>"

    def __reduce__(self) -> Any:
        raise TypeError("an xcc.Model cannot be pickled or copied, as it has loaded code and mapped weights: save it, "
                        "and xcc.load the file in the other process")

    def run(self, inputs: Mapping[str, Any], *, out: Mapping[str, Any] | None = None, stream: Any = None,
            borrow: bool = False) -> dict[str, Any]:
        """Runs the model on arrays by input name; returns arrays by output name.

        An array is numpy's, anything with ``__dlpack__``, or a number or nested list for an input of that type.
        UserError names the input whose element type or shape does not fit. An input that an output updates is written
        in place: it must be an array that is contiguous and can be written, and the output is that same array.

        out: arrays that outputs are written to, by name: contiguous, of the output's type and shape, and sharing memory
        with no input. stream: for a model on a GPU, a CUDA stream (of PyTorch or CuPy, or its handle); the run is
        enqueued there and not waited for, inputs are used as the stream has left them, outputs are on the GPU and
        complete when the stream has come to them. borrow: outputs are arrays on the GPU, in memory of the model's that
        the next run writes again.
        """
        if self._executor is None:
            self.settle(gpu_of([*inputs.values(), *(out or {}).values()]))
        handle = stream_of(stream)
        if not self.part.several:
            return self._run_on(inputs, out or {}, handle, borrow)
        assert self.executor is not None        # has met the others
        with self.part.running():
            return self._run_on(inputs, out or {}, handle, borrow)

    def _run_on(self, inputs: Mapping[str, Any], out: Mapping[str, Any], handle: int | None, borrow: bool
                ) -> dict[str, Any]:
        more: dict[str, Any] = {} if handle is None else {"stream": handle}
        if borrow:
            more["borrow"] = True
        if more and not hasattr(self.executor, "run_on"):
            raise UserError(f"{next(iter(more))} is for models on GPUs, this one is for '{self.target}'")
        checked = self._checked(inputs, handle)
        if self.part.several:
            self.part.agree(checked[1])
        if self._updated:
            self._updated.check([inputs[i.name] for i in self.inputs], checked[0], self._place()[1])
        outputs = self._run(checked, out, more)
        for n, place in self._updated.outputs.items():
            outputs[n] = inputs[self.inputs[place].name]
        named = dict(zip(self._output_names, outputs, strict=True))
        return named | dict(out) if out else named

    def _run(self, checked: tuple[list[Any], dict[str, int]], out: Mapping[str, Any], more: Mapping[str, Any]
             ) -> list[Any]:
        try:
            with memory_for("a run of these sizes"), self.turn.lock:
                if not out and not more:
                    outputs: list[Any] = self.executor.run(*checked)
                    return outputs
                given = given_outputs(self.outputs, out, self.updates, self._place())
                check_apart(self.inputs, checked[0], self.outputs, given)
                return list(self.executor.run(*checked, given, **more))
        except ZeroDivisionError:
            sizes = ", ".join(f"'{name}' is {value}" for name, value in checked[1].items())
            raise UserError(f"sizes do not fit: one that is computed is a division by zero, as {sizes}") from None

    @property
    def updates(self) -> dict[str, str]:
        """Outputs that take the place of inputs: {"present": "past"}."""
        return {self.outputs[n].name: self.inputs[place].name for n, place in self._updated.outputs.items()}

    @property
    def state(self) -> ModelState:
        """What the model holds from run to run, by name: reading gives a copy, what is assigned the next run finds.

        A run that ends with an error may have changed a part of it.
        """
        return ModelState(self.part.own.program, self.executor, self.turn)

    def reset(self) -> None:
        """Makes all that the model holds what it was when it was loaded."""
        with self.turn.lock:
            self.executor.state.reset()

    def profile(self, inputs: Mapping[str, Any]) -> list[LaunchTime]:
        """Each kernel launch of a run on `inputs` and its median seconds, in order."""
        if not hasattr(self.executor, "profile"):
            raise UserError(f"the executor of target '{self.target}' cannot time single kernels")
        arrays, symbols = self._checked(inputs)
        with self.turn.lock:
            times: list[LaunchTime] = self.executor.profile(self._updated.copies(arrays), symbols)
        return times

    def device_times(self, inputs: Mapping[str, Any], repeats: int = 30, cold: bool = True,
                     before: Callable[[], None] | None = None) -> list[float]:
        """GPU only: seconds of runs on `inputs` without copies from and to the host, each after a cold L2 cache.

        `before` is called ahead of each run.
        """
        from xcc.runtime.gpu_profile import run_times

        if not hasattr(self.executor, "replay"):
            raise UserError(f"target '{self.target}' has no device times: time run()")
        arrays, symbols = self._checked(inputs)
        with self.turn.lock, self.executor.driver.current():
            self.executor.run(self._updated.copies(arrays), symbols, in_place=False)
            return run_times(self.executor, symbols, repeats, cold, before)

    def _checked(self, inputs: Mapping[str, Any], stream: int | None = None) -> tuple[list[Any], dict[str, int]]:
        """Arrays in the program's order, and the symbols that their shapes and values give."""
        if type(inputs) is not dict or inputs.keys() != self._names:
            check_names(inputs, self.inputs)
        arrays = []
        for info, name, dtype, rank in self._expected:
            value = inputs[name]
            fits = type(value) is np.ndarray and value.dtype is dtype and value.ndim == rank \
                and value.flags.c_contiguous
            arrays.append(value if fits else given_input(info, value, self._place, stream))
        hosted: dict[int, Any] = {}

        def element(n: int, i: int) -> int:
            if n not in hosted:
                hosted[n] = arrays[n] if isinstance(arrays[n], np.ndarray) else self.executor.to_host(arrays[n])
            return int(hosted[n].item(i))

        return arrays, self.symbols_of(tuple([a.shape for a in arrays]), element)

    def symbols_of(self, shapes: tuple[Any, ...], element: Callable[[int, int], int]) -> dict[str, int]:
        """The value of each symbol for inputs of these shapes; `element` gives an element of an input, flat, by its
        place among the inputs: some are sizes. UserError where they do not fit each other or the model."""
        values = tuple([element(n, i) for n, i in self._values]) if self._values else ()
        symbols = self._solved.get((shapes, values))
        if symbols is None:
            if len(self._solved) >= REMEMBERED_SHAPES:
                self._solved.clear()
            symbols = self._solved[shapes, values] = self._sizes.solve(shapes, values)
        return symbols

    def __call__(self, *args: Any) -> Any:
        """Runs the model on arrays in input order; one output comes bare, several as a tuple."""
        if len(args) != len(self.inputs):
            listing = "; ".join(map(str, self.inputs))
            raise UserError(f"the model takes {counted(len(self.inputs), 'input')} ({listing}), got {len(args)}")
        outputs = tuple(self.run(dict(zip((i.name for i in self.inputs), args, strict=True))).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def _place(self) -> tuple[int, int]:
        """Where arrays are used, as DLPack has it."""
        driver = getattr(self.executor, "driver", None)
        return (dlpack.CPU, 0) if driver is None else (driver.device_type, driver.number)

    def save(self, path: str | Path) -> int:
        """Writes the artifact; returns its size in bytes."""
        return self.artifact.save(path)

    @property
    def executor(self) -> Any:
        """What runs the model; made at the first use, so that an artifact for another machine can be looked at."""
        if self._executor is None:
            with self.turn.lock:
                self._executor = self._executor or self._made()
        return self._executor

    def _made(self) -> Any:
        a, module = self.part.own, executor_module(self.target)
        try:
            more: dict[str, Any] = self.part.join()
            if not self._on_host:
                self.settle(self.part.place.local_rank)
                more["device"] = self._number
            with memory_for("the model"):
                return module.make_executor(a.program, a.members, a.weights, a.manifest, **self._threads, **more)
        except KeyError as e:
            raise UserError(f"the artifact has no {e.args[0]}, which a model for {self.target} needs") from None

    def prepare(self, dims: Mapping[str, int] | None = None) -> Model:
        """Makes ready what the first run would make, for a CPU model where this machine can run it; returns itself.

        `dims` says for which sizes of the symbolic dims there is memory: 1, or the least of its bounds, for one that it
        leaves out. UserError where they do not fit the model. Without it, that is for the least sizes, with room for
        larger ones; the first run on others plans its memory, and clears it where it takes more than a large page.
        """
        if self.part.several:       # all ranks load it together
            assert self.executor is not None
        if not self._on_host:
            return self
        least = least_sizes(self.part.own.program, dims)
        # Without sizes that somebody names, the first run says what is wrong.
        with contextlib.suppress(*([] if dims is not None else [UserError])), self.turn.lock:
            self._make_ready(least, spare=dims is None)
        return self

    def _make_ready(self, sizes: Mapping[str, int], spare: bool = False) -> None:
        """Makes the executor, and memory for these values of symbols; `spare`: and larger ones, if that is little."""
        try:
            with memory_for("a run of these sizes"):
                self.executor.make_ready(self._checked(zeros(self.part.own.program, sizes))[1], spare=spare)
        except (ArithmeticError, ValueError) as e:      # a division by zero, a negative size
            raise UserError(f"the model cannot have these sizes: {e}") from None


def load(path: str | Path, *, prepare: bool = True, dims: Mapping[str, int] | None = None, threads: int = 0,
         device: int | None = None) -> Model:
    """The model in an .xcm file, its weights memory-mapped.

    `threads` is how many a CPU model uses, the caller's included, at most 256. 0: what the environment variable
    XCC_THREADS says, or what it was compiled for, or one a core. Results do not depend on it.
    `device` is the number of the GPU that a model for GPUs runs on. None: that of the arrays in its first run, or 0.
    `prepare` loads a CPU model's code, so that the first run is like any other (`dims`: on which sizes, see
    :meth:`Model.prepare`). Without it, nothing is done that the first call can do, and nothing of the file reaches the
    system's loader.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"a model is loaded from a path, not from a {type(path).__name__}")
    if Path(path).suffix in SOURCES:
        raise UserError(f"{path}: is not compiled: compile it first (xcc {path}, or xcc.compile) and load the .xcm")
    model = Model(Artifact.read(path), threads=threads, device=device)
    return model.prepare(dims) if prepare else model

