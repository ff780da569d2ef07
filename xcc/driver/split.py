"""Cuts a module at its kernels, and puts it together again for dumps."""

from __future__ import annotations

from collections.abc import Mapping

from xcc._mlir import Context, Module, ir
from xcc.context import parse_module
from xcc.driver.sources import STAGE_ATTRIBUTE, Source

__all__ = ["join_kernels", "kernel_texts", "kernel_work", "strip_kernels"]


def kernel_texts(module: Module) -> dict[str, str]:
    """Name -> text of a module with this one kernel. Kernels are functions with ``xt.kernel``, or nested modules."""
    texts = {}
    for op in module.body:
        name = op.operation.attributes["sym_name"].value if "sym_name" in op.operation.attributes else ""
        if op.operation.name == "builtin.module":
            copy = op.operation.clone()
            del copy.attributes["sym_name"]
            texts[name] = str(copy.get_asm())
            copy.erase()
        elif "xt.kernel" in op.operation.attributes:
            with module.context, ir.Location.unknown():
                alone = ir.Module.create()
                op.operation.clone(ip=ir.InsertionPoint(alone.body))
            texts[name] = str(alone)
    return texts


def kernel_work(source: Source) -> dict[str, dict[str, str]]:
    """Name -> operations, bytes and type of each kernel's call, over its symbols; nothing for a later stage."""
    if source.stage not in ("", "xt", "kernels"):
        return {}
    from xcc.passes.xt.fusion.kernel_summary import summarise

    return {k.name: {"flops": str(k.flops), "bytes": str(k.bytes_in + k.bytes_out), "dtype": k.dtype}
            for k in summarise(source.module).kernels}


def strip_kernels(module: Module) -> None:
    """Leaves only what is not a kernel: ``@main`` and what it calls."""
    for op in list(module.body):
        if op.operation.name == "builtin.module" or "xt.kernel" in op.operation.attributes:
            op.operation.erase()


def join_kernels(main: str, kernels: Mapping[str, str], stage: str, context: Context) -> str:
    """One module: what is in `main`, and a nested ``module @name`` for each kernel."""
    whole = parse_module(main, context, "main")
    with context, ir.Location.unknown():
        for name, text in kernels.items():
            part = parse_module(text, context, name)
            inner = part.operation.clone(ip=ir.InsertionPoint(whole.body))
            inner.attributes["sym_name"] = ir.StringAttr.get(name)
        whole.operation.attributes[STAGE_ATTRIBUTE] = ir.StringAttr.get(stage)
    return str(whole)
