"""What Dynamo makes of numbers: those of modules are constants, until a module has another one.

Where sizes are dynamic Dynamo takes each float of a module for an argument (the eps of a norm, the scale of attention),
and each int for a constant, so that a counter (``self.n += 1``) is compiled anew in each call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch
from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Frame
from torch._dynamo.utils import get_fake_value
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder, wrap_fx_proxy
from torch._guards import ChainedSource
from torch.fx import Proxy
from torch.fx.experimental import _config as sizes

Literal = Callable[[VariableBuilder, object], VariableTracker]
Float = Callable[[VariableBuilder, float], VariableTracker]
Symbol = Callable[..., VariableTracker]

__all__ = ["constants_in_branches", "constants_of_modules", "tensors_of_numbers"]

_first: dict[tuple[int, str], tuple[weakref.ref[object], int | float]] = {}
"""By an owner's id and an attribute's place in it: the owner, weakly, and the number that a trace has seen first."""


def constants_of_modules(function: Literal) -> Literal:
    """``VariableBuilder.wrap_literal``: a number of a module is a constant that is guarded where it is used, or, where
    it has changed, an argument."""

    def wrap_literal(own: VariableBuilder, value: object) -> VariableTracker:
        place = own.get_source().guard_source
        builtin = place.is_unspecialized_builtin_nn_module()
        if not sizes.backed_size_oblivious or not isinstance(value, int | float) or isinstance(value, bool) \
                or not (builtin or place.is_unspecialized_nn_module()):
            return function(own, value)
        changed = False if builtin else _has_changed(own, value)
        if changed is None:
            return function(own, value)
        with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=changed, specialize_float=not changed):
            return function(own, value)

    return wrap_literal


def constants_in_branches(function: Float) -> Float:
    """``VariableBuilder.wrap_symfloat``: a float that first stands in the body of a branch or a loop is a constant, as
    torch cannot make an argument of the whole of it there."""

    def wrap_symfloat(own: VariableBuilder, value: float) -> VariableTracker:
        inside = sizes.backed_size_oblivious and own.tx.output.current_tracer.parent is not None
        with torch._dynamo.config.patch(specialize_float=inside or torch._dynamo.config.specialize_float):
            return function(own, value)

    return wrap_symfloat


def tensors_of_numbers(function: Symbol) -> Symbol:
    """``SymNodeVariable.create``: what a size and a tensor give (``[x.shape[0]] == [n]``) is a tensor. torch takes it
    for a number, and to ask for its value is an error."""

    def create(tx: Frame, proxy: Proxy, sym_num: object = None, **options: object) -> VariableTracker:
        if sym_num is None and sizes.backed_size_oblivious and isinstance(get_fake_value(proxy.node, tx), torch.Tensor):
            return wrap_fx_proxy(tx, proxy)
        return function(tx, proxy, sym_num, **options)

    return create


def _has_changed(own: VariableBuilder, value: int | float) -> bool | None:
    """Whether the module, or what it keeps the number in, had another one when it was first seen; None where that
    cannot be told, as of lists and dicts."""
    resolve, source = getattr(own.tx.output, "resolve_source_value", None), own.get_source()
    if resolve is None or not isinstance(source, ChainedSource):     # torch 2.11
        return None
    owner = resolve(source.base)
    key = id(owner), source.name
    if key not in _first:
        try:
            _first[key] = weakref.ref(owner, lambda _: _first.pop(key, None)), value
        except TypeError:
            return None
    return _first[key][1] != value
