"""``torch.compile(model, backend="xcc")``.

    compiled = torch.compile(model, backend="xcc")                                 # as with any backend
    compiled = torch.compile(model, backend="xcc", options={"strict": True})       # an op without converter is an error

AOTAutograd makes graphs of ATen ops (:func:`keep.aot_decompositions` says which ops); each is captured, compiled or
found in the cache, and called with the tensors' addresses. What xcc has no converter for runs in torch, between two
parts that xcc has compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch.fx import GraphModule

from xcc.diagnostics import CompilerBug, UserError, XccError
from xcc.frontends.torch import compat
from xcc.frontends.torch.call import BoxedCall, results_of, sizes_of
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.early_start import start_compiler
from xcc.frontends.torch.fake_ops import declare_fake_ops
from xcc.frontends.torch.flex import composed
from xcc.frontends.torch.float_arguments import floats_of_runs
from xcc.frontends.torch.frozen import FrozenCall, static_inputs
from xcc.frontends.torch.guards import guard_broadcasts, guard_numbers
from xcc.frontends.torch.keep import aot_decompositions
from xcc.frontends.torch.layers import whole_layers
from xcc.frontends.torch.masks import lay_out_masks
from xcc.frontends.torch.partition import Place, partitioned, place_of
from xcc.frontends.torch.program import TorchProgram
from xcc.frontends.torch.saved_layouts import SavedLayouts
from xcc.frontends.torch.sized_calls import SizedCalls, gains_by_sizes
from xcc.frontends.torch.views import Finish, without_views
from xcc.options import CompileOptions
from xcc.runtime.executors import on_host
from xcc.targets.base import chip_of, get_target

__all__ = ["BackendOptions", "backend", "compile_graph"]


@dataclass(frozen=True)
class BackendOptions:
    """What ``torch.compile(..., options={...})`` takes.

    Attributes:
        strict: an op without converter, or a graph that cannot be compiled, is an error, where else it runs in torch.
        freeze: parameters become constants of the compiled model, packed for its kernels; for inference.
        precision: "" keeps the model's types; else the type that its f32 compute is done in.
        chip: a name of the target's chip table; "" is this machine's own.
        threads: CPU threads of the compiled model, 0 for one a core.
        cache: use the on-disk cache.
        versions: for how many sizes of its calls a function without parameters is compiled by itself, one after the
            other; what comes then is compiled once for all sizes that have changed. 0: one compilation for all sizes.
    """

    strict: bool = False
    freeze: bool = False
    precision: str = ""
    chip: str = ""
    threads: int = 0
    cache: bool = True
    versions: int = 8

    @staticmethod
    def make(options: Mapping[str, Any] | None) -> BackendOptions:
        """From the dict; UserError for a key that there is not."""
        known = {f.name for f in fields(BackendOptions)}
        for key in options or {}:
            if key not in known:
                raise UserError(f"backend 'xcc' has no option '{key}'; options are {', '.join(sorted(known))}")
        return BackendOptions(**dict(options or {}))

    def compile_options(self, target: str) -> CompileOptions:
        """What they say of the compilation for `target`; UserError for a value that there is not."""
        made = CompileOptions.make(target, chip=self.chip, precision=self.precision,
                                   threads=self.threads if on_host(target) else 0, cache=self.cache)
        chip_of(get_target(target), made.chip)
        return made


def backend(module: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> Any:
    """The entry point of ``torch_dynamo_backends``: compiles what Dynamo has traced."""
    from torch._dynamo.backends.common import aot_autograd

    from xcc.frontends.torch.computed_again import partition

    compat.check_version()
    declare_fake_ops()
    chosen = BackendOptions.make(options)

    layouts = SavedLayouts()
    sized = False       # whether the graph for gradients is one of sizes that no parameter says
    lay_out_masks(module)

    def compiler(graph: GraphModule, _inputs: Sequence[Any]) -> Any:
        if chosen.freeze:
            warnings.warn("freeze is for inference, and this graph is made for gradients: its parameters stay inputs; "
                          "call the model under torch.no_grad()", stacklevel=2)
        guard_broadcasts(graph)
        layouts.forward(graph)
        compat.donate_nothing()
        nonlocal sized
        sized = not static_inputs()
        return compile_graph(graph, chosen, static_inputs(), sized=sized)

    def inference(graph: GraphModule, _inputs: Sequence[Any]) -> Any:
        guard_broadcasts(graph)
        guard_numbers(graph)
        return compile_graph(graph, chosen, static_inputs(), freeze=chosen.freeze, sized=not static_inputs())

    def backward(graph: GraphModule, _inputs: Sequence[Any]) -> Any:
        layouts.backward(graph)
        return compile_graph(graph, chosen, sized=sized)

    start_compiler(module, inputs, chosen)
    with whole_layers(), composed(), floats_of_runs(inputs):
        return aot_autograd(fw_compiler=compiler, bw_compiler=backward, inference_compiler=inference,
                            decompositions=aot_decompositions(),
                            partition_fn=partition,
                            keep_inference_input_mutations=True)(module, inputs)


def compile_graph(module: GraphModule, options: BackendOptions, static: Sequence[int] = (), *, freeze: bool = False,
                  sized: bool = False) -> Any:
    """A callable for a flat graph of ATen ops that takes its arguments as a list.

    static: those that are parameters and buffers. freeze: these become constants of the compiled model. sized: no
    parameter says sizes, so that it is compiled for those of its calls.
    """
    place = _place(module, options)
    if place is None:
        return _boxed(module)
    options.compile_options(place.target)
    whole, missing = partitioned(module, together=on_host(place.target))
    if missing and options.strict:
        raise UserError("; ".join(missing) + ": no converter (docs/aten-ops.md lists what there is); without "
                        "options={'strict': True} such ops run in torch")
    for line in missing:
        warnings.warn(f"{line}: xcc has no converter; it runs in torch", stacklevel=2)
    if whole is None:
        return _compiled(module, place, options, static, freeze, sized)
    parameters = [n for n in whole.graph.nodes if n.op == "placeholder"]
    constant = {parameters[n] for n in static}
    for node in whole.graph.nodes:
        if node.op == "call_module" and node.target.startswith("xcc_part"):
            own = [n for n, a in enumerate(node.args) if a in constant]
            setattr(whole, node.target, _Part(_compiled(getattr(whole, node.target), place, options, own, freeze,
                                                                sized)))
    whole.recompile()
    return _boxed(whole)


def _place(module: GraphModule, options: BackendOptions) -> Place | None:
    """What the graph is compiled for: the device that its tensors are on; None where it runs in torch."""
    with _failing(options):
        return place_of(module)
    return None


class _Part(torch.nn.Module):
    """A compiled part of a graph, called with its arguments one by one."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call

    def forward(self, *arguments: Any) -> Any:
        """Its results: one bare, as the graph it stands for gives them."""
        results = self._call(list(arguments))
        return results[0] if len(results) == 1 else tuple(results)


