"""Tile programs: blocks of values, one program for each place of a grid, on CPUs and GPUs alike.

    from xcc import tile

    def softmax(x, y):
        row = tile.program_id(0)
        t = tile.load(x, (row, 0), (1, 1024), other=-math.inf)
        e = tile.exp(t - t.max(axis=1, keepdims=True))
        tile.store(y, (row, 0), e / e.sum(axis=1, keepdims=True))

    matrix = tile.BufferOf("f32", (None, None))
    program = tile.build("softmax", {"x": matrix, "y": matrix}, softmax, grid=("x_0",))
    tile.run(program, [x, y])                 # on this CPU
    tile.evaluate(program, [x, y])            # by numpy: what it means
    print(program)                            # MLIR, which tile.parse() and xcc-opt read

The functions are those of `functions`, `combining` and `random`; loops and branches are `for_`, `while_` and `if_`.
"""

from xcc.tile.combining import (
    all,
    any,
    argmax,
    argmin,
    cummax,
    cumprod,
    cumsum,
    dot,
    max,
    min,
    order,
    prod,
    reduce,
    scan,
    sort,
    sum,
)
from xcc.tile.control import for_, if_, while_
from xcc.tile.evaluate import Watch, bind, evaluate
from xcc.tile.functions import (
    abs,
    acos,
    arange,
    asin,
    assert_,
    atan,
    bitcast,
    broadcast_to,
    cdiv,
    ceil,
    clip,
    constant,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expand_dims,
    expm1,
    floor,
    fma,
    full,
    join,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    mulhi,
    num_programs,
    power,
    print_,
    program_id,
    roundeven,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    split,
    sqrt,
    tan,
    tanh,
    transpose,
    unsupported,
    where,
    zeros,
)
from xcc.tile.memory import Buffer, atomic, compare_swap, gather, load, scatter, store
from xcc.tile.places import located, not_mine
from xcc.tile.places import where as caller
from xcc.tile.program import BufferOf, Program, ScalarOf, build, parse
from xcc.tile.random import philox, random
from xcc.tile.running import Compiled, compile, run
from xcc.tile.values import Value, convert

__all__ = [
    "Buffer", "BufferOf", "Compiled", "Program", "ScalarOf", "Value", "Watch", "abs", "acos", "all", "any", "arange",
    "argmax", "argmin", "asin", "assert_", "atan", "atomic", "bind", "bitcast", "broadcast_to", "build", "caller",
    "cdiv", "ceil", "clip", "compare_swap", "compile", "constant", "convert", "cos", "cosh", "cummax", "cumprod",
    "cumsum", "dot", "erf", "evaluate", "exp", "exp2", "expand_dims", "expm1", "floor", "fma", "for_", "full",
    "gather", "if_", "join", "load", "located", "log", "log1p", "log2", "max", "maximum", "min", "minimum", "mulhi",
    "not_mine", "num_programs", "order", "parse", "philox", "power", "print_", "prod", "program_id", "random",
    "reduce", "roundeven", "rsqrt", "run", "scan", "scatter", "sigmoid", "sin", "sinh", "sort", "split", "sqrt",
    "store", "sum", "tan", "tanh", "transpose", "unsupported", "where", "while_", "zeros",
]
