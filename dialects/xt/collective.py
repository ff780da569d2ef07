"""What ranks of a mesh do together. Each runs its own program; these ops exchange arrays among a group of them.

The mesh is the module's attribute ``xt.mesh``, [["dp", 2], ["tp", 4]]: named axes, ranks in row-major order. `axes` of
an op name those in which the ranks of a group differ; a group is in the order of its ranks, and `ranks` is how many it
has. All ranks of a group reach the same op with equal types, in the same order.
"""

from typing import Any

from xcc._mlir import Attribute, Module, Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.fields import axis, integer, integers, text, texts
from xcc.dialects.xt.fields import operand as operand_
from xcc.dialects.xt.indexing import COMBINE
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.types import TensorType
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import COMBINED_TYPES, Collective
from xcc.symbolic import Dim, floordiv, mod

MESH = "xt.mesh"


def mesh_of(of: Module | Operation) -> Mesh | None:
    """The mesh of the module around `op`, or of the module itself; None where it says nothing."""
    op: Operation | None = of.operation
    while op is not None and (op.name != "builtin.module" or MESH not in op.attributes):
        op = None if op.parent is None else op.parent.operation
    if op is None:
        return None
    pairs = [ir.ArrayAttr(pair) for pair in ir.ArrayAttr(op.attributes[MESH])]
    return Mesh(tuple((ir.StringAttr(p[0]).value, ir.IntegerAttr(p[1]).value) for p in pairs))


def mesh_attribute(mesh: Mesh) -> Attribute:
    """``xt.mesh`` of `mesh`."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.StringAttr.get(name), ir.IntegerAttr.get(i64, size)])
                             for name, size in mesh.axes])


class _Collective(Attrs):
    """What they share: one operand, the axes; a dead one stays, as the other ranks wait for it."""

    x = operand_()
    axes = texts()
    access = "control"
    effects = True

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        why: str | None = super().problem(op)  # type: ignore[misc]
        if why is not None:
            return why
        a = Attrs(**{k: f.decode(op.operation.attributes[k])
                     for k, f in cls.attribute_fields.items()})  # type: ignore[attr-defined]
        mesh = mesh_of(op)
        if mesh is None:
            return f"stands in a module without {MESH}"
        if not a.axes or len(set(a.axes)) != len(a.axes) or any(x not in mesh.names for x in a.axes):
            return f"axes {', '.join(a.axes) or 'none'}: the mesh has {', '.join(mesh.names)}, each may be named once"
        count = mesh.group_size(a.axes)
        if getattr(a, "ranks", count) != count:
            return f"ranks is {a.ranks}, the axes {', '.join(a.axes)} have {count}"
        places = [p for pair in _pairs(a) for p in pair] + [getattr(a, "root", 0)]
        outside = next((p for p in places if not 0 <= p < count), None)
        return None if outside is None else f"place {outside} is not in a group of {count}"

    def evaluate(a: Attrs, x: Any) -> Any:
        raise UserError("what ranks do together is evaluated for all of them at once: interpret_ranks")


def _divided(n: Dim, ranks: int, what: str) -> Dim:
    if ranks < 1 or mod(n, ranks) != 0:
        raise InferError(f"{what} of size {n} does not divide into {ranks} parts")
    return floordiv(n, ranks)


def _check_combine(x: TensorType, combine: str) -> None:
    if x.dtype not in COMBINED_TYPES:
        raise InferError(f"takes {', '.join(COMBINED_TYPES)}, not {x.dtype}")
    if x.dtype == "i1" and combine not in ("max", "min"):
        raise InferError(f"bools have no {combine}")


class AllReduce(_Collective, XtOp, name="all_reduce"):
    """The sum (or max, min, product) of the group's x, the same in each rank. Narrow floats are summed in f32."""

    combine = text("add", tuple(COMBINE))

    def infer(a: Attrs, x: TensorType) -> TensorType:
        _check_combine(x, a.combine)
        return x


class AllGather(_Collective, XtOp, name="all_gather"):
    """The group's x, one after the other along `dim`, in the group's order."""

    dim = axis(0)
    ranks = integer()

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if not x.rank:
            raise InferError("a scalar has no dim to gather along")
        return x.with_shape([n * a.ranks if d == a.dim else n for d, n in enumerate(x.shape)])


class ReduceScatter(_Collective, XtOp, name="reduce_scatter"):
    """A rank's part, along `dim`, of the sum (or max, min, product) of the group's x."""

    dim = axis(0)
    ranks = integer()
    combine = text("add", tuple(COMBINE))

    def infer(a: Attrs, x: TensorType) -> TensorType:
        _check_combine(x, a.combine)
        return x.with_shape([_divided(n, a.ranks, f"dim {d}") if d == a.dim else n for d, n in enumerate(x.shape)])


class AllToAll(_Collective, XtOp, name="all_to_all"):
    """x is cut along `split` into a part for each rank of the group; what a rank gets lies in the group's order along
    `concat`."""

    split = axis(0)
    concat = axis(0)
    ranks = integer()

    def infer(a: Attrs, x: TensorType) -> TensorType:
        shape = list(x.shape)
        shape[a.split] = _divided(shape[a.split], a.ranks, f"dim {a.split}")
        shape[a.concat] *= a.ranks
        return x.with_shape(shape)


class Permute(_Collective, XtOp, name="permute"):
    """Sends x between places of the group: `pairs` has from, to, from, to, ... A place that gets nothing has zeros."""

    pairs = integers()

    def infer(a: Attrs, x: TensorType) -> TensorType:
        sources, targets = a.pairs[::2], a.pairs[1::2]
        if len(a.pairs) % 2 or any(len(set(s)) != len(s) for s in (sources, targets)):
            raise InferError(f"pairs {list(a.pairs)}: a place sends once and gets once")
        return x


class CollectiveBroadcast(_Collective, XtOp, name="collective_broadcast"):
    """The x of the group's rank at place `root`, in each rank."""

    root = integer(0)

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return x


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "collective_broadcast")


def _pairs(a: Attrs) -> list[tuple[int, int]]:
    flat = getattr(a, "pairs", ())
    return list(zip(flat[::2], flat[1::2], strict=True))


def statement_of(name: str, a: Attrs, source: int = 0, target: int = 0) -> Collective:
    """The statement of a host program for the op `name` along the first dim."""
    kind: Any = {"collective_broadcast": "broadcast"}.get(name, name)
    return Collective(kind, source, target, a.axes, getattr(a, "combine", ""), tuple(_pairs(a)), getattr(a, "root", 0))
