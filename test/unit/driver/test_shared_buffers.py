"""Whether a compiled kernel's input and output may be the same memory, from its accesses alone."""

from __future__ import annotations

import pytest

from xcc._mlir import ir
from xcc.driver.shared_buffers import Wanted, shared_buffers

TEXT = """
func.func @k(%a: memref<64xf32>, %b: memref<64xf32>, %r: memref<64xf32>) {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant 0.0 : f32
  {body}
  return
}}
"""
LOOP = "scf.for %i = %c0 to %c64 step %c8 {{ {0} }}"
READ = "%v = vector.transfer_read %a[%i], %z {in_bounds = [true]} : memref<64xf32>, vector<8xf32>"
WRITE = "vector.transfer_write %v, %r[%i] {in_bounds = [true]} : vector<8xf32>, memref<64xf32>"
AGAIN = READ.replace("%v", "%w")
NEXT = "%j = arith.addi %i, %c8 : index\n"
SAME = "%j = arith.addi %i, %c0 : index\n%k = arith.addi %i, %c0 : index\n"


@pytest.mark.parametrize(("body", "allowed"), [
    (LOOP.format(f"{READ}\n{WRITE}"), True),
    (LOOP.format(f"{READ}\n{AGAIN}\n{WRITE}"), True),
    (LOOP.format(f"{READ}\n{WRITE}\n{AGAIN}"), False),                                      # what was written
    (LOOP.format(f"{NEXT}{READ.replace('%i', '%j')}\n{WRITE}"), False),                     # another place
    (LOOP.format(f"{SAME}{READ.replace('%i', '%j')}\n{WRITE.replace('%i', '%k')}"), True),  # computed alike
    (LOOP.format(READ) + "\n" + LOOP.format(f"{READ}\n{WRITE}"), False),                    # also in another loop
    (LOOP.format(f"{READ}\n{WRITE}\n{WRITE}"), False),
    (LOOP.format(f"{READ.replace('%a', '%b')}\n{WRITE}"), False),                           # nothing of it is read
    (LOOP.format(f"%u = vector.transfer_read %a[%i], %z {{in_bounds = [true]}} : memref<64xf32>, vector<4xf32>\n"
                 f"{READ.replace('%a', '%b')}\n{WRITE}"), False),                           # of another width
    (LOOP.format(f"{READ}\n{WRITE}\nmemref.prefetch %a[%i], read, locality<3>, data : memref<64xf32>"), True),
    (LOOP.format(f"{READ}\n{WRITE}") + "\nmemref.copy %a, %b : memref<64xf32> to memref<64xf32>", False),
    (LOOP.format(f"{READ}\n{WRITE}\n{READ.replace('%v', '%w').replace('%a', '%r')}"), False)])
def test_accesses(body: str, allowed: bool) -> None:
    with ir.Context():
        module = ir.Module.parse(TEXT.format(body=body))
        assert shared_buffers(module, Wanted(2, ((0, 0),))) == (((0, 0),) if allowed else ())


def test_every_function_of_a_kernel_counts() -> None:
    whole = TEXT.format(body=LOOP.format(f"{READ}\n{WRITE}"))
    other = TEXT.format(body=LOOP.format(READ)).replace("@k", "@k_few")
    with ir.Context():
        assert shared_buffers(ir.Module.parse(whole + whole.replace("@k", "@k_few")), Wanted(2, ((0, 0), (1, 0)))) \
            == ((0, 0),)
        assert not shared_buffers(ir.Module.parse(whole + other), Wanted(2, ((0, 0),)))
