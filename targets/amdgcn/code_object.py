"""Reads a linked AMD code object: the kernels' metadata and descriptors.

Formats: "User Guide for AMDGPU Backend", sections "ELF Code Object", "Code Object V5 Metadata" and "Kernel
Descriptor"; MessagePack specification.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from xcc.diagnostics import CompilerBug

_AMDGPU_MACHINE = 224
_NOTE_METADATA = 32
_SHARED_OBJECT = 3
_CHIP_OF_FLAGS = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x41: "gfx1100", 0x4E: "gfx1201"}


@dataclass(frozen=True)
class KernelArgument:
    """One entry of the kernel argument buffer: `kind` is "global_buffer", "by_value" or "hidden_...". """

    kind: str
    offset: int
    size: int


@dataclass(frozen=True)
class KernelInfo:
    """What the loader is told about a kernel.

    Attributes:
        arguments: the visible ones, in order.
        shared_bytes: static LDS.
        scratch_bytes: private memory of a thread: stack and spills.
        max_threads: the workgroup size that it was compiled for.
        wave: threads of a wavefront.
        vgprs, agprs, sgprs: registers; vgpr_spills, sgpr_spills: how many did not fit.
    """

    name: str
    arguments: tuple[KernelArgument, ...]
    shared_bytes: int
    scratch_bytes: int
    max_threads: int
    wave: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int


def read_msgpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The MessagePack value at `at`, and where the next one starts."""
    tag = data[at]
    if tag <= 0x7F:
        return tag, at + 1
    if tag >= 0xE0:
        return tag - 256, at + 1
    if tag <= 0x8F:
        return _map(data, at + 1, tag & 15)
    if tag <= 0x9F:
        return _list(data, at + 1, tag & 15)
    if tag <= 0xBF:
        return _text(data, at + 1, tag & 31)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at + 1
    if tag in _NUMBERS:
        size = struct.calcsize(_NUMBERS[tag])
        return struct.unpack_from(_NUMBERS[tag], data, at + 1)[0], at + 1 + size
    if tag in _COUNTED:
        code, read = _COUNTED[tag]
        count = struct.unpack_from(code, data, at + 1)[0]
        return read(data, at + 1 + struct.calcsize(code), count)
    raise CompilerBug(f"code object: the metadata holds a MessagePack value of unknown kind {tag:#x}")


def _map(data: bytes, at: int, count: int) -> tuple[dict[str, Any], int]:
    out = {}
    for _ in range(count):
        key, at = read_msgpack(data, at)
        out[key], at = read_msgpack(data, at)
    return out, at


def _list(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    out = []
    for _ in range(count):
        value, at = read_msgpack(data, at)
        out.append(value)
    return out, at


def _text(data: bytes, at: int, count: int) -> tuple[str, int]:
    return data[at:at + count].decode(), at + count


def _bytes(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    return data[at:at + count], at + count


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h",
            0xD2: ">i", 0xD3: ">q"}
_COUNTED: dict[int, tuple[str, Any]] = {
    0xD9: (">B", _text), 0xDA: (">H", _text), 0xDB: (">I", _text), 0xC4: (">B", _bytes), 0xC5: (">H", _bytes),
    0xC6: (">I", _bytes), 0xDC: (">H", _list), 0xDD: (">I", _list), 0xDE: (">H", _map), 0xDF: (">I", _map)}


def code_object_chip(blob: bytes) -> str:
    """The chip that a code object is for; CompilerBug unless `blob` is a linked AMD code object."""
    if blob[:6] != b"\x7fELF\x02\x01":
        raise CompilerBug("code object: not a 64-bit little-endian ELF file")
    kind, machine = struct.unpack_from("<HH", blob, 16)
    if machine != _AMDGPU_MACHINE:
        raise CompilerBug(f"code object: made for ELF machine {machine}, not for an AMD GPU")
    if kind != _SHARED_OBJECT:
        raise CompilerBug("code object: not linked")
    flags = struct.unpack_from("<I", blob, 48)[0] & 0xFF
    return _CHIP_OF_FLAGS.get(flags, f"machine {flags:#x}")


def _notes(blob: bytes) -> list[tuple[str, int, bytes]]:
    """(owner, type, contents) of every note."""
    header, = struct.unpack_from("<Q", blob, 32)
    size, count = struct.unpack_from("<HH", blob, 54)
    out = []
    for i in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", blob, header + i * size)
        at = start
        while kind == 4 and at < start + length:
            name_size, text_size, note = struct.unpack_from("<III", blob, at)
            name_at = at + 12
            text_at = name_at + (name_size + 3 & ~3)
            name = blob[name_at:name_at + name_size].rstrip(b"\0").decode()
            out.append((name, note, blob[text_at:text_at + text_size]))
            at = text_at + (text_size + 3 & ~3)
    return out


def read_code_object(blob: bytes) -> dict[str, KernelInfo]:
    """The kernels of a linked code object by name."""
    code_object_chip(blob)
    metadata = [text for owner, kind, text in _notes(blob) if owner == "AMDGPU" and kind == _NOTE_METADATA]
    if len(metadata) != 1:
        raise CompilerBug(f"code object: {len(metadata)} metadata notes, one is needed")
    kernels = read_msgpack(metadata[0])[0]["amdhsa.kernels"]
    return {info.name: info for info in map(_kernel, kernels)}


def _kernel(data: dict[str, Any]) -> KernelInfo:
    arguments = tuple(KernelArgument(a[".value_kind"], a[".offset"], a[".size"]) for a in data.get(".args", ())
                      if not a[".value_kind"].startswith("hidden_"))
    return KernelInfo(
        name=data[".name"], arguments=arguments,
        shared_bytes=data[".group_segment_fixed_size"], scratch_bytes=data[".private_segment_fixed_size"],
        max_threads=data[".max_flat_workgroup_size"], wave=data[".wavefront_size"], vgprs=data[".vgpr_count"],
        agprs=data.get(".agpr_count", 0), sgprs=data[".sgpr_count"], vgpr_spills=data.get(".vgpr_spill_count", 0),
        sgpr_spills=data.get(".sgpr_spill_count", 0))