def _boxed(module: GraphModule) -> Any:
    def call(arguments: list[Any]) -> Sequence[Any]:
        given = tuple(arguments)
        arguments.clear()
        results = module(*given)
        return results if isinstance(results, tuple | list) else [results]

    call._boxed_call = True     # type: ignore[attr-defined]
    return call


def _compiled(module: GraphModule, place: Place, options: BackendOptions, static: Sequence[int], freeze: bool,
              sized: bool) -> Any:
    """The graph compiled, or as torch runs it where that fails and the options allow it."""

    def make(program: TorchProgram, known: Mapping[str, int] | None = None) -> Any:
        with suppress(XccError) if known else _failing(options):
            chosen = options.compile_options(place.target)
            dims = tuple((name, size, size) for name, size in (known or {}).items())
            model = _model(program, replace(chosen, dims=dims), place.device)
            return BoxedCall(model, program.graph, () if freeze else static) if model is not None else None
        return None

    with _failing(options):
        core, places, finish = without_views(module)
        program = capture_fx(core, rounded=compat.rounded_products(place.device))
        if sized and options.versions and not program.graph.mesh and sizes_of(program.graph) and gains_by_sizes(core):
            call = SizedCalls(program.graph, options.versions, lambda known: make(program, known), _boxed(core))
        else:
            call = FrozenCall(program, static, make, _boxed(core)) if freeze else make(program)  # type: ignore[assignment]
        return _function(_boxed(core) if call is None else call, places, finish)
    return _boxed(module)


@contextmanager
def _failing(options: BackendOptions) -> Iterator[None]:
    """What cannot be compiled in here runs in torch, with a warning, where the options allow that."""
    try:
        yield
    except Exception as e:
        if options.strict and isinstance(e, XccError):
            raise
        if options.strict:
            raise CompilerBug(f"{type(e).__name__}: {e}") from e
        warnings.warn(f"xcc could not compile a part of the model, which runs in torch: {e}", stacklevel=4)


def _function(call: Any, places: Sequence[int], finish: Finish | None) -> Any:
    """`call`, and then `finish`."""
    if finish is None:
        return call

    def boxed(arguments: list[Any]) -> Sequence[Any]:
        kept = [arguments[n] for n in places]
        return finish(kept, call(arguments))

    boxed._boxed_call = True    # type: ignore[attr-defined]
    return boxed


def _model(program: TorchProgram, options: CompileOptions, device: torch.device) -> Any:
    """The compiled model of what the graph computes, on `device`; None for a graph that computes nothing."""
    from xcc.facade import compile_to_artifact
    from xcc.frontends.torch.group_calls import TorchGroups
    from xcc.runtime.model import Model
    from xcc.runtime.ranks import any_rank

    made = results_of(program.graph)
    if not made:
        return None
    graph = replace(program.graph, outputs=made)
    artifact = compile_to_artifact(TorchProgram(graph, program.weights), options)
    if not graph.mesh:
        model = Model(artifact)
        model.settle(device.index or 0)
        return model.prepare()
    model = Model(any_rank(artifact))
    groups = TorchGroups(graph)
    model.executor.communicate(groups, groups.size)
    return model.prepare()
