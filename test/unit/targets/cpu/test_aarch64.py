"""Code for aarch64, run by qemu: a whole model as one static program without an operating system's libraries.

The program reads the memory of the model (inputs, weights, room for the rest) from standard input, calls ``xcc_main``
on the one thread there is, and writes the outputs to standard output. Without qemu it is compiled and linked all the
same.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from xcc.compiler import Compiled, compile_model
from xcc.options import CompileOptions
from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.native_program import symbol_names
from xcc.targets.cpu.chip import CHIPS
from xcc.targets.cpu.codegen import emit_object, thread_pool
from xcc.targets.cpu.host import host_program

pytest.importorskip("ziglang", reason="ziglang links the program")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
CHIP = CHIPS["neoverse-v1"]
RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

# %(...)s: bytes of memory, table of pointers, table of symbols, where the input ends, the output's place and size
PROGRAM = """
@memory = internal global [%(size)d x i8] zeroinitializer, align 4096
@pointers = internal global [%(count)d x ptr] [%(pointers)s]
@symbols = internal global [%(symbol_count)d x i64] [%(symbols)s]
declare i32 @xcc_main(ptr, ptr)

; mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc 0; ret: LLVM has no assembler for another machine here
@system = internal constant [6 x i32] [i32 -1442839576, i32 -1442774048, i32 -1442708511, i32 -1442642974,
                                       i32 -738197503, i32 -698416192], section ".text.system", align 4

define internal void @all(i64 %%number, i64 %%file, i64 %%from, i64 %%bytes) {
entry:
  %%end = add i64 %%from, %%bytes
  br label %%loop
loop:
  %%at = phi i64 [ %%from, %%entry ], [ %%next, %%more ]
  %%left = sub i64 %%end, %%at
  %%done = icmp sle i64 %%left, 0
  br i1 %%done, label %%out, label %%more
more:
  %%p = getelementptr i8, ptr @memory, i64 %%at
  %%n = call i64 @system(i64 %%number, i64 %%file, ptr %%p, i64 %%left)
  %%next = add i64 %%at, %%n
  br label %%loop
out:
  ret void
}

define void @_start() noreturn {
  call void @all(i64 63, i64 0, i64 0, i64 %(input)d)
  %%status = call i32 @xcc_main(ptr @pointers, ptr @symbols)
  call void @all(i64 64, i64 1, i64 %(output)d, i64 %(output_size)d)
  %%wide = sext i32 %%status to i64
  %%never = call i64 @system(i64 94, i64 %%wide, ptr null, i64 0)
  unreachable
}

