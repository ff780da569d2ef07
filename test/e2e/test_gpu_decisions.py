"""What passes decide ahead of `distribute`: obeyed as it is, edited, and where it is missing, by the interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.interpreter.kernel import Options, run_kernel
from xcc.passes.base import PassContext, get_pass
from xcc.targets.amdgcn.chip import CHIPS as AMD
from xcc.targets.gpu_module import kernel_launches
from xcc.targets.gpu_stages import DECISIONS
from xcc.targets.nvptx.chip import chips

ALL = {**chips(), **AMD}
M, N, K = 128, 128, 512

# relu(a b^T + bias) + rest in tiles of 64x64
PROGRAM = f"""
func.func @product(%a: memref<{M}x{K}xf16>, %b: memref<{N}x{K}xf16>, %bias: memref<{N}xf16>,
                   %rest: memref<{M}x{N}xf16>, %o: memref<{M}x{N}xf16>)
    attributes {{xt.kernel, xcc.config = {{gpu = {{threads = 128 : i64, stages = 4 : i64, warpgroup = true,
                                                 group = 2 : i64, persistent = 3 : i64}}}}}} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = arith.constant {K} : index
  %h = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<64x64xf16>
  scf.forall (%i, %j) = (0, 0) to ({M}, {N}) step (64, 64) {{
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %r = scf.for %p = %c0 to %end step %step iter_args(%acc = %zero) -> (vector<64x64xf32>) {{
      %ta = vector.transfer_read %a[%i, %p], %h {{in_bounds = [true, true]}} : memref<{M}x{K}xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%j, %p], %h {{in_bounds = [true, true]}} : memref<{N}x{K}xf16>, vector<64x64xf16>
      %c = vector.contract {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
          affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>}} %ta, %tb, %acc : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
      scf.yield %c : vector<64x64xf32>
    }}
    %t = arith.truncf %r : vector<64x64xf32> to vector<64x64xf16>
    %l = vector.transfer_read %bias[%j], %h {{in_bounds = [true]}} : memref<{N}xf16>, vector<64xf16>
    %w = vector.broadcast %l : vector<64xf16> to vector<64x64xf16>
    %s = arith.addf %t, %w : vector<64x64xf16>
    %u = arith.maximumf %s, %none : vector<64x64xf16>
    %x = vector.transfer_read %rest[%i, %j], %h {{in_bounds = [true, true]}} : memref<{M}x{N}xf16>, vector<64x64xf16>
    %y = arith.addf %u, %x : vector<64x64xf16>
    vector.transfer_write %y, %o[%i, %j] {{in_bounds = [true, true]}} : vector<64x64xf16>, memref<{M}x{N}xf16>
  }}
  return
}}
"""


def decided(chip: str, dropped: tuple[str, ...] = ()) -> str:
    """The program with what passes decide for `chip`, those in `dropped` left out."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(PROGRAM)
        for name in ("assign-layouts", *DECISIONS):
            if name not in dropped:
                get_pass(name)().run(module, PassContext(chip=ALL[chip]))
        assert module.operation.verify()
        return str(module)


def emitted(text: str, chip: str) -> str:
    """The code of a thread that `distribute` makes of it, which must compute what numpy does."""
    rng = np.random.default_rng(1)
    a, b, bias, rest = (rng.integers(-3, 4, s).astype(np.float16) for s in ((M, K), (N, K), (N,), (M, N)))
    out = np.full((M, N), np.nan, np.float16)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        get_pass("distribute")().run(module, PassContext(chip=ALL[chip]))
        assert module.operation.verify()
        [launch] = kernel_launches(module)
        run_kernel(module, launch.entry, (symbolic.evaluate(launch.grid[0], {}), 1, 1), launch.block,
                   [a, b, bias, rest, out], options=Options(warp=ALL[chip].warp), dynamic_shared=launch.shared_bytes)
        want = np.maximum(a.astype(np.float64) @ b.astype(np.float64).T + bias, 0) + rest
        np.testing.assert_array_equal(out, want.astype(np.float16))
        return str(module)


def edited(text: str, *edits: tuple[str, str]) -> str:
    for pattern, new in edits:
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    return text


@pytest.mark.parametrize("chip", ["sm_90a", "sm_80", "gfx942", "gfx1100"])
def test_as_decided(chip: str) -> None:
    emitted(decided(chip), chip)


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("dropped", [*((name,) for name in DECISIONS), DECISIONS], ids="-".join)
def test_dropped(dropped: tuple[str, ...], chip: str) -> None:
    """Without a pass the plain form is emitted, and right."""
    code = emitted(decided(chip, dropped), chip)
    if dropped == DECISIONS:
        assert "async_copy" not in code and "iter_args" in code


