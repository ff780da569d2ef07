"""The pass ``move-views``: reshapes, transposes and slices go where kernels need not make them.

    %m = xt.reshape(%x : 16x197x768) : 3152x768
    %y = xt.add(xt.dot_general(%m, %w), %b)                                 : 3152x3072
    %z = xt.gelu(xt.reshape(%y) : 16x197x3072)
becomes
    %z = xt.gelu(xt.add(xt.dot_general(%x, %w), %b))                        : 16x197x3072

A reshape between two stored values is free, but it parts a product from the pointwise ops behind it, and parts of one
result from what could read them in place. Programs that come from a framework's own matrix products, which take two
dims, have one in front of each product and one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xcc import symbolic
from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import aligned_shape, apply_rules, is_pointwise, name_of, producer, rebuilt, users_of
from xcc.passes.xt.graph.split_dims import split_dims
from xcc.passes.xt.products.read_parts import slice_of_product
from xcc.passes.xt.xt_simplify import RULES as SIMPLER
from xcc.symbolic import Dim

PRODUCTS = ("dot_general", "convolution")
VIEWS = ("reshape", "slice", "transpose")


@register_pass
class MoveViews(Pass):
    """Moves reshapes that merge the rows of a product behind its pointwise ops, and slices in front of other views and
    of products.

    in_place: products read an operand that a transpose makes as it lies, along its own dims.
    """

    in_place: bool = False

    def run(self, module: Module, ctx: PassContext) -> None:
        rules: dict[str, list[Callable[[Operation], Value | None]]] = {
            "dot_general": [partial(_product_of_merged_rows, saved=self.in_place), _product_of_turned_rows],
            "slice": [_slice_of_transpose, slice_of_product],
            "transpose": [_transpose_of_merged],
            "reshape": [_reshape_of_slice, _reshape_of_transpose]}
        if self.in_place:
            rules["dot_general"].append(_product_in_place)
        for name, cls in xt.OPS.items():
            if cls.access == "pointwise":
                rules[name] = [_pointwise_of_merged_rows, _pointwise_of_turned_rows]
        for name in VIEWS:
            rules[name] = [*SIMPLER[name], *rules.get(name, [])]
        apply_rules(module, rules)


def _product_of_merged_rows(op: Operation, saved: bool) -> Value | None:
    """dot_general(reshape(x), w) = reshape(dot_general(x', w)) where the reshape merges rows that what follows parts
    again; x' has the sum's dims merged only.

    saved: also where the result is one of the program, which its kernel then stores beside what is made of it. A GPU
    gains where w's rows go along the sum: threads then store what they hold, without an exchange.
    """
    a, view = xt.attrs_of(op), producer(op.operands[0], "reshape")
    if view is None or a.lhs_batch:
        return None
    x, merged = view.operands[0], xt.shape_of(op.operands[0])
    parts = split_dims(merged, xt.shape_of(x))
    if parts is None:
        return None
    old = xt.shape_of(x)
    pieces = [[merged[d]] if d in a.lhs_contract else [old[k] for k in ks] for d, ks in enumerate(parts)]
    rows = [size for d, p in enumerate(pieces) if d not in a.lhs_contract for size in p]
    along = a.rhs_contract == (len(xt.shape_of(op.operands[1])) - 1,)
    several = max(sum(size != 1 for size in p) for p in pieces) > 1
    if not several or not _parted_again(op.results[0], rows, saved and along):
        return None
    starts = [sum(map(len, pieces[:d])) for d in range(len(pieces))]
    source = xt.reshape(x, shape=[size for p in pieces for size in p])
    made = xt.dot_general(source, op.operands[1],
                          **(vars(a) | {"lhs_contract": tuple(starts[d] for d in a.lhs_contract)}))
    return xt.reshape(made, shape=xt.shape_of(op.results[0]))


def _parted_again(value: Value, rows: Sequence[Dim], saved: bool) -> bool:
    """Whether a product's result is read through pointwise ops by a reshape to `rows`, or to more of them: by that
    alone, but `saved` where the result is one of the program, too."""
    while True:
        users = [u for u in users_of(value) if not saved or u.name != "func.return"]
        if len(users) != 1:
            return False
        (user,) = users
        if name_of(user) == "reshape":
            return tuple(xt.shape_of(user.results[0])[:len(rows)]) == tuple(rows)
        if not is_pointwise(user) or xt.shape_of(user.results[0]) != xt.shape_of(value):
            return False
        value = user.results[0]


def _product_of_turned_rows(op: Operation) -> Value | None:
    """dot_general(transpose(x), w) = transpose(dot_general(x, w)) where what follows turns the rows again."""
    a, turned = xt.attrs_of(op), producer(op.operands[0], "transpose")
    last = len(xt.shape_of(op.operands[0])) - 1
    if turned is None or a.lhs_batch or a.rhs_batch or a.lhs_contract != (last,):
        return None
    perm = xt.attrs_of(turned).perm
    if perm[last] != last or not _turned_again(op.results[0]):
        return None
    made = xt.dot_general(turned.operands[0], op.operands[1], **vars(a))
    rest = range(last, len(xt.shape_of(made)))
    return xt.transpose(made, perm=(*perm[:last], *rest))


def _turned_again(value: Value) -> bool:
    """Whether all that read it, behind pointwise ops and views, are transposes."""
    readers = users_of(value)
    for reader in readers:
        name = name_of(reader)
        along = name == "slice" or name == "reshape" and _splits(reader) or \
            is_pointwise(reader) and len(readers) == 1 and xt.shape_of(reader.results[0]) == xt.shape_of(value)
        if name != "transpose" and not (along and _turned_again(reader.results[0])):
            return False
    return bool(readers)


def _splits(view: Operation) -> bool:
    return split_dims(xt.shape_of(view.operands[0]), xt.shape_of(view.results[0])) is not None


def _pointwise_of_turned_rows(op: Operation) -> Value | None:
    """f(transpose(x), b) = transpose(f(x, b)) where x is a product's, b has one dim at most, and what follows turns."""
    shape = xt.shape_of(op.results[0])
    turned = next((t for v in op.operands if (t := producer(v, "transpose"))), None)
    if turned is None or xt.shape_of(turned.results[0]) != shape or not _of_product(turned.operands[0]) \
            or not _turned_again(op.results[0]) or len(users_of(turned.results[0])) > 1:
        return None
    perm = xt.attrs_of(turned).perm
    given = []
    for v in op.operands:
        own = aligned_shape(v, len(shape))
        if v != turned.results[0] and sum(size != 1 for size in own) > 1:
            return None
        before = [own[perm.index(d)] for d in range(len(perm))]
        given.append(turned.operands[0] if v == turned.results[0] else xt.reshape(v, shape=before))
    return xt.transpose(rebuilt(op, given), perm=perm)


def _reshape_of_transpose(op: Operation) -> Value | None:
    """reshape(transpose(x)) = transpose(reshape(x)) where x is a product's, dims are split and then turned again."""
    turned = producer(op.operands[0], "transpose")
    if turned is None or not _of_product(turned.operands[0], VIEWS) or not _turned_again(op.results[0]):
        return None
    shape, perm = xt.shape_of(op.results[0]), xt.attrs_of(turned).perm
    parts = split_dims(xt.shape_of(op.operands[0]), shape)
    if parts is None:
        return None
    before = [k for d in range(len(perm)) for k in parts[perm.index(d)]]
    return xt.transpose(xt.reshape(turned.operands[0], shape=[shape[k] for k in before]),
                        perm=[before.index(k) for k in range(len(shape))])


def _transpose_of_merged(op: Operation) -> Value | None:
    """transpose(reshape(x)) = reshape(transpose(x)) where the reshape merges dims of what a composite makes, whose
    kernel then stores it so."""
    view = producer(op.operands[0], "reshape")
    maker = producer(view.operands[0]) if view is not None else None
    if view is None or maker is None or getattr(xt.op_class(maker), "access", "") != "composite":
        return None
    parts = split_dims(xt.shape_of(view.results[0]), xt.shape_of(view.operands[0]))
    if parts is None:
        return None
    turned = xt.transpose(view.operands[0], perm=[k for d in xt.attrs_of(op).perm for k in parts[d]])
    return xt.reshape(turned, shape=xt.shape_of(op.results[0]))


def _pointwise_of_merged_rows(op: Operation) -> Value | None:
    """f(reshape(x), b) = reshape(f(x, b)) where x is a product's, the reshape merges dims and b has none of them."""
    shape = xt.shape_of(op.results[0])
    views = [v for v in op.operands if xt.shape_of(v) == shape and shape]
    sources = [s for v in views if (s := producer(v, "reshape")) is not None]
    if not views or len(sources) != len(views):
        return None
    old = xt.shape_of(sources[0].operands[0])
    parts = split_dims(shape, old)
    if parts is None or any(xt.shape_of(s.operands[0]) != old for s in sources) \
            or not all(_of_product(s.operands[0]) and len(users_of(s.results[0])) == 1 for s in sources):
        return None
    given = []
    for v in op.operands:
        if v in views:
            given.append(sources[views.index(v)].operands[0])
            continue
        own = xt.shape_of(v)
        lead = len(shape) - len(own)
        if any(size != 1 and len(parts[lead + d]) != 1 for d, size in enumerate(own)):
            return None
        wider = [size for d, size in enumerate(own) for size in ([size] * len(parts[lead + d]))]
        given.append(v if tuple(wider) == tuple(own) else xt.reshape(v, shape=wider))
    return xt.reshape(rebuilt(op, given), shape=shape)


def _of_product(value: Value, views: Sequence[str] = ()) -> bool:
    """Whether a product makes it, or pointwise ops of one and `views`."""
    while True:
        op = producer(value)
        if op is None or name_of(op) in PRODUCTS:
            return op is not None
        inner = op.operands[0] if name_of(op) in views else next((v for v in op.operands if is_pointwise(op)
                                                                  and xt.shape_of(v) == xt.shape_of(value)), None)
        if inner is None:
            return False
        value = inner


def _slice_of_transpose(op: Operation) -> Value | None:
    """slice(transpose(x)) = transpose(slice(x)): the part is read in place, or the transpose meets one behind it."""
    turned = producer(op.operands[0], "transpose")
    if turned is None:
        return None
    a, perm = xt.attrs_of(op), xt.attrs_of(turned).perm
    back = [perm.index(d) for d in range(len(perm))]
    part = xt.slice_(turned.operands[0], starts=[a.starts[d] for d in back], limits=[a.limits[d] for d in back],
                    strides=[a.strides[d] for d in back])
    return xt.transpose(part, perm=perm)


def _reshape_of_slice(op: Operation) -> Value | None:
    """reshape(slice(x)) = slice(reshape(x)) where dims are split that the slice leaves whole, or cuts at multiples of
    what they are split into."""
    part = producer(op.operands[0], "slice")
    if part is None or producer(part.operands[0], "reshape") is None and len(users_of(part.operands[0])) < 2:
        return None
    a, x = xt.attrs_of(part), part.operands[0]
    whole, own, new = xt.shape_of(x), xt.shape_of(part.results[0]), xt.shape_of(op.results[0])
    cut = {d for d in range(len(own)) if own[d] != whole[d]}
    kept = [d for d in range(len(own)) if d not in cut or own[d] != 1]
    parts = split_dims(tuple(own[d] for d in kept), new)
    if parts is None or all(len(p) == 1 for p in parts):
        return None
    cuts: list[tuple[Dim, Dim, Dim, int]] = []      # of the reshaped x: size, start, limit, stride
    for d, size in enumerate(whole):
        sizes = [new[k] for k in parts[kept.index(d)]] if d in kept else [own[d]]
        if d not in cut:
            cuts += [(n, 0, n, 1) for n in sizes]
        elif len(sizes) == 1:
            cuts.append((size, a.starts[d], a.limits[d], a.strides[d]))
        else:
            step = symbolic.product(sizes[1:])
            numbers = [n // step for n in (size, a.starts[d], a.limits[d])
                       if isinstance(n, int) and isinstance(step, int) and n % step == 0]
            if len(numbers) < 3 or a.strides[d] != 1:
                return None
            cuts += [(numbers[0], numbers[1], numbers[2], 1), *((n, 0, n, 1) for n in sizes[1:])]
    shape, starts, limits, strides = zip(*cuts, strict=True)
    return xt.reshape(xt.slice_(xt.reshape(x, shape=shape), starts=starts, limits=limits, strides=strides), shape=new)


def _product_in_place(op: Operation) -> Value | None:
    """A product of transposed operands as one of what they are made of, where that lies along rows or the sum."""
    a, operands = xt.attrs_of(op), list(op.operands)
    changed = vars(a).copy()
    for n, side in enumerate(("lhs", "rhs")):
        turned = producer(operands[n], "transpose")
        if turned is None:
            continue
        perm = xt.attrs_of(turned).perm
        batch, contract = changed[f"{side}_batch"], changed[f"{side}_contract"]
        free = [perm[d] for d in range(len(perm)) if d not in (*batch, *contract)]
        if free != sorted(free) or len(perm) - 1 in (perm[d] for d in batch):
            continue
        operands[n] = turned.operands[0]
        changed[f"{side}_batch"], changed[f"{side}_contract"] = (tuple(perm[d] for d in dims) for dims in
                                                                 (batch, contract))
    return None if operands == list(op.operands) else xt.dot_general(*operands, **changed)
