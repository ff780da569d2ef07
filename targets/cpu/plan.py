"""The planning of a run's memory as a native function, for a program with symbolic sizes.

    int64 xcc_plan(int64 *symbols, int64 arena, int64 *work, int64 *dims, void **buffers)

`symbols` has the values of ``program.symbols``; `arena` is the arena's address. Returns the bytes that the arena needs,
or -1 where the caller is to plan, as a size does not fit 64 bits or memory, a division is by less than 1, or a
temporary or an output is empty. Writes the dims of the outputs, one after the other, into `dims`, the address of each
temporary buffer into `buffers` (an entry a buffer of the program), and into `work`, four rows of an i64 a temporary:
where each begins in the arena, where it ends, its size, and the temporaries by size. The caller fills the last row with
0, 1, 2, ... once.

Temporaries are placed as :class:`xcc.runtime.arena.ArenaPlanner` does it in Python, a hundred times as fast.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate, chain

from xcc.runtime.arena import ALIGNMENT, ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.runtime.program import Program
from xcc.symbolic import NUMBERS, Dim

MOST_BYTES = 1 << 48        # of a buffer: the sum of all does not overflow
BEGIN, END, SIZE, ORDER = "%c0", "%c1", "%c2", "%c3"        # rows of `work`

_STEPS: dict[Callable[[int, int], int], Sequence[str]] = {
    operator.add: ('%r{n} = "llvm.intr.sadd.with.overflow"(%{a}, %{b}) : (i64, i64) -> !llvm.struct<(i64, i1)>',
                   "%{n} = llvm.extractvalue %r{n}[0] : !llvm.struct<(i64, i1)>",
                   "%f{n} = llvm.extractvalue %r{n}[1] : !llvm.struct<(i64, i1)>"),
    operator.mul: ('%r{n} = "llvm.intr.smul.with.overflow"(%{a}, %{b}) : (i64, i64) -> !llvm.struct<(i64, i1)>',
                   "%{n} = llvm.extractvalue %r{n}[0] : !llvm.struct<(i64, i1)>",
                   "%f{n} = llvm.extractvalue %r{n}[1] : !llvm.struct<(i64, i1)>"),
    operator.floordiv: ("%d{n} = arith.maxsi %{b}, %one : i64", "%{n} = arith.floordivsi %{a}, %d{n} : i64",
                        "%f{n} = arith.cmpi slt, %{b}, %one : i64"),
    operator.mod: ("%d{n} = arith.maxsi %{b}, %one : i64", "%q{n} = arith.floordivsi %{a}, %d{n} : i64",
                   "%m{n} = arith.muli %q{n}, %d{n} : i64", "%{n} = arith.subi %{a}, %m{n} : i64",
                   "%f{n} = arith.cmpi slt, %{b}, %one : i64"),
    NUMBERS["truncdiv"]: ("%d{n} = arith.maxsi %{b}, %one : i64", "%{n} = arith.divsi %{a}, %d{n} : i64",
                          "%f{n} = arith.cmpi slt, %{b}, %one : i64"),
    NUMBERS["root"]: ("%w{n} = arith.maxsi %{a}, %zero : i64", "%x{n} = arith.sitofp %w{n} : i64 to f64",
                      "%y{n} = math.sqrt %x{n} : f64", "%{n} = arith.fptosi %y{n} : f64 to i64"),
    NUMBERS["scaled"]: ("%x{n} = arith.sitofp %{a} : i64 to f64", "%y{n} = arith.bitcast %{b} : i64 to f64",
                        "%z{n} = arith.mulf %x{n}, %y{n} : f64", "%w{n} = math.floor %z{n} : f64",
                        "%{n} = arith.fptosi %w{n} : f64 to i64"),
    NUMBERS["divisor"]: ("%w{n} = arith.minsi %{a}, %{b} : i64", "%s{n} = arith.maxsi %w{n}, %one : i64",
                         "%{n} = scf.while (%d{n} = %s{n}) : (i64) -> i64 {{",
                         "  %m{n} = arith.remsi %{a}, %d{n} : i64", "  %i{n} = arith.cmpi ne, %m{n}, %zero : i64",
                         "  %j{n} = arith.cmpi sgt, %d{n}, %one : i64", "  %k{n} = arith.andi %i{n}, %j{n} : i1",
                         "  scf.condition(%k{n}) %d{n} : i64", "}} do {{", "^bb0(%d{n}: i64):",
                         "  %e{n} = arith.subi %d{n}, %one : i64", "  scf.yield %e{n} : i64", "}}"),
    max: ("%{n} = arith.maxsi %{a}, %{b} : i64",),
    min: ("%{n} = arith.minsi %{a}, %{b} : i64",),
}
"""What computes a step `n` from the values `a` and `b`; f, where it has one, is whether it failed."""


def plan_function(program: Program, dims: Sequence[Dim]) -> str:
    """MLIR text of ``@xcc_plan``, and its tables, for `dims` of outputs; "" where `program` has no symbols, or a size
    depends on others than these."""
    planner = ArenaPlanner(program)
    values = DimValues((*dims, *planner.counts), planner.limits)
    if not program.symbols or not set(values.symbols) <= set(program.symbols):
        return ""
    if any(abs(n) >> 63 for n in values.leaves):
        return ""
    count, slots, buffers = len(planner.temps), max(1, len(dims)), max(1, len(program.buffers))
    work = f"memref<4x{max(1, count)}xi64>"         # one of no elements would not become a plain pointer
    tables = {"firsts": list(accumulate(map(len, planner.conflicts), initial=0)),
              "conflicts": list(chain.from_iterable(planner.conflicts)), "temps": planner.temps}
    head = [f'memref.global "private" constant @xcc_plan_{name} : memref<{max(1, len(table))}xi32> = '
            f"dense<{table or [0]}>" for name, table in tables.items()]
    lines = [*_sizes(program.symbols, values), *_results(values, len(dims), planner.count_of, work)]
    text = _PLACING.format(count=count, work=work, buffers=buffers, conflicts=max(1, len(
        tables["conflicts"])), firsts=count + 1, temps=max(1, count), BEGIN=BEGIN, END=END, SIZE=SIZE, ORDER=ORDER)
    return "\n".join([
        *head, f"func.func @xcc_plan(%symbols: memref<{len(program.symbols)}xi64>, %arena: i64, %work: {work}, "
        f"%dims: memref<{slots}xi64>, %buffers: memref<{buffers}xi64>) -> i64 {{", *lines, text, "}"])


def _sizes(symbols: Sequence[str], values: DimValues) -> list[str]:
    """The value of each step and leaf as ``%v<place>``, and ``%unknown``: whether one could not be computed."""
    end = len(values) + len(values.leaves)
    names = [f"v{n}" for n in range(end)]           # a place from the end counts back
    lines = [f"%c{n} = arith.constant {n} : index" for n in range(4)]
    numbers = {"zero": 0, "one": 1, "most": MOST_BYTES, "line": ALIGNMENT - 1, "lines": -ALIGNMENT}
    lines += [f"%{name} = arith.constant {number} : i64" for name, number in numbers.items()]
    lines.append("%false = arith.constant false")
    used = {at % end: symbols.index(s) for s, at in values.symbols.items()}
    for n, number in enumerate(values.leaves, len(values)):
        if n in used:
            lines += [f"%at{n} = arith.constant {used[n]} : index",
                      f"%v{n} = memref.load %symbols[%at{n}] : memref<{len(symbols)}xi64>"]
        else:
            lines.append(f"%v{n} = arith.constant {number} : i64")
    failed = "%false"
    for n, (function, a, b) in enumerate(values.steps):
        step = [s.replace("%{n}", f"%v{n}").format(n=n, a=names[a], b=names[b]) for s in _STEPS[function]]
        lines += step
        if any(s.startswith(f"%f{n} =") for s in step):
            lines.append(f"%g{n} = arith.ori {failed}, %f{n} : i1")
            failed = f"%g{n}"
    return [*lines, f"%unknown = arith.ori {failed}, %false : i1"]


def _results(values: DimValues, dims: int, count_of: Sequence[int], work: str) -> list[str]:
    """Stores the outputs' dims, and the bytes of each temporary in whole lines; ``%fail``: whether one is too large, or
    empty."""
    places = [f"%v{at % (len(values) + len(values.leaves))}" for at in values.results]
    lines = []
    failed = "%unknown"
    for n, value in enumerate(places[:dims]):
        lines += [f"%o{n} = arith.constant {n} : index", f"memref.store {value}, %dims[%o{n}] : memref<{dims}xi64>",
                  f"%none{n} = arith.cmpi eq, {value}, %zero : i64", f"%nones{n} = arith.ori {failed}, %none{n} : i1"]
        failed = f"%nones{n}"
    for n, value in enumerate(places[dims:]):
        lines += [f"%some{n} = arith.maxsi {value}, %one : i64", f"%over{n} = arith.addi %some{n}, %line : i64",
                  f"%size{n} = arith.andi %over{n}, %lines : i64",
                  f"%large{n} = arith.cmpi sge, %some{n}, %most : i64",
                  f"%empty{n} = arith.cmpi eq, {value}, %zero : i64",
                  f"%strange{n} = arith.ori %large{n}, %empty{n} : i1",
                  f"%fails{n} = arith.ori {failed}, %strange{n} : i1"]
        failed = f"%fails{n}"
    for n, which in enumerate(count_of):
        lines += [f"%b{n} = arith.constant {n} : index", f"memref.store %size{which}, %work[{SIZE}, %b{n}] : {work}"]
    return [*lines, f"%fail = arith.ori {failed}, %false : i1"]


_PLACING = """
%count = arith.constant {count} : index
%used = scf.if %fail -> i64 {{
  %none = arith.constant -1 : i64
  scf.yield %none : i64
}} else {{
  // The largest first, of the same size the first. They come sorted for the sizes before these: few move.
  scf.for %n = %c0 to %count step %c1 {{
    %taken = memref.load %work[{ORDER}, %n] : {work}
    %taken_at = arith.index_cast %taken : i64 to index
    %size = memref.load %work[{SIZE}, %taken_at] : {work}
    %place = scf.while (%at = %n) : (index) -> index {{
      %first = arith.cmpi eq, %at, %c0 : index
      %moves = scf.if %first -> i1 {{
        scf.yield %false : i1
      }} else {{
        %before = arith.subi %at, %c1 : index
        %other = memref.load %work[{ORDER}, %before] : {work}
        %other_at = arith.index_cast %other : i64 to index
        %other_size = memref.load %work[{SIZE}, %other_at] : {work}
        %less = arith.cmpi slt, %other_size, %size : i64
        %same = arith.cmpi eq, %other_size, %size : i64
        %later = arith.cmpi sgt, %other, %taken : i64
        %tie = arith.andi %same, %later : i1
        %move = arith.ori %less, %tie : i1
        scf.if %move {{
          memref.store %other, %work[{ORDER}, %at] : {work}
        }}
        scf.yield %move : i1
      }}
      scf.condition(%moves) %at : index
    }} do {{
    ^bb0(%at: index):
      %before = arith.subi %at, %c1 : index
      scf.yield %before : index
    }}
    memref.store %taken, %work[{ORDER}, %place] : {work}
    memref.store %zero, %work[{BEGIN}, %n] : {work}
    memref.store %zero, %work[{END}, %n] : {work}
  }}
  // Each at the lowest gap between those alive with it that have a place.
  %firsts = memref.get_global @xcc_plan_firsts : memref<{firsts}xi32>
  %conflicts = memref.get_global @xcc_plan_conflicts : memref<{conflicts}xi32>
  %temps = memref.get_global @xcc_plan_temps : memref<{temps}xi32>
  %end_of_all = scf.for %n = %c0 to %count step %c1 iter_args(%so_far = %zero) -> i64 {{
    %taken = memref.load %work[{ORDER}, %n] : {work}
    %at = arith.index_cast %taken : i64 to index
    %size = memref.load %work[{SIZE}, %at] : {work}
    %behind = arith.addi %at, %c1 : index
    %first32 = memref.load %firsts[%at] : memref<{firsts}xi32>
    %stop32 = memref.load %firsts[%behind] : memref<{firsts}xi32>
    %first = arith.index_cast %first32 : i32 to index
    %stop = arith.index_cast %stop32 : i32 to index
    %begin = scf.while (%old = %zero) : (i64) -> i64 {{
      %new = scf.for %k = %first to %stop step %c1 iter_args(%b = %old) -> i64 {{
        %other32 = memref.load %conflicts[%k] : memref<{conflicts}xi32>
        %other = arith.index_cast %other32 : i32 to index
        %its_begin = memref.load %work[{BEGIN}, %other] : {work}
        %its_end = memref.load %work[{END}, %other] : {work}
        %e = arith.addi %b, %size : i64
        %under = arith.cmpi slt, %its_begin, %e : i64
        %over = arith.cmpi sgt, %its_end, %b : i64
        %hit = arith.andi %under, %over : i1
        %next = arith.select %hit, %its_end, %b : i64
        scf.yield %next : i64
      }}
      %moved = arith.cmpi ne, %new, %old : i64
      scf.condition(%moved) %new : i64
    }} do {{
    ^bb0(%new: i64):
      scf.yield %new : i64
    }}
    %end = arith.addi %begin, %size : i64
    memref.store %begin, %work[{BEGIN}, %at] : {work}
    memref.store %end, %work[{END}, %at] : {work}
    %buffer32 = memref.load %temps[%at] : memref<{temps}xi32>
    %buffer = arith.index_cast %buffer32 : i32 to index
    %address = arith.addi %arena, %begin : i64
    memref.store %address, %buffers[%buffer] : memref<{buffers}xi64>
    %largest = arith.maxsi %so_far, %end : i64
    scf.yield %largest : i64
  }}
  scf.yield %end_of_all : i64
}}
return %used : i64"""
