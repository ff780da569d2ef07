"""Words that are combined one after the other are what vectors of them were; LLVM makes code of sort keys for CDNA."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import xcc
from xcc import tile
from xcc.context import new_context, parse_module
from xcc.frontends.kernel.trace import trace
from xcc.passes.base import PassContext, get_pass
from xcc.targets.llvm_text import llvm_ir

WORDS = """llvm.func @words(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) {
  %x = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
  %y = llvm.load %b {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
  %p = llvm.and %x, %y : vector<4xi32>
  %q = llvm.or %p, %y : vector<4xi32>
  %r = llvm.xor %q, %x : vector<4xi32>
  llvm.store %r, %c {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr
  llvm.return
}"""


def test_numbers() -> None:
    import llvmlite.binding as llvm

    with new_context() as context:
        module = parse_module(WORDS, context, "words")
        get_pass("scalar-bits")().run(module, PassContext())
        text = llvm_ir(module)
    assert "and <4 x i32>" not in text and text.count("= and i32") == 4
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    made = llvm.parse_assembly(text)
    made.data_layout = str(machine.target_data)
    with llvm.create_mcjit_compiler(made, machine) as engine:
        engine.finalize_object()
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("words"))
        a, b = np.random.default_rng(0).integers(0, 1 << 32, (2, 4)).astype(np.uint32)
        c = np.zeros(4, np.uint32)
        run(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    np.testing.assert_array_equal(c, ((a & b) | b) ^ a)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942"])
def test_upper_halves_of_keys(chip: str) -> None:
    @xcc.kernel
    def halves(x, y):       # type: ignore[no-untyped-def]
        t = x.tile(0, 128, other=0)
        u = (t.max() + t >> 32).to(xcc.ui32)
        y.store(0, xcc.where(u >> 31 != 0, u & 0x7FFFFFFF, ~u))

    program = trace(halves.function, "halves", {}, {"x": tile.BufferOf("ui64", (100,)),
                                                    "y": tile.BufferOf("ui32", (100,))})
    assert tile.compile(program, "amdgcn", chip).binary is not None
