"""Traces in which sizes of 0 and 1, and those that are equal by chance, are as any other (``xcc.torch.compile``).

torch's own code guards there against sizes that compiled code takes, too; each would compile the model again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from types import BuiltinFunctionType, FrameType
from typing import Any, cast

import sympy
import torch
from torch import _prims_common
from torch._decomp import decomposition_table
from torch._dynamo import symbolic_convert
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.variables import UserFunctionVariable, builder
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.builtin import BuiltinVariable
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable as Called
from torch._subclasses import FakeTensorMode, fake_impls
from torch.fx.experimental import _config as sizes
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree
from torch.utils._sympy import solve

from xcc.frontends.torch.branches import merge_branches_of_nothing
from xcc.frontends.torch.fake_ops import declare_fake_ops
from xcc.frontends.torch.fx_facts import hint_of
from xcc.frontends.torch.kernel_choice import guarding_strides, of_kernels
from xcc.frontends.torch.layers import whole_layers
from xcc.frontends.torch.layout_of_nothing import lay_out_nothing
from xcc.frontends.torch.long_traces import told_when_long
from xcc.frontends.torch.nested_sizes import Patience, uncached
from xcc.frontends.torch.reshapes import guarded_reshapes, of_copies_alone, watched_reshapes
from xcc.frontends.torch.scans import by_loops
from xcc.frontends.torch.size_answers import is_of_numbers, is_of_ones, is_size, learned, of_all, of_elements, settle
from xcc.frontends.torch.size_order import undivided, within_range
from xcc.frontends.torch.sized_functions import by_sizes, method_by_sizes
from xcc.frontends.torch.traced_numbers import constants_in_branches, constants_of_modules, tensors_of_numbers
from xcc.frontends.torch.tuple_indices import by_selects, set_by_selects

__all__ = ["compile_all_sizes", "guarded"]


def compile_all_sizes(model: Callable[..., Any], backend: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """``torch.compile(model, backend=backend, dynamic=True, options=options)``, all sizes alike, equal options, too."""
    _without_guards_of_torch()
    declare_fake_ops()
    chosen = torch._TorchCompileWrapper(backend, None, dict(options), True)     # type: ignore[no-untyped-call]
    context: Any = torch._dynamo.optimize(chosen, dynamic=True)
    context.callback = _Tracing(context.callback)
    return context(model)


class _Tracing:
    """What Dynamo calls for a frame that it has not compiled for such arguments: torch's settings hold while it traces
    alone, so that a call of what is compiled pays nothing for them."""

    def __init__(self, callback: Any) -> None:
        self.__dict__ |= vars(callback)     # the backend, which belongs to the key of what is compiled
        self._callback, self._patience = callback, Patience()

    def __call__(self, frame: FrameType, *args: Any, **kwargs: Any) -> Any:
        recurrent = torch._dynamo.config.patch(allow_rnn=True)      # Dynamo leaves these layers to Python else
        alike = sizes.patch(backed_size_oblivious=True, use_duck_shape=False)       # type: ignore[attr-defined]
        with told_when_long(), recurrent, whole_layers(), self._patience.watching(), watched_reshapes(), \
                nullcontext() if _is_given_nested(frame) else alike:
            return self._callback(frame, *args, **kwargs)


def _is_given_nested(frame: FrameType) -> bool:     # of whose sizes torch's guards know nothing in such traces
    return any(isinstance(v, torch.Tensor) and v.is_nested for v in _pytree.tree_leaves(dict(frame.f_locals)))


@cache
def _without_guards_of_torch() -> None:
    """From now on, in such traces, what torch's own code asks puts no guard on sizes: which kernel it would take for a
    convolution, the layout of its result (compiled code gives the layout that was traced), whether a size is 1."""
    for name in ("_select_conv_backend", "_conv_determine_backend_memory_format"):
        setattr(torch._C, name, of_kernels(getattr(torch._C, name)))
    for name in ("are_strides_like_channels_last_or_false", "are_strides_like_channels_last",     # of 2.11
                 "_is_non_overlapping_and_dense_or_false"):
        if hasattr(_prims_common, name):
            setattr(_prims_common, name, guarding_strides(getattr(_prims_common, name)))
    lay_out_nothing()
    for op in ((ones := torch.ops.aten.squeeze).default, ones.dim, ones.dims):
        decomposition_table[op] = _of_one_rank(decomposition_table[op])
    fake_impls.infer_size = _broadcasting(fake_impls.infer_size)
    if torch.ops.aten.select.int in (rules := fake_impls.op_implementations_dict):      # not in 2.11
        rules[torch.ops.aten.select.int] = _of_known_sign(rules[torch.ops.aten.select.int])
    FakeTensorMode._make_cache_entry = uncached(FakeTensorMode._make_cache_entry)   # type: ignore[method-assign]
    merge_branches_of_nothing()
    given = symbolic_shapes, symbolic_convert, builder, OutputGraph
    shapes, frames, values, graphs = (cast(Any, module) for module in given)
    shapes.make_symbol = _not_negative(shapes.make_symbol)
    solve._try_isolate_lhs = undivided(solve._try_isolate_lhs)
    shapes._static_eval_sym_bool = _USERS.not_stated(shapes._static_eval_sym_bool)
    fake_impls._compute_slice_index = _USERS.asked(_clamped(fake_impls._compute_slice_index))
    frames.guard_bool = _USERS.asked(frames.guard_bool)     # `if x.shape[0]:`
    values.get_fake_value = guarded_reshapes(values.get_fake_value)
    graphs.call_user_compiler = of_copies_alone(graphs.call_user_compiler)
    VariableBuilder.wrap_literal = constants_of_modules(VariableBuilder.wrap_literal)  # type: ignore[assignment,method-assign]
    VariableBuilder.wrap_symfloat = constants_in_branches(VariableBuilder.wrap_symfloat)  # type: ignore[assignment,method-assign]
    BuiltinVariable._handle_insert_op_in_graph = by_selects(BuiltinVariable._handle_insert_op_in_graph)  # type: ignore[assignment,method-assign]
    TensorVariable.method___setitem__ = set_by_selects(TensorVariable.method___setitem__)  # type: ignore[assignment,method-assign]
    cast(Any, VariableBuilder._type_dispatch_impl).__func__.cache_clear()     # filled by an earlier torch.compile
    BuiltinVariable.call_function_handler_cache.clear()                       # of methods that are wrapped above
    Called.call_function = by_sizes(_with_bools(Called.call_function))              # type: ignore[assignment,method-assign]
    UserFunctionVariable.call_function = by_loops(UserFunctionVariable.call_function)   # type: ignore[assignment,method-assign]
    TensorVariable.call_method = method_by_sizes(TensorVariable.call_method)        # type: ignore[assignment,method-assign]
    SymNodeVariable.create = staticmethod(tensors_of_numbers(SymNodeVariable.create))   # type: ignore[method-assign]
    SymNodeVariable.evaluate_expr = _USERS.asked(SymNodeVariable.evaluate_expr)     # type: ignore[method-assign]
    ShapeEnv.evaluate_sym_node = _USERS.not_asked(ShapeEnv.evaluate_sym_node)       # type: ignore[method-assign]


def _not_negative(function: Any) -> Any:
    """A size may be 0: torch's symbols are positive, which answers what the model asks, and makes ``max(n - 1, 0)``,
    the length of ``x[:-1]``, ``n - 1``."""

    def make_symbol(*args: Any, positive: Any = None, **kwargs: Any) -> Any:
        if positive and sizes.backed_size_oblivious:
            return function(*args, nonnegative=True, **kwargs)
        return function(*args, positive=positive, **kwargs)

    return make_symbol


def _clamped(function: Any) -> Any:
    """Where a slice begins or ends that may be longer than the dim (2.11 says that only a run can tell), or up to two
    elements ahead of the end of a dim that may not have as many. Of numbers of the user's, and of ``-n``, a guard says
    whether they count from the end: a size that only a run tells ends graphs."""

    def place(size: Any, index: Any) -> Any:
        found = function(size, index)
        if not sizes.backed_size_oblivious:
            return found
        if found is not None:       # -n of an n that guards leave at 0 is no place that torch takes
            return 0 if isinstance(found, torch.SymInt) and symbolic_shapes.statically_known_true(found <= 0) else found
        least, most = cast(Any, torch.sym_min), cast(Any, torch.sym_max)
        if isinstance(index, int):
            return least(index, size) if index >= 0 else most(index + size, 0)
        if sympy.sympify(index + size) == 0:    # x[-n:] of n elements
            return 0
        behind = size - index       # up to 2: a place below 0, which counts from the end, is one below 0 still
        if behind in (0, 1, 2) if isinstance(behind, int) else within_range(behind, 0, 2):
            return most(index, 0)
        known = symbolic_shapes.statically_known_true
        of_users = not any(is_size(index.node.shape_env, s) for s in index.node.expr.free_symbols)
        if hint_of(index) is None or not of_users and not known(index <= 0):
            return None     # its size is one that the run counts
        if guarded(index < 0):
            return most(index + size, 0)
        return 0 if hint_of(index) == 0 and guarded(index == 0) else least(index, size)

    return place


def _of_known_sign(function: Callable[..., object]) -> Callable[..., object]:
    """A guard says whether the place of ``x[i]`` counts from the end: torch takes one that it knows nothing of to be
    known by a run alone, which ends the graph."""

    def select(mode: object, op: object, x: torch.Tensor, dim: int, index: int | torch.SymInt) -> object:
        open_ = sizes.backed_size_oblivious and isinstance(index, torch.SymInt) and hint_of(index) is not None
        if open_ and not any(map(symbolic_shapes.guard_or_false, (index >= 0, index < 0))):
            guarded(index >= 0)
        return function(mode, op, x, dim, index)

    return select


def _broadcasting(function: Any) -> Any:
    """As torch has it elsewhere: a size of 1 is that number, with a guard, where the call at hand cannot do without."""

    def size(own: Any, other: Any) -> Any:
        hints = hint_of(own), hint_of(other)
        return 1 if None not in hints and hints[0] == 1 != hints[1] and bool(own == 1) else own

    def infer_size(left: Any, right: Any) -> Any:
        if not sizes.backed_size_oblivious:
            return function(left, right)
        count = min(len(left), len(right))
        pairs = list(zip(left[len(left) - count:], right[len(right) - count:], strict=True))
        return function((*left[:len(left) - count], *(size(a, b) for a, b in pairs)),
                        (*right[:len(right) - count], *(size(b, a) for a, b in pairs)))

    return infer_size


def _of_one_rank(function: Callable[..., object]) -> Callable[..., object]:
    """Has Dynamo trace anew for another rank: torch takes a size of 1 that may be another not to be squeezed, and a
    least of sizes (``x[:, :1]``) to be 1, without guards."""

    def squeeze(x: torch.Tensor, *dims: int | Sequence[int]) -> object:
        asked = _pytree.tree_leaves(dims) or range(x.dim())
        for d in asked if sizes.backed_size_oblivious and x.dim() else ():
            guarded(x.shape[d] == 1)
        return function(x, *dims)

    return squeeze


def _with_bools(function: Any) -> Any:
    """Ops take no bool that sizes decide (``is_causal=q.shape[2] > 1``): the model asks for its value, with a guard."""

    def value(v: Any) -> Any:
        symbolic = isinstance(v, SymNodeVariable) and isinstance(v.sym_num, torch.SymBool)
        return ConstantVariable.create(v.evaluate_expr()) if symbolic else v

    def call_function(own: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        if not sizes.backed_size_oblivious:
            return function(own, tx, args, kwargs)
        if isinstance(own.value, BuiltinFunctionType):
            args, kwargs = [value(a) for a in args], {name: value(a) for name, a in kwargs.items()}
        return function(own, tx, args, kwargs)

    return call_function


class _Users:
    """Tells what the model's code asks, which Dynamo evaluates, from what torch's code asks.

    Torch's is answered as for tensors that have elements, but for the ends of a slice, which are right for all."""

    def __init__(self) -> None:
        self._asking = False

    @contextmanager
    def question(self) -> Iterator[None]:
        before, self._asking = self._asking, True
        try:
            yield
        finally:
            self._asking = before

    def asked(self, function: Any) -> Any:
        def evaluate(*args: Any, **kwargs: Any) -> Any:
            with self.question():
                return function(*args, **kwargs)

        return evaluate

    def not_asked(self, function: Any) -> Any:
        def evaluate(env: ShapeEnv, node: SymNode, *args: Any, **kwargs: Any) -> Any:
            if not sizes.backed_size_oblivious:
                return function(env, node, *args, **kwargs)
            settle(env, node)
            answer = None if self._asking else of_elements(env, node)
            if answer is not None:
                return answer
            if self._asking or not _is_of_ones(env, node):
                return learned(env, node, function(env, node, *args, **kwargs))
            with env.suppress_guards():
                return function(env, node, *args, **kwargs)

        return evaluate

    def not_stated(self, function: Any) -> Any:
        def evaluate(condition: Any) -> Any:
            if not sizes.backed_size_oblivious:
                return function(condition)
            answer = None if self._asking else of_elements(condition.node.shape_env, condition.node)
            if answer is not None:
                return bool(answer)
            known = function(condition)
            if known is None and is_of_numbers(condition.node):
                return guarded(condition)
            return of_all(condition.node.shape_env, condition.node.expr) if known is None else known

        return evaluate


_USERS = _Users()


def guarded(condition: Any) -> bool:
    """What is so in the call that is traced, with a guard, as if the model asked."""
    with _USERS.question():
        return bool(condition)


def _is_of_ones(env: ShapeEnv, node: SymNode) -> bool:
    expr = node.expr
    return isinstance(expr, sympy.core.relational.Relational) and isinstance(node.hint, bool) \
        and is_of_ones(expr if node.hint else expr.negated) and all(is_size(env, s) for s in expr.free_symbols)