ROWS = "tile=[4096] dim0=[[64],[128],[256],[512],[1024],[2048]] dim1=[[1],[2],[4],[8],[16],[32]]"
EDITS: dict[str, tuple[str, tuple[tuple[str, str], ...], Callable[[str], Any]]] = {
    "fewer-stages": ("sm_80", ((r"slots = 4", "slots = 3"),), lambda code: "wait.group 1" in code),
    "another-place": ("sm_80", ((r"offset = 32768", "offset = 65536"),), lambda code: "shared_bytes = 98304" in code),
    "through-registers": ("sm_80", ((r'"async"', '"registers"'), (r"slots = 4", "slots = 2")),
                          lambda code: "async" not in code),
    "one-operand": ("sm_80", ((r"(xcc.staged = \[)\{[^}]*\}", r"\1{}"),), lambda code: "async" in code),
    "waits-for-itself": ("sm_90a", ((r"xcc.in_flight = 1 : i64, ", ""), (r", xcc.persistent = 3 : i64", "")),
                         lambda code: "wgmma.wait.group" not in code),
    "more-behind-the-loop": ("sm_80", ((r"xcc.peeled = 3", "xcc.peeled = 5"),),
                             lambda code: code.count("device_async_copy") < 60),
    "all-behind-the-loop": ("gfx942", ((r"xcc.peeled = 2", "xcc.peeled = 8"), (r", xcc.unroll = 2 : i64", "")),
                            lambda code: "scf.for" not in code),
    "unrolled-by-three": ("gfx942", ((r"xcc.unroll = 2", "xcc.unroll = 3"),), lambda code: "count = 3" in code),
    "other-workgroups": ("sm_90a", ((r"xcc.persistent = 3", "xcc.persistent = 2"),),
                         lambda code: 'xcc.grid = "2"' in code),
    "a-workgroup-each": ("sm_90a", ((r", xcc.persistent = 3 : i64", ""),), lambda code: 'xcc.grid = "4"' in code),
    "other-groups": ("sm_80", ((r"xcc.group = 2", "xcc.group = 3"),), lambda _: True),
    "row-by-row": ("sm_80", ((r"xcc.group = 2 : i64", ""),), lambda _: True),
    "smaller-pieces": ("sm_90a", ((r"xcc.pieces = 16", "xcc.pieces = 8"),), lambda code: "vector<8xf16>" in code),
    "whole": ("sm_90a", ((r", xcc.pieces = 16 : i64", ""), (r"xcc.in_pieces, ", ""), (r", xcc.prefetch = 4 : i64", "")),
              lambda code: "arith.maximumf" in code and "vector<32xf16>" in code),
    "a-part-whole": ("sm_90a", ((r"(arith.maximumf [^{]*\{)xcc.in_pieces, ", r"\1"),),
                     lambda code: "vector<32xf16>" in code),
    "fragments-in-turn": ("gfx942", ((r'xcc.fragments = "ahead"', 'xcc.fragments = "in_turn"'),), lambda _: True),
    "later-loads": ("sm_90a", ((r"xcc.prefetch = 4", "xcc.prefetch = 2"),), lambda _: True),
    "another-order": ("gfx942", ((r'(xcc.staged = \[\{[^}]*memory = )"[^"]*"', rf'\1"{ROWS}"'),), lambda _: True),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited(name: str) -> None:
    """What somebody wrote is what is emitted."""
    chip, edits, shows = EDITS[name]
    assert shows(emitted(edited(decided(chip), *edits), chip))


WRONG = {
    "one-slot": ("sm_80", (r"slots = 4", "slots = 1"), "copied asynchronously has 2 slots or more"),
    "overlap": ("sm_80", (r"offset = 32768", "offset = 16"), "byte 16 is no multiple of 16, in another tile"),
    "too-far": ("sm_80", (r"offset = 32768", "offset = 163840"), "byte 163840"),
    "unknown-load": ("sm_80", (r'"async"', '"magic"'), "cannot be loaded by 'magic'"),
    "no-copies": ("gfx942", (r'"registers"', '"async"'), "has not the form of asynchronous copies"),
    "no-layout": ("sm_80", (r'memory = "[^"]*"', 'memory = "sideways"'), "has no memory layout"),
    "not-the-instructions": ("sm_90a", (r'memory = "[^"]*"', f'memory = "{ROWS}"'), "that its contraction can read"),
    "more-than-all": ("sm_80", (r"xcc.peeled = 3", "xcc.peeled = 9"), "9 of 8 steps behind it"),
    "no-divisor": ("gfx942", (r"xcc.unroll = 2", "xcc.unroll = 4"), "xcc.unroll = 4 of 6 steps"),
    "not-persistent": ("sm_80", (r"xcc.group = 2", "xcc.persistent = 3 : i64, xcc.group = 2"), "cannot be obeyed"),
    "no-piece": ("sm_80", (r"xcc.staged", "xcc.in_pieces, xcc.staged"), "vector.contract cannot be computed in pieces"),
    "too-early": ("sm_90a", (r"xcc.prefetch = 4", "xcc.prefetch = 9"), "cannot be loaded in its last steps"),
    "early-and-whole": ("sm_90a", (r"xcc.in_pieces, (xcc.layout = [^}]*xcc.prefetch)", r"\1"), "cannot be obeyed"),
    "no-time": ("gfx942", (r'xcc.fragments = "ahead"', 'xcc.fragments = "often"'), "neither 'ahead' nor 'in_turn'"),
    "runs-on": ("sm_80", (r"xcc.stages = 4", "xcc.in_flight = 1 : i64, xcc.stages = 4"), "what runs on are warpgroups"),
}


@pytest.mark.parametrize("name", WRONG)
def test_cannot_be_obeyed(name: str) -> None:
    chip, edit, message = WRONG[name]
    with pytest.raises(UserError, match=re.escape(message)) as raised:
        emitted(edited(decided(chip), edit), chip)
    assert "loc(" in str(raised.value)


SHARED = r'by = "shared", memory = "[^"]*"'


@pytest.mark.parametrize("new, message", [
    ('by = "pieces"', ""), (f'by = "shared", memory = "{ROWS}"', ""), ('by = "registers"', "other threads hold"),
    ('by = "magic"', "no layout is converted by 'magic'"),
    ('by = "shared", memory = "tile=[4]"', "no places of their own")])
def test_exchanges(new: str, message: str) -> None:
    """Fragments of operands that are not staged, converted in another way."""
    text = edited(decided("sm_80", ("stage-operands",)), (SHARED, new))
    if not message:
        emitted(text, "sm_80")
        return
    with pytest.raises(UserError, match=re.escape(message)):
        emitted(text, "sm_80")
