"""The acceptance kernels, on each way to run them: in numpy, compiled for this CPU, and as code of GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from written_kernel_cases import CASES, TOLERANCE, TYPES, Case

from xcc import tile
from xcc.frontends.kernel.arguments import described, is_array
from xcc.frontends.kernel.specialise import Constant, kinds_of, trace_program

Make = Callable[[str, bool], Case]
GPUS = (("nvptx", "sm_90a"), ("amdgcn", "gfx942"), ("amdgcn", "gfx1100"))
each = pytest.mark.parametrize("make", CASES, ids=[c.__name__ for c in CASES])
each_type = pytest.mark.parametrize("dtype", TYPES)
each_layout = pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])


@pytest.mark.parametrize("mode", ["eager", "check"])
@each_layout
@each_type
@each
def test_in_numpy(make: Make, dtype: str, strided: bool, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", mode)
    case = make(dtype, strided)
    case.kernel[case.grid](**case.arguments)
    case.check(TOLERANCE[dtype])


@each_layout
@each_type
@each
def test_on_this_cpu(make: Make, dtype: str, strided: bool) -> None:
    case = make(dtype, strided)
    case.kernel[case.grid](**case.arguments)
    case.check(TOLERANCE[dtype])


def program_of(case: Case) -> tuple[tile.Program, list[Any]]:
    """The program for the arguments of a case, and those that it takes."""
    parameters = case.kernel.parameters
    values = [case.arguments[p.name] for p in parameters]
    given = [described(p.name, v) if is_array(v) else v for p, v in zip(parameters, values, strict=True)]
    kinds = dict(zip((p.name for p in parameters), kinds_of(parameters, given), strict=True))
    arrays = [v for v, k in zip(values, kinds.values(), strict=True) if not isinstance(k, Constant)]
    return trace_program(case.kernel.function, case.kernel.name, kinds), arrays


@each_type
@each
def test_as_code_of_gpus(make: Make, dtype: str) -> None:
    """The code before it is assembled, in the interpreter; each type for another vendor, strided every other time."""
    number = CASES.index(make) + TYPES.index(dtype)
    case = make(dtype, number % 2 == 1)
    program, arrays = program_of(case)
    tile.compile(program, *GPUS[number % 3], emit=False).interpret(arrays, case.grid)
    case.check(TOLERANCE[dtype])


@each
def test_assembles(make: Make) -> None:
    """For a vendor each, in the type that is not interpreted for it."""
    number = CASES.index(make)
    binary = tile.compile(program_of(make(TYPES[number % 3], False))[0], *GPUS[(2 * number + 1) % 3]).binary
    assert binary is not None and len(binary.blob) > 1000


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@each_layout
@each_type
@each
def test_on_a_gpu(make: Make, dtype: str, strided: bool) -> None:
    """Tensors of torch's, on its current stream."""
    case = make(dtype, strided)
    given = {n: on_gpu(v) if isinstance(v, np.ndarray) else v for n, v in case.arguments.items()}
    case.kernel[case.grid](**given)
    torch.cuda.synchronize()
    for name in case.outputs:
        case.arguments[name] = given[name].cpu().double().numpy()
    case.check(TOLERANCE[dtype])


def on_gpu(array: Any) -> Any:
    """A tensor there of the same strides."""
    base = array if array.base is None or array.flags.c_contiguous else array.base
    bits = torch.from_numpy(np.ascontiguousarray(base).view(f"i{base.itemsize}")).cuda()
    names = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "int32": torch.int32}
    whole = bits.view(names[str(array.dtype)])
    return whole if base is array else whole.as_strided(array.shape, [s // array.itemsize for s in array.strides])


def test_other_views_on_this_cpu() -> None:
    """Rows in reverse order, columns in reverse order, an address of no alignment, one row again and again, no rows."""
    x = np.random.default_rng(0).uniform(-1, 1, (9, 21)).astype(np.float32)
    odd = np.frombuffer(bytearray(x.nbytes + 4), np.float32)[1:].reshape(x.shape)
    odd[...] = x
    make = CASES[1]
    for view in (x[::-1], x[:, ::-1], odd, np.broadcast_to(x[:1], x.shape), np.asfortranarray(x), x[:0]):
        kernel = make("f32", False).kernel
        y = np.zeros(view.shape, np.float32)
        kernel[(len(view),)](view, y, BLOCK=32)
        e = np.exp(view - view.max(1, keepdims=True)) if len(view) else view
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
