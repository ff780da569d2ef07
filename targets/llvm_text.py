"""LLVM IR text as the bindings print it, in the spelling that llvmlite's LLVM reads.

Newer LLVM prints floats as the shortest decimal, ``f0x...``, ``+inf`` or ``+qnan``; LLVM 22 wants decimals to be
exact. Every float constant becomes its bit pattern.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import llvmlite.binding as llvm

    from xcc._mlir import Module
    from xcc.targets.base import Chip

LAYOUT = "llvm.data_layout"
_TOKEN = re.compile(r"\b(half|bfloat|float|double)\b"
                    r"|(?<![\w.%@\"])([+-]?(?:\d+\.\d*(?:e[+-]?\d+)?|inf\b|s?nan\(0x[0-9a-fA-F]+\)|qnan\b)"
                    r"|f0x[0-9A-Fa-f]+)")


def optimized(text: str, chip: Chip, machine: llvm.TargetMachine, level: int = 3, **tuning: bool
              ) -> llvm.ModuleRef:
    """The llvmlite module of the LLVM IR `text`, optimized for `machine` with options of LLVM's tuning."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.triple = chip.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    for name, value in tuning.items():
        setattr(options, name, value)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def llvm_ir(module: Module) -> str:
    """LLVM IR of a module that is all LLVM dialect, as text for llvmlite."""
    from xcc._mlir import ir, llvm_d

    with module.context:
        attributes = module.operation.attributes
        if LAYOUT not in attributes:        # without one, loads and stores of i64 are of memory aligned to 4 bytes
            attributes[LAYOUT] = ir.StringAttr.get("e-i64:64")
        return portable(str(llvm_d.translate_module_to_llvmir(module.operation)))


def nested_modules(text: str) -> Iterator[Module]:
    """Each kernel's module, of a module of a kernel stage that has them nested; one that has none is a kernel's
    itself."""
    from xcc._mlir import ir
    from xcc.context import parse_module, shared_context

    module = parse_module(text, shared_context(), "the last stage")
    with module.context:
        nested = [o.operation for o in module.body if o.operation.name == "builtin.module"]
        for op in nested or [module.operation]:
            yield ir.Module.parse(str(op))


def linked(modules: Iterable[Any]) -> Any:
    """One llvmlite module of several, in order, what only one of them sees renamed where names are equal."""
    whole, *others = modules
    for other in others:
        whole.link_in(other)
    return whole


def portable(text: str) -> str:
    """`text` with every float constant as a bit pattern of the type named before it in its line."""
    return "\n".join(_line(line) if "." in line or "inf" in line or "nan" in line or "f0x" in line else line
                     for line in text.split("\n"))


def _line(line: str) -> str:
    kind = ""

    def replace(m: re.Match[str]) -> str:
        nonlocal kind
        if m[1]:
            kind = m[1]
            return m[0]
        return _bits(kind, m[2]) if kind else m[0]

    return _TOKEN.sub(replace, line)


def _bits(kind: str, text: str) -> str:
    if text.startswith("f0x"):
        raw = int(text[3:], 16)
        if kind == "half":
            return f"0xH{raw:04X}"
        if kind == "bfloat":
            return f"0xR{raw:04X}"
        return _double(struct.unpack("<f", struct.pack("<I", raw))[0]) if kind == "float" else f"0x{raw:016X}"
    value = float("-nan" if text.startswith("-") else "nan") if "nan" in text else float(text)
    if kind == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if kind == "bfloat":
        return f"0xR{_bfloat(value):04X}"
    if kind == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return _double(value)


def _double(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _bfloat(value: float) -> int:
    raw: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return (raw >> 16) | 0x40
    return (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
