"""The acceptance kernels, on each way to run them: in numpy, compiled for this CPU, and as code of GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
import written_kernels as kernels
from written_kernel_cases import CASES, TOLERANCE, TYPES, WIDE, Case, f64, wide_attention, wide_product

import xcc
from xcc import tile
from xcc.frontends.kernel.arguments import Array, Parameter, described, is_array
from xcc.frontends.kernel.specialise import Constant, is_small, kinds_of, named_sizes, trace_program
from xcc.frontends.kernel.trace import trace
from xcc.runtime.dlpack import CPU

CUDA = 2        # DLPack's number
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


def program_of(case: Case, device: tuple[int, int] = (CPU, 0), config: dict[str, int] | None = None) \
        -> tuple[tile.Program, list[Any]]:
    """The program for the arguments of a case, as if they were on `device`, and those that it takes."""
    parameters = case.kernel.parameters
    values = [case.arguments[p.name] for p in parameters]
    given = [replace(described(p.name, v), device=device) if is_array(v) else v
             for p, v in zip(parameters, values, strict=True)]
    kinds, grid = named_sizes(dict(zip((p.name for p in parameters), kinds_of(parameters, given), strict=True)), given,
                              case.grid)
    arrays = [v for v, k in zip(values, kinds.values(), strict=True) if not isinstance(k, Constant)]
    return trace_program(case.kernel.function, case.kernel.name, kinds, config, grid,
                         is_small(given, case.grid)), arrays


def unnamed(program: tile.Program, grid: tuple[int, ...]) -> list[int]:
    """The numbers of a grid that no array's size says."""
    return [n for n, d in zip(grid, program.grid, strict=True) if str(d).startswith("grid_")]


@each_type
@each
def test_as_code_of_gpus(make: Make, dtype: str) -> None:
    """The code before it is assembled, in the interpreter; each type for another vendor, strided every other time."""
    number = CASES.index(make) + TYPES.index(dtype)
    case = make(dtype, number % 2 == 1)
    program, arrays = program_of(case)
    tile.compile(program, *GPUS[number % 3], emit=False).interpret(arrays, unnamed(program, case.grid))
    case.check(TOLERANCE[dtype])


@pytest.mark.parametrize("gpu", GPUS, ids=[chip for _, chip in GPUS])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("make", WIDE, ids=[c.__name__ for c in WIDE])
def test_rows_of_multiples_on_gpus(make: Make, dtype: str, gpu: tuple[str, str]) -> None:
    """A GPU reads 16 bytes at once, whatever the mask."""
    case = make(dtype, False)
    program, arrays = program_of(case, (CUDA, 0))
    assert f"tile.multiple = {4 if dtype == 'f32' else 8}" in program.text
    made = tile.compile(program, *gpu, keep=("gpu",), emit=False)
    whole = dtype == "f16" and make in (wide_product, wide_attention)
    assert ("xtg.wgmma" in made.stages["gpu"]) == (
        whole and gpu[1] == "sm_90a")
    reads = [line for line in made.stages["gpu"].splitlines() if "vector.load" in line and " memref<?x" in line]
    assert not any(f"vector<1x{dtype}>" in line for line in reads)
    made.interpret(arrays, unnamed(program, case.grid))
    case.check(TOLERANCE[dtype])


