"""Matrix products."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.frontends.shared.einsum import einsum
from xcc.frontends.shared.helpers import convert, element, rank_of
from xcc.frontends.shared.products import matmul
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten

RIGHT = ("mat2", "other", "vec", "tensor")
"""What the right operand of a product is called."""


@aten("mm", "bmm", "matmul", "mv", "dot")
def product(cx: Context) -> Value:
    """numpy's matmul of self and the other operand."""
    right = next(name for name in RIGHT if name in cx.args)
    return matmul(cx.tensor("self"), cx.tensor(right))


@aten("_int_mm")
def product_of_bytes(cx: Context) -> Value:
    """The product of two matrices of i8, in i32."""
    return matmul(convert(cx.tensor("self"), "i32"), convert(cx.tensor("mat2"), "i32"))


@aten("_scaled_mm")
def scaled_product(cx: Context) -> Value:
    """self @ mat2 of 8 bits, by scales of all or of each row and column, and bias, in out_dtype."""
    scales = [cx.tensor(name) for name in ("scale_a", "scale_b")]
    rows, columns = cx.out().shape
    for scale, each in zip(scales, ((rows, 1), (1, columns)), strict=True):
        if tuple(xt.shape_of(scale)) not in ((), (1,), (1, 1), each):
            cx.fail("its scales are of blocks")
    out = xt.mul(matmul(cx.tensor("self"), cx.tensor("mat2"), "f32"), xt.mul(*scales))
    bias, last = cx.optional("bias"), cx.optional("scale_result")
    out = out if bias is None else xt.add(out, convert(bias, "f32"))
    return convert(out if last is None else xt.mul(out, last), cx.out().dtype)


@aten("_trilinear")
def trilinear(cx: Context) -> Value:
    """The product of three tensors, each of which has all dims but those of its `expand`, summed over `sumdim`."""
    values = [cx.tensor(f"i{n}") for n in (1, 2, 3)]
    left_out = [cx.axes(f"expand{n}", rank_of(v) + len(cx[f"expand{n}"])) if cx[f"expand{n}"] else ()
                for n, v in enumerate(values, 1)]
    dims = range(rank_of(values[0]) + len(left_out[0]))
    letters = ["".join(chr(ord("a") + d) for d in dims if d not in out) for out in (*left_out, cx["sumdim"])]
    return einsum(f"{','.join(letters[:3])}->{letters[3]}", values)


@aten("linear")
def linear(cx: Context) -> Value:
    """input @ weight.T + bias, of narrow floats rounded once."""
    x, w, bias = cx.tensor("input"), cx.tensor("weight"), cx.optional("bias")
    kind = element(x) if bias is None else accumulated(element(x))
    out = xt.dot_general(x, w, lhs_contract=(rank_of(x) - 1,), rhs_contract=(rank_of(w) - 1,), dtype=kind)
    return out if bias is None else convert(xt.add(out, convert(bias, kind)), element(x))


def accumulated(kind: str) -> str:
    """The type that sums of products of `kind` are formed in."""
    return "f32" if kind in NARROW else kind


@aten("addmm", "addbmm", "baddbmm", "addmv", "addr")
def add_product(cx: Context) -> Value:
    """beta * self + alpha * product; with beta 0 self is not read. addbmm sums over the batch, addr is of vectors."""
    op = cx.node.op.split(".")[1]
    names = {"addmm": ("mat1", "mat2"), "addmv": ("mat", "vec"), "addr": ("vec1", "vec2")}.get(op, ("batch1", "batch2"))
    kind = cx.out().dtype
    wide = accumulated(kind)
    left, right = (convert(cx.tensor(n), kind) for n in names)
    if op == "addr":
        out = xt.dot_general(left, right, lhs_contract=(), rhs_contract=(), dtype=wide)
    elif op == "addbmm":
        out = xt.dot_general(left, right, lhs_contract=(0, 2), rhs_contract=(0, 1), dtype=wide)
    else:
        out = matmul(left, right, wide)
    if rank_of(out) > len(cx.out().shape):
        cx.fail("torch gives the result the shape of 'self', which is a number: expand it to the product's shape")
    return convert(_scaled_sum(cx, out), kind)


def _scaled_sum(cx: Context, out: Value) -> Value:
    kind = element(out)
    alpha, beta = cx.get("alpha", 1), cx.get("beta", 1)
    if alpha != 1:
        out = xt.mul(out, cx.value_of(alpha, kind))
    if beta == 0:
        return out
    base = convert(cx.tensor("self"), kind)
    if beta != 1:
        base = xt.mul(base, cx.value_of(beta, kind))
    return xt.or_(out, base) if category(kind) == 0 else xt.add(out, base)


@aten("einsum")
def einsum_(cx: Context) -> Value:
    """The Einstein sum of the tensors, from the left to the right."""
    return einsum(cx["equation"], cx.tensors("tensors"))
