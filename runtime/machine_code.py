"""Machine code of this process for what Python would take too long for, a few instructions at every call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["MachineCode", "address_of_function"]

Called = TypeVar("Called")


class MachineCode:
    """Functions of LLVM's text `ir`, compiled for this processor; `symbols` has the addresses of what it declares.

    RuntimeError where the text is wrong.
    """

    def __init__(self, ir: str, symbols: Mapping[str, int] | None = None) -> None:
        import llvmlite.binding as llvm  # 30 ms, which a process that never calls this is spared

        for name, address in (symbols or {}).items():
            llvm.add_symbol(name, address)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True, reloc="pic")
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), machine)
        self._engine.finalize_object()

    def function(self, name: str, kind: Callable[[int], Called]) -> Called:
        """The function `name`, of ctypes' function type `kind`; its code stays as long as it does."""
        made = kind(self._engine.get_function_address(name))
        made.code = self        # type: ignore[attr-defined]
        return made


def address_of_function(function: ctypes._NamedFuncPointer) -> int:
    """Of a function of a library that ctypes has loaded."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