@pytest.mark.parametrize("columns", [201, 202, 204, 208])
def test_products_in_rounds(columns: int) -> None:
    """Two workgroups go from tile to tile; where rows are narrow, lanes exchange elements to store neighbours."""
    rng = np.random.default_rng(columns)
    shapes = {"a": (200, 256), "b": (256, 208), "c": (200, columns)}
    a, b = (rng.standard_normal(shapes[n]).astype(np.float16) for n in "ab")
    c = np.zeros((200, columns), np.float16)
    parameters: dict[str, Any] = {n: tile.BufferOf("f16", shape) for n, shape in shapes.items()}
    program = trace(kernels.product.function, "product", {"M": 64, "N": 128, "K": 64, "GROUP": 2},
                    {**parameters, "slope": tile.ScalarOf("f64")},
                    config={"persistent": 2, "warpgroup": 1, "threads": 128, "stages": 3})
    made = tile.compile(program, *GPUS[0], keep=("gpu",), emit=False)
    text = made.stages["gpu"]
    memory = f" memref<{200 * columns}xf16" if columns % 8 else " memref<200x"       # rows begin within words
    stores = [line for line in text.splitlines() if "vector.store" in line and memory in line]
    assert "min(2, " in text and stores and all("vector<8xf16>" in line for line in stores)
    made.interpret([a, b, c, 0.0], (-(-200 // 64) * -(-columns // 128),))
    want = np.maximum(f64(a) @ f64(b)[:, :columns], 0)
    np.testing.assert_allclose(f64(c), want, atol=2e-3 * want.max())


def whole_numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float16)


STEPS = (0, 8, 128, 136, 256, 456)      # terms of a sum, of which a step takes 64: 0, 1, 2, 3, 4 and 8 steps
PLANS = {"sm_90a": ("xcc.persistent = 2", "xcc.peeled = 2", "xcc.stages = 4", "xcc.whole"),
         "sm_80": ("xcc.peeled = 2", "xcc.stages = 3", "xcc.whole"),
         "gfx942": ("xcc.stages = 2",), "gfx1100": ("xcc.stages = 2",)}


@pytest.mark.parametrize("chip", PLANS)
def test_steps_that_the_run_knows(chip: str) -> None:
    """One form for sums of any length: of no step, of fewer than are copied ahead, and of many."""
    def case(terms: int) -> Case:
        a, b = whole_numbers(136, terms), whole_numbers(terms, 256)
        c = f64(a) @ f64(b)
        return Case(kernels.product, (6,), {"a": a, "b": b, "c": np.full((136, 256), np.nan, np.float16), "slope": 0.5,
                                            "M": 64, "N": 128, "K": 64, "GROUP": 2}, {"c": np.where(c > 0, c, c / 2)})

    config = {"persistent": 2, "stages": 4} if chip == "sm_90a" else {}
    program, _ = program_of(case(72), (CUDA, 0), config)
    made = tile.compile(program, "nvptx" if chip.startswith("sm") else "amdgcn", chip, keep=("plan", "gpu"), emit=False)
    assert all(word in made.stages["plan"] for word in PLANS[chip])
    for terms in STEPS:
        tried = case(terms)
        made.interpret(program_of(tried, (CUDA, 0))[1], tried.grid)
        tried.check(1e-3)
    tried = case(456)       # of the right operand's rows there are fewer: what is missing reads 0
    a, b = tried.arguments["a"], tried.arguments["b"][:144]
    c = f64(a[:, :144]) @ f64(b)
    tried.arguments["b"], tried.expected["c"] = b, np.where(c > 0, c, c / 2)
    made.interpret(program_of(tried, (CUDA, 0))[1], tried.grid)
    tried.check(1e-3)


@xcc.kernel
def lower(a, b, c, M: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr):      # type: ignore[no-untyped-def]
    """The product of what of `a` is on and below the diagonal's blocks: later rows have more steps."""
    row, column = xcc.program_id(0) * M, xcc.program_id(1) * N
    acc = xcc.zeros((M, N), xcc.f32)
    for k in range(0, xcc.minimum(row, a.shape[1]), K):
        acc = xcc.dot(a.tile((row, k), (M, K), other=0), b.tile((k, column), (K, N), other=0), acc)
    c.store((row, column), acc)


@xcc.kernel
def chained(x, w, y, M: xcc.constexpr):     # type: ignore[no-untyped-def]
    """Products of whole matrices, without a loop, the second one of what the first one gave."""
    a, b = x.tile((0, 0), (M, M), other=0), w.tile((0, 0), (M, M), other=0)
    y.store((0, 0), xcc.exp(xcc.dot(a, b) * -0.1) @ b)


@pytest.mark.parametrize("gpu", [GPUS[0], GPUS[2]], ids=["sm_90a", "gfx1100"])
def test_products_without_a_loop(gpu: tuple[str, str]) -> None:
    """By FMAs they are loops of their own, ahead of the branches of the stores."""
    x, w = (np.random.default_rng(n).standard_normal((n, 31)).astype(np.float32) for n in (29, 31))
    case = Case(chained, (1,), {"x": x, "w": w, "y": np.full((29, 31), np.nan, np.float32), "M": 32},
                {"y": np.exp(f64(x) @ f64(w) * -0.1) @ f64(w)})
    program, arrays = program_of(case, (CUDA, 0))
    made = tile.compile(program, *gpu, keep=("gpu",), emit=False)
    assert "llvm.loop_annotation" in made.stages["gpu"]
    made.interpret(arrays, unnamed(program, case.grid))
    case.check(TOLERANCE["f32"])


@pytest.mark.parametrize("chip", ["sm_90a", "sm_80"])
def test_steps_of_each_tile(chip: str) -> None:
    """A workgroup goes from a tile of few steps to one of many."""
    a, b, c = whole_numbers(400, 256), whole_numbers(256, 256), np.full((400, 256), np.nan, np.float16)
    want = np.concatenate([f64(a[r:r + 64, :r]) @ f64(b[:r]) for r in range(0, 400, 64)])
    case = Case(lower, (7, 2), {"a": a, "b": b, "c": c, "M": 64, "N": 128, "K": 64}, {"c": want})
    program, arrays = program_of(case, (CUDA, 0), {"persistent": 3, "stages": 4} if chip == "sm_90a" else {})
    made = tile.compile(program, "nvptx", chip, keep=("plan",), emit=False)
    assert ("xcc.persistent = 3" if chip == "sm_90a" else "xcc.peeled = 2") in made.stages["plan"]
    made.interpret(arrays, unnamed(program, case.grid))
    case.check(1e-3)


@xcc.kernel
def tallied(at, values, out, KIND: xcc.constexpr, BLOCK: xcc.constexpr):       # type: ignore[no-untyped-def]
    """`out` at the places `at` updated by `values`."""
    first = xcc.program_id(0) * BLOCK
    out.atomic(KIND, at.tile(first, BLOCK, other=-1), values.tile(first, BLOCK, other=0))


@pytest.mark.parametrize("places", [1, 10, 64, 70])
@pytest.mark.parametrize(("kind", "dtype"), [("add", "i4"), ("add", "f4"), ("max", "i4"), ("min", "i8"), ("or", "i4"),
                                             ("max", "f4")])
def test_updates_of_few_places(kind: str, dtype: str, places: int) -> None:
    """Two workgroups update copies of up to 64 elements, and memory where there are more places than that."""
    rng = np.random.default_rng(places)
    at, values = rng.integers(-1, places, 900).astype(np.int32), rng.integers(-9, 9, 900).astype(dtype)
    out = rng.integers(-9, 9, places).astype(dtype)
    want, update = out.copy(), {"add": np.add, "max": np.maximum, "min": np.minimum, "or": np.bitwise_or}[kind]
    update.at(want, at[at >= 0], values[at >= 0])
    case = Case(tallied, (8,), {"at": at, "values": values, "out": out, "KIND": kind, "BLOCK": 128}, {"out": f64(want)})
    number = places + len(kind) + len(dtype)
    config = {"private": 64 * out.itemsize, "persistent": 2, "threads": 64}
    program, arrays = program_of(case, (CUDA, 0), config)
    made = tile.compile(program, *GPUS[number % 3], keep=("plan",), emit=False)
    assert "memref.alloc" in made.stages["plan"]
    made.interpret(arrays, unnamed(program, case.grid))
    case.check(0)


def test_forms_of_rows() -> None:
    """On a GPU there is a form for rows of multiples of 16 bytes; a CPU has one for all."""
    arrays = (((3, 16), (16, 1)), ((3, 12), (12, 1)), ((3, 16), (24, 1)), ((3, 16), (20, 1)), ((3, 16), (1, 3)))
    found = [kinds_of(CASES[0]("f16", False).kernel.parameters[:1], [Array("f16", shape, strides, (device, 0))])[0]
             for device in (CUDA, CPU) for shape, strides in arrays]
    assert [k.multiple for k in found] == [8, 1, 8, 1, 1, 1, 1, 1, 1, 1]        # type: ignore[union-attr]


def test_forms_of_sizes() -> None:
    """On a GPU sizes that are equal have one name, from the last dim on, and places that fit 32 bits are a form."""
    def form(device: int, grid: tuple[int, ...], *shapes: tuple[int, ...]) -> Any:
        given = [Array("f32", shape, tuple(prod(shape[d + 1:]) for d in range(len(shape))), (device, 0))
                 for shape in shapes]
        kinds = kinds_of([*(Parameter(n, False) for n in "abc"), Parameter("N", True)], [*given, 32])
        named, names = named_sizes(dict(zip("abcN", kinds, strict=True)), [*given, 32], grid)
        return [k.sizes for k in list(named.values())[:3]], names, is_small(given, grid)     # type: ignore[union-attr]

    shapes = (8, 5), (5,), (8, 9)
    assert form(CUDA, (8,), *shapes) == ([(None, None), ("a_1",), ("a_0", None)], ("a_0",), True)
    assert form(CUDA, (5, 8), *shapes)[1:] == (("grid_0", "a_0"), True)
    assert form(CUDA, (7,), (5, 8), (5,), (7, 5)) == ([(None, None), (None,), (None, "b_0")], ("c_0",), True)
    assert form(CUDA, (32,), (32, 32), (32,), (8, 32))[:2] == ([(None, 32), (32,), (None, 32)], ("a_0",))   # N
    assert form(CPU, (8,), *shapes) == ([(), (), ()], ("grid_0",), False)
    assert not form(CUDA, (1 << 18,), *shapes)[2] and not form(CUDA, (8,), (1 << 15, 1 + (1 << 15)), *shapes[1:])[2]


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
@pytest.mark.parametrize("make", (*CASES, *WIDE), ids=[c.__name__ for c in (*CASES, *WIDE)])
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


@xcc.kernel
def sparse_product(a, b, rows, columns, c, M: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr):
    """Blocks of a in the order of their rows: those of row i are rows[i] to rows[i + 1], at columns of blocks."""
    row, column = xcc.program_id(0), xcc.program_id(1) * N
    acc = xcc.zeros((M, N), xcc.f32)
    for i in range(rows.tile(row, 1).sum(), rows.tile(row + 1, 1).sum()):
        k = columns.tile(i, 1).sum() * K
        acc = xcc.dot(a.tile((i, 0, 0), (1, M, K)).reshape(M, K), b.tile((k, column), (K, N), other=0), acc)
    c.store((row * M, column), acc)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_says_where_copies_lie_is_not_read_behind_the_last_step(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 16, 16)).astype(dtype), rng.standard_normal((64, 40)).astype(dtype)
    rows, columns, c = np.array([0, 2, 2, 5]), np.array([1, 3, 0, 1, 2]), np.zeros((48, 40), dtype)
    given = {"a": a, "b": b, "rows": rows, "columns": columns, "c": c}
    case = Case(sparse_product, (3, 2), {**given, "M": 16, "N": 32, "K": 16}, {})
    program, arrays = program_of(case, (CUDA, 0))
    tile.compile(program, *GPUS[0], emit=False).interpret(arrays, unnamed(program, case.grid))
    whole = np.zeros((3, 16, 4, 16))
    whole[[0, 0, 2, 2, 2], :, columns] = a
    whole = whole.reshape(48, 64)
    np.testing.assert_allclose(f64(c), whole @ f64(b), atol=1e-4 if dtype == np.float32 else 2e-2)