define ptr @memcpy(ptr %%to, ptr %%from, i64 %%n) "no-builtins" {
entry:
  %%any = icmp ne i64 %%n, 0
  br i1 %%any, label %%loop, label %%out
loop:
  %%i = phi i64 [ 0, %%entry ], [ %%j, %%loop ]
  %%p = getelementptr i8, ptr %%from, i64 %%i
  %%q = getelementptr i8, ptr %%to, i64 %%i
  %%v = load volatile i8, ptr %%p
  store volatile i8 %%v, ptr %%q
  %%j = add i64 %%i, 1
  %%more = icmp ult i64 %%j, %%n
  br i1 %%more, label %%loop, label %%out
out:
  ret ptr %%to
}
"""
NOT_CALLED = ("bcmp", "memmove", "memset", "pthread_cond_broadcast", "pthread_cond_destroy", "pthread_cond_init",
              "pthread_cond_wait", "pthread_create", "pthread_join", "pthread_mutex_destroy", "pthread_mutex_init",
              "pthread_mutex_lock", "pthread_mutex_unlock", "sched_getaffinity", "sched_getcpu", "sched_setaffinity",
              "sched_yield")


def compiled(nodes: list[Any], x: Array, shape: tuple[Any, ...], weights: dict[str, Array],
             precision: str = "") -> Compiled:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
                              [numpy_helper.from_array(w, name) for name, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return compile_model(model, CompileOptions(chip="neoverse-v1", precision=precision))


def run(c: Compiled, x: Array, symbols: dict[str, int], folder: Path) -> Array:
    """The one output of the model for its one input."""
    a = c.artifact
    assert a is not None
    program = a.program
    memory = bytearray()
    places: dict[int, int] = {}

    def place(i: int, data: bytes) -> None:
        memory.extend(bytes(-len(memory) % 64))
        places[i] = len(memory)
        memory.extend(data)

    place(program.inputs[0], x.tobytes())
    for i, b in enumerate(program.buffers):
        if b.kind == "weight":
            place(i, a.weights[b.name].tobytes())
    given = len(memory)
    plan = ArenaPlanner(program).plan(symbols)
    place(-1, bytes(plan.size))
    places |= {i: places[-1] + offset for i, offset in plan.offsets.items()}
    out = program.outputs[0]
    shape = [d if isinstance(d, int) else symbols[str(d)] for d in program.buffers[out].shape]
    dtype = numpy_dtype(program.buffers[out].dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    place(out, bytes(size))
    address = [f"ptr getelementptr (i8, ptr @memory, i64 {places.get(i, 0)})" for i in range(len(program.buffers))]
    names = [f"i64 {symbols.get(s, 0)}" for s in symbol_names(program)] or ["i64 0"]
    text = PROGRAM % {"size": len(memory) + 64, "count": len(address), "pointers": ", ".join(address), "input": given,
                      "symbol_count": len(names), "symbols": ", ".join(names), "output": places[out],
                      "output_size": size}
    text += "".join(f"define void @{n}() {{\n  call void @llvm.trap()\n  unreachable\n}}\n" for n in NOT_CALLED)
    objects = [k.blob for k in c.kernels] + [emit_object(t, CHIP) for t in (host_program(program), text)]
    paths = []
    for n, blob in enumerate([*objects, thread_pool(CHIP)]):
        paths.append(str(folder / f"{n}.o"))
        Path(paths[-1]).write_bytes(blob)
    binary = folder / "model"
    subprocess.run([sys.executable, "-m", "ziglang", "ld.lld", "-static", "-o", str(binary), *paths], check=True)
    if QEMU is None:
        pytest.skip("the program is linked; qemu-aarch64, which would run it, is not installed")
    done = subprocess.run([QEMU, "-cpu", "max", str(binary)], input=bytes(memory[:given]), capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, dtype).reshape(shape)


def test_product_with_bias_and_tanh_of_symbolic_size(tmp_path: Path) -> None:
    x, w, b = (RNG.standard_normal(s, np.float32) for s in ((13, 70), (70, 50), (50,)))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
             helper.make_node("Tanh", ["u"], ["y"])]
    c = compiled(nodes, x, ("n", 70), {"w": w, "b": b})
    np.testing.assert_allclose(run(c, x, {"n": 13}, tmp_path), np.tanh(x @ w + b), rtol=1e-4, atol=1e-5)


def test_convolution_and_softmax(tmp_path: Path) -> None:
    x, w = RNG.standard_normal((1, 5, 9, 11), np.float32), RNG.standard_normal((16, 5, 3, 3), np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["t"], ["u"]),
             helper.make_node("Softmax", ["u"], ["y"])]
    padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    t = np.maximum(np.einsum("chwij,ocij->ohw", windows, w), 0)[None]
    e = np.exp(t - t.max(-1, keepdims=True))
    np.testing.assert_allclose(run(compiled(nodes, x, x.shape, {"w": w}), x, {}, tmp_path),
                               e / e.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_product_of_bytes(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (17, 66)).astype(np.uint8)
    w = RNG.integers(-128, 128, (66, 40)).astype(np.int8)
    c = compiled([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], x, x.shape, {"w": w})
    np.testing.assert_array_equal(run(c, x, {}, tmp_path), x.astype(np.int32) @ w.astype(np.int32))


def test_product_of_bf16(tmp_path: Path) -> None:
    x, w = (RNG.standard_normal(s, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
            for s in ((17, 66), (66, 40)))
    c = compiled([helper.make_node("MatMul", ["x", "w"], ["y"])], x, x.shape, {"w": w}, "bf16")
    np.testing.assert_allclose(run(c, x, {}, tmp_path), x @ w, rtol=1e-2, atol=1e-2)


def test_elementary_functions(tmp_path: Path) -> None:
    """Every exponent and sign, and what has no number: the scalings by powers of two and the selects of this chip."""
    bits = np.concatenate([RNG.integers(0, 1 << 32, 4096, np.uint32), np.arange(0, 1 << 32, 1 << 23, np.uint32)])
    x = np.concatenate([bits.view(np.float32), RNG.uniform(-9, 9, 1024).astype(np.float32)])
    names = ("Exp", "Log", "Tanh", "Erf")
    nodes = [helper.make_node(n, ["x"], [n]) for n in names] + [helper.make_node("Concat", list(names), ["y"], axis=0)]
    got = run(compiled(nodes, x, x.shape, {}), x, {}, tmp_path).reshape(4, -1)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wanted = [np.exp(wide), np.log(wide), np.tanh(wide), np.array([math.erf(v) for v in wide])]
        for name, values, exact in zip(names, got, wanted, strict=True):
            off = np.abs(values - exact) / np.maximum(np.spacing(np.abs(exact.astype(np.float32))), 1e-45)
            same = (np.isnan(values) & np.isnan(exact)) | (values == exact.astype(np.float32))
            worst = int(np.where(same, 0, np.nan_to_num(off, nan=1e9, posinf=1e9)).argmax())
            assert same[worst] or off[worst] <= 2, (name, x[worst], values[worst], exact[worst])


def test_attention_and_norm(tmp_path: Path) -> None:
    x = RNG.standard_normal((2, 3, 19, 24), np.float32)
    w, b = RNG.standard_normal(24, np.float32), RNG.standard_normal(24, np.float32)
    nodes = [helper.make_node("LayerNormalization", ["x", "w", "b"], ["t"]),
             helper.make_node("Transpose", ["t"], ["k"], perm=[0, 1, 3, 2]),
             helper.make_node("MatMul", ["t", "k"], ["s"]),
             helper.make_node("Softmax", ["s"], ["p"]), helper.make_node("MatMul", ["p", "t"], ["y"])]
    centred = x - x.mean(-1, keepdims=True)
    t = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * w + b
    s = t @ t.swapaxes(-1, -2)
    e = np.exp(s - s.max(-1, keepdims=True))
    np.testing.assert_allclose(run(compiled(nodes, x, x.shape, {"w": w, "b": b}), x, {}, tmp_path),
                               e / e.sum(-1, keepdims=True) @ t, rtol=1e-3, atol=1e-4)
