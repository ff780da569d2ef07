"""Matrix products by wgmma, run by the interpreter of gpu-stage kernels, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.interpreter.faults import KernelFault
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, get_pass
from xcc.targets.gpu_stages import DECISIONS
from xcc.targets.nvptx.chip import chips

PROGRAM = """
func.func @matmul(%a: memref<{a}xf16>, %b: memref<{b}xf16>, %o: memref<{m}x{n}xf32>)
    attributes {{xt.kernel,
                 xcc.config = {{gpu = {{threads = {threads} : i64, stages = {stages} : i64, warpgroup = true}}}}}} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {tk} : index
  %k = arith.constant {k} : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i, %j) = (0, 0) to ({m}, {n}) step ({tm}, {tn}) {{
    %zero = arith.constant dense<0.0> : vector<{tm}x{tn}xf32>
    %r = scf.for %p = %c0 to %k step %step iter_args(%acc = %zero) -> (vector<{tm}x{tn}xf32>) {{
      %ta = vector.transfer_read %a[{a_at}], %h {{in_bounds = [true, true], permutation_map = {a_map}}}
          : memref<{a}xf16>, vector<{tm}x{tk}xf16>
      %tb = vector.transfer_read %b[{b_at}], %h {{in_bounds = [true, true], permutation_map = {b_map}}}
          : memref<{b}xf16>, vector<{tk}x{tn}xf16>
      %c = vector.contract {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
          affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>}} %ta, %tb, %acc : vector<{tm}x{tk}xf16>, vector<{tk}x{tn}xf16>
          into vector<{tm}x{tn}xf32>
      scf.yield %c : vector<{tm}x{tn}xf32>
    }}
    vector.transfer_write %r, %o[%i, %j] {{in_bounds = [true, true]}} : vector<{tm}x{tn}xf32>, memref<{m}x{n}xf32>
  }}
  return
}}
"""
PLAIN, SWAPPED = "affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d1, d0)>"


def program(sizes, tile, threads, stages, form):
    (m, n, k), (tm, tn, tk) = sizes, tile
    a = ("%i, %p", PLAIN, f"{m}x{k}") if form[0] == "N" else ("%p, %i", SWAPPED, f"{k}x{m}")
    b = ("%p, %j", PLAIN, f"{k}x{n}") if form[1] == "N" else ("%j, %p", SWAPPED, f"{n}x{k}")
    return PROGRAM.format(m=m, n=n, k=k, tm=tm, tn=tn, tk=tk, threads=threads, stages=stages, a=a[2], b=b[2],
                          a_at=a[0], a_map=a[1], b_at=b[0], b_map=b[1])


def kernel_of(text):
    """The module at stage gpu, in the context in force."""
    module = ir.Module.parse(text)
    for name in ("assign-layouts", *DECISIONS, "distribute"):
        get_pass(name)().run(module, PassContext(chip=chips()["sm_90a"]))
        module.operation.verify()
    return module


def run(module, sizes, form):
    m, n, k = sizes
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((m, k), (k, n)))
    out = np.full((m, n), np.nan, np.float32)
    attributes = module.body.operations[0].regions[0].blocks[0].operations[0].operation.attributes
    grid = symbolic.evaluate(symbolic.parse(attributes["xcc.grid"].value), {})
    held = [np.ascontiguousarray(x if f == "N" else x.T) for x, f in zip((a, b), form, strict=True)]
    run_kernel(module, "matmul", (grid, 1, 1), (list(attributes["known_block_size"])[0], 1, 1), [*held, out],
               dynamic_shared=attributes["xcc.shared_bytes"].value)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("sizes, tile, threads, stages", [
    ((64, 64, 256), (64, 64, 64), 128, 4),
    ((128, 128, 192), (128, 128, 64), 256, 3),      # a warpgroup on each half of m
    ((64, 128, 128), (64, 128, 32), 256, 4),        # each half of n; rows of 64 bytes where k is nearest
    ((128, 32, 128), (128, 32, 128), 128, 2),       # two instructions along m; two blocks of rows along k
    ((64, 16, 64), (64, 16, 16), 128, 3),           # rows of 32 bytes
], ids=lambda v: "x".join(map(str, v)) if isinstance(v, tuple) else str(v))
def test_matmul(sizes, tile, threads, stages, form):
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = kernel_of(program(sizes, tile, threads, stages, form))
        assert '"xtg.wgmma"' in str(module)
        run(module, sizes, form)


START = 2**31 - 70000       # of the sums of bytes, which pass the end of 32 bits


@pytest.mark.parametrize("form", ["NT", "NN", "TN"])
@pytest.mark.parametrize("unsigned", [(), (0,), (1,), (0, 1)], ids=str)
def test_bytes(unsigned, form):
    """All signs, rows along k or not: shared memory has bytes along k."""
    sizes, tile = (64, 64, 256), (64, 32, 64)
    text = program(sizes, tile, 128, 3, form).replace("0.0 : f16", "0 : i8").replace("xf16", "xi8")
    text = text.replace("f16", "i8").replace("dense<0.0>", f"dense<{START}>").replace("f32", "i32")
    if unsigned:
        signs = f"xcc.unsigned = array<i64: {', '.join(map(str, unsigned))}>"
        text = text.replace("kind = #vector.kind<add>", f"kind = #vector.kind<add>, {signs}")
    m, n, k = sizes
    rng = np.random.default_rng(3)
    a, b = (rng.choice([0, 1, 255] if side in unsigned else [-128, 0, 127], s).astype(
        np.uint8 if side in unsigned else np.int8) for side, s in enumerate(((m, k), (k, n))))
    out = np.zeros((m, n), np.int32)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = kernel_of(text)
        assert '"xtg.wgmma"' in str(module)
        attributes = module.body.operations[0].regions[0].blocks[0].operations[0].operation.attributes
        held = [np.ascontiguousarray(x if f == "N" else x.T).view(np.int8) for x, f in zip((a, b), form, strict=True)]
        run_kernel(module, "matmul", (2, 1, 1), (128, 1, 1), [*held, out],
                   dynamic_shared=attributes["xcc.shared_bytes"].value)
    want = (a.astype(np.int64) @ b.astype(np.int64) + START).astype(np.int32)
    assert (want < 0).any()
    np.testing.assert_array_equal(out, want)


def nearest(x):
    """f32 rounded to 10 bits of mantissa, ties away from zero."""
    return ((x.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("form", ["NT", "NN", "TN"])
def test_tf32_is_rounded_to_nearest(form):
    """Tiles that are copied, in place; those that go through registers to lie along k, on their way."""
    sizes, tile = (128, 64, 96), (64, 64, 32)
    text = program(sizes, tile, 128, 3, form).replace("xf16", "xf32").replace("0.0 : f16", "0.0 : f32")
    m, n, k = sizes
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(0.5, 1, s).astype(np.float32) for s in ((m, k), (k, n)))
    a[1, 2] = np.inf
    out = np.zeros((m, n), np.float32)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = kernel_of(text.replace("kind = #vector.kind<add>", "kind = #vector.kind<add>, xcc.lossy"))
        assert 'types = ["f32", "f32"]' in str(module)
        attributes = module.body.operations[0].regions[0].blocks[0].operations[0].operation.attributes
        held = [np.ascontiguousarray(x if f == "N" else x.T) for x, f in zip((a, b), form, strict=True)]
        run_kernel(module, "matmul", (2, 1, 1), (128, 1, 1), [*held, out],
                   dynamic_shared=attributes["xcc.shared_bytes"].value)
    assert np.isposinf(out[1]).all()
    a[1, 2] = 1
    kept = np.delete(np.arange(m), 1)
    want = nearest(a).astype(np.float64) @ nearest(b).astype(np.float64)
    np.testing.assert_allclose(out[kept], want[kept], rtol=1e-6)
    assert np.abs(out[kept] - a[kept].astype(np.float64) @ b).max() > 1e-4      # so it is another product


UNALIGNED = program((64, 64, 128), (64, 64, 64), 128, 4, "NN").replace("memref<128x64xf16>", "memref<128x65xf16>")


def run_unaligned(module):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((64, 128), (128, 65)))
    out = np.full((64, 64), np.nan, np.float32)
    run_kernel(module, "matmul", (1, 1, 1), (128, 1, 1), [a, b, out], dynamic_shared=1 << 17)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b[:, :64].astype(np.float32))


def test_rows_that_are_not_aligned():
    """Rows of 2 * 65 bytes: such tiles go through registers, in slots of their own."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = kernel_of(UNALIGNED)
        assert "nvvm.fence.proxy" in str(module)
        run_unaligned(module)


@pytest.mark.parametrize("kind, line, text, execute", [
    ("unfenced-write", "nvvm.fence.proxy", UNALIGNED, run_unaligned),
    ("pending-read", "nvvm.wgmma.wait.group", program((64, 64, 512), (64, 64, 64), 128, 4, "NN"),
     lambda module: run(module, (64, 64, 512), "NN")),
    ("pending-copy", "nvvm.cp.async.wait", program((64, 64, 512), (64, 64, 64), 128, 4, "NN"),
     lambda module: run(module, (64, 64, 512), "NN"))], ids=lambda v: v if isinstance(v, str) and len(v) < 40 else "")
def test_what_the_interpreter_catches(kind, line, text, execute):
    """Without the loop's fences or waits the kernel is wrong, and is seen to be."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        lines = str(kernel_of(text)).splitlines()
        without = [x for x in lines if line not in x]
        assert len(without) < len(lines)
        with pytest.raises(KernelFault) as e:
            execute(ir.Module.parse("\n".join(without)))
        assert e.value.kind == kind
