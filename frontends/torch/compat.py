"""What differs between torch 2.11, 2.12 and 2.13. With :mod:`capture` and :mod:`archive` the only files that import
torch's insides."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import torch

from xcc.diagnostics import UserError

LEAST = (2, 11)

__all__ = ["NOT_FREE", "captures", "check_version", "cuda_allocator", "current_stream", "debug_names", "declared_ops",
           "empty_strided", "free_stream", "group_name", "group_ranks", "is_group", "process_group", "rank_and_size",
           "read_program", "real_tensors", "room_on_gpu", "saved_for_backward",
           "stream_state", "value_of", "var_ranges"]

empty_strided: Any = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None) or (
    lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype))
"""Memory on the CPU for `shape`, `strides` and `dtype`, by the quicker way where torch has it."""

_empty_strided_cuda: Any = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)


def cuda_allocator(device: Any) -> Any:
    """What gives memory on a GPU for shape, strides and type: the quicker way where torch has it and `device` is the
    current one now."""
    if _empty_strided_cuda is not None and device.index == torch._C._cuda_getDevice():
        return _empty_strided_cuda
    return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def current_stream(device: int) -> int:
    """The handle of torch's current stream on the GPU of this number."""
    return int(torch._C._cuda_getCurrentRawStream(device))


_current_device: Any = getattr(torch._C, "_cuda_getDevice", None)
_is_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
_raw_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)


NOT_FREE = "current_device() != number or raw_stream(number) != stream or stream and is_capturing()"
"""Whether :func:`free_stream` of GPU `number` is another one than `stream`: code for each call, with the names that
:func:`stream_state` gives."""


def stream_state() -> dict[str, Any]:
    """Torch's functions that tell its current GPU, the current stream there, and whether that is captured."""
    return {"current_device": _current_device, "raw_stream": _raw_stream, "is_capturing": _is_capturing}


def free_stream(device: int) -> int:
    """The handle of torch's current stream where the GPU of this number is the current one, and the stream is not
    captured into a graph, as the default one, 0, never is; else -1."""
    if _current_device() != device:
        return -1
    stream: int = _raw_stream(device)
    return -1 if stream and _is_capturing() else stream


def room_on_gpu(size: int, device: int) -> Any:
    """So many bytes of torch's memory on the GPU of this number, for its current stream."""
    return torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", device))


def captures(device: int) -> bool:
    """Whether torch's current stream on the GPU of this number is captured into a graph."""
    if torch._C._cuda_getDevice() == device:
        return bool(torch._C._cuda_isCurrentStreamCapturing())
    with torch.cuda.device(device):
        return bool(torch._C._cuda_isCurrentStreamCapturing())


def is_group(value: Any) -> bool:
    """Whether it is a process group, which functional collectives take in place of a name."""
    return torch.distributed.is_available() and isinstance(value, torch.distributed.ProcessGroup)


def group_name(group: Any) -> str:
    """The name of a process group, by which a functional collective has it, or which it has itself."""
    return str(getattr(group, "group_name", group))


def process_group(name: str) -> Any:
    """The process group of this name; None where this process has none."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    from torch.distributed import distributed_c10d

    try:
        return cast(Any, distributed_c10d)._resolve_process_group(name)
    except (RuntimeError, ValueError, KeyError):
        return None


def group_ranks(name: str) -> tuple[int, ...] | None:
    """The ranks of the process group of this name, by their places in it; None where this process has none."""
    group = process_group(name)
    return None if group is None else tuple(torch.distributed.get_process_group_ranks(group))


def rank_and_size() -> tuple[int, int]:
    """This process's number, and how many there are."""
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def _forward_now() -> Any:
    """What AOTAutograd knows of the forward that it has compiled now; None outside of a compilation."""
    return getattr(torch._guards.TracingContext.try_get(), "fw_metadata", None)


def saved_for_backward(count: int) -> slice:
    """Which of the `count` results of the forward that AOTAutograd has compiled now are for its backward alone."""
    try:
        found: slice = _forward_now().tensors_saved_for_backwards_slice
    except (AttributeError, AssertionError):
        return slice(0, 0)
    return found if isinstance(found.start, int) and found.start <= count else slice(0, 0)


def aliases_of_inputs(count: int) -> frozenset[int]:
    """Which of the `count` results of the forward that AOTAutograd has compiled now are inputs, or views of them: it
    makes these of the input again, with the sizes, strides and offset that the result has."""
    known = _forward_now()
    infos = getattr(known, "output_info", None) or ()
    first = getattr(known, "num_mutated_inp_runtime_indices", 0)
    if count < first + len(infos):
        return frozenset()
    return frozenset(first + n for n, info in enumerate(infos)
                     if info.output_type.name in ("alias_of_input", "is_input"))


def donate_nothing() -> None:
    """A backward writes to nothing that its forward has saved, so that it may run again (``retain_graph=True``): torch
    refuses that of graphs with free sizes whose compiler might."""
    known = _forward_now()
    if known is not None:
        known.bw_donated_idxs = []


def check_version() -> None:
    """UserError where the torch installed is older than what is supported."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())
    if version < LEAST:
        raise UserError(f"torch {torch.__version__} is installed; PyTorch programs need "
                        f"{'.'.join(map(str, LEAST))} or newer")


def debug_names(shape_env: Any) -> dict[str, str]:
    """Names that users gave to dims (``torch.export.Dim("batch")``) by torch's own symbols; empty in a loaded file."""
    given = getattr(shape_env, "source_name_to_debug_name", {}) or {}
    symbols = getattr(shape_env, "source_to_var", {}) or {}
    return {str(symbols[source]): name for source, name in given.items() if source in symbols}


def var_ranges(shape_env: Any) -> dict[Any, Any]:
    """What torch knows of the values of its symbols."""
    return dict(getattr(shape_env, "var_to_range", {}) or {})


def real_tensors() -> AbstractContextManager[Any]:
    """In here tensors are what they are, also while torch traces with fake ones."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    return unset_fake_temporarily()


def value_of(node: torch.fx.Node) -> Any:
    """What the trace has for the results of a node. The states of an LSTM have the shapes of those that it is given;
    before 2.13 torch's trace has them with one dim more."""
    value: Any = node.meta.get("val")
    if str(node.target) != "aten.lstm.input":
        return value
    states: Any = node.args[1]
    return (value[0], *(state.meta["val"] for state in states))


def read_program(path: str) -> Any:
    """The ``torch.export.ExportedProgram`` in a .pt2 file, of which nothing is run; UserError for a file that holds
    none."""
    from xcc.frontends.torch import archive

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", "The given buffer is not writable")       # nor does anybody write to it
            return archive.load(path)
    except UserError:
        raise
    except Exception as e:
        raise UserError(f"{path}: torch cannot read it as an exported program: "
                        f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from None


@contextmanager
def declared_ops() -> Iterator[None]:
    """Ops of other libraries that programs may have and xcc knows, declared as long as their library is not loaded."""
    with torch.library._scoped_library("transformers", "FRAGMENT") as library:
        if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
            library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
            library._register_fake("grouped_mm_fallback",
                                   lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))
        yield


def rounded_products(device: torch.device) -> tuple[str, ...]:
    """Of "convolution" and "product" those whose f32 operands torch lets be rounded to tf32 on `device`: by default
    convolutions, and products after ``torch.set_float32_matmul_precision("high")``. On AMD's GPUs none."""
    if device.type != "cuda" or torch.version.hip:
        return ()
    asked = torch._C._get_fp32_precision_getter
    return tuple(kind for kind, op in (("convolution", "conv"), ("product", "matmul")) if asked("cuda", op) == "tf32")
