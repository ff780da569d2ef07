"""The .xcm file: a zip whose members are stored uncompressed and aligned, so that weights are memory-mapped.

Members: ``manifest.json``, ``program.json``, ``kernels/*`` (what the target's executor loads), ``ir/*`` (optional),
``weights.safetensors``. Loading runs nothing from the file and checks every size and offset before use, the SHA-256 of
every member but the weights against the manifest's, and the weights against a sum that costs no more than reading them.
Code reaches the system's loader only after that. This finds damage; whoever writes a whole new file, hashes and all,
writes a program: load no artifact from a source whose programs you would not run.

Members and offsets of 4 GiB and more are in zip64 records.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xcc.diagnostics import UserError, one_line
from xcc.runtime.large_pages import BlockWriter, map_file
from xcc.runtime.output_file import output_file
from xcc.runtime.program import Program, to_json
from xcc.runtime.program_reader import program_from_json
from xcc.weight_files import parse_header, safetensors_chunks
from xcc.weights import WeightStore

__all__ = ["ALIGN", "FORMAT_VERSION", "Artifact", "read_program"]

FORMAT_VERSION = 6
ALIGN = 64
_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<IIQI")
_MAX32, _MAX16 = (1 << 32) - 1, (1 << 16) - 1
_ZIP64 = 0x0001                 # id of the extra field that holds what does not fit in 32 bits
_PADDING = 0xD935
_WEIGHTS = "weights.safetensors"
_DATE = (1 << 5) | 1            # 1980-01-01: the same input gives the same file


@dataclass
class Artifact:
    """A compiled model: plain data, on disk or in memory."""

    manifest: dict[str, Any]
    program: Program
    members: Mapping[str, Any]                      # path -> bytes or read-only view
    weights: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def save(self, path: str | Path) -> int:
        """Writes the .xcm file (see :func:`output_file`); returns its size."""
        store = WeightStore()
        for name, value in self.weights.items():
            store.add(name, value)
        chunks = list(_weight_chunks(store))
        program = json.dumps(to_json(self.program), separators=(",", ":")).encode()
        members = {"program.json": program, **{k: bytes(v) for k, v in sorted(self.members.items())}}
        manifest = self.manifest | {"weights_sum": sum(_sum(c) for c in chunks) % (1 << 64),
                                    "sha256": {name: _hash(data) for name, data in members.items()}}
        head = {"manifest.json": json.dumps(manifest, indent=1).encode()}
        try:
            with output_file(path, buffering=0) as f:
                blocks = BlockWriter(f)
                writer = _Writer(blocks)
                for name, data in (head | members).items():
                    writer.add(name, [data])
                writer.add(_WEIGHTS, chunks)
                writer.finish()
                blocks.flush()
                size = blocks.tell()
        except OSError as e:
            raise UserError(f"{path}: cannot be written: {e.strerror}") from None
        return size

    @staticmethod
    def read(path: str | Path) -> Artifact:
        """Maps the file; UserError says what is wrong with one that is truncated, damaged or no artifact."""
        try:
            data: Any = map_file(path)
        except (OSError, ValueError) as e:      # ValueError: an empty file, a zero byte in the path
            reason = getattr(e, "strerror", None) or str(e)
            raise UserError(f"{path}: cannot be read: {reason}") from None
        members = _members(data, str(path))
        for needed in ("manifest.json", "program.json", _WEIGHTS):
            if needed not in members:
                raise UserError(f"{path}: not a compiled model: it has no {needed}")
        manifest = _json(members.pop("manifest.json"), f"{path}: manifest.json")
        check_manifest(manifest, str(path))
        _check_hashes(members, manifest, str(path))
        text = members.pop("program.json")
        raw = members.pop(_WEIGHTS)
        if manifest.get("weights_sum") != _sum(raw):
            raise UserError(f"{path}: damaged: the checksum of {_WEIGHTS} is wrong")
        weights = {name: raw[begin:end].view(dtype).reshape(shape)
                   for name, (dtype, shape, begin, end) in parse_header(raw, f"{path}: {_WEIGHTS}").items()
                   if not name.startswith("__pad.")}
        return Artifact(manifest, read_program(text, f"{path}: program.json", weights), members, weights)


def read_program(text: Any, where: str, weights: Mapping[str, Any]) -> Program:
    """The program in the member `where`, which names some of the `weights`; UserError for one that is not good."""
    try:
        program = program_from_json(_json(text, where))
    except UserError as e:
        raise UserError(e.message if e.message.startswith(where) else f"{where}: {e}") from None
    for name in program.weight_names():
        if name not in weights:
            raise UserError(f"{where} uses weight '{name}', which the file does not have")
    return program


def check_manifest(manifest: Any, where: str) -> None:
    """UserError when `manifest` is not one that this version reads."""
    if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
        raise UserError(f"{where}: manifest.json has no format version")
    if manifest["format"] != FORMAT_VERSION:
        raise UserError(f"{where}: format version {manifest['format']}; this xcc reads {FORMAT_VERSION}: compile again")
    for key in ("target", "chip"):
        if not isinstance(manifest.get(key), str):
            raise UserError(f"{where}: manifest.json has no {key}")


def _weight_chunks(store: WeightStore) -> Iterator[Any]:
    header, names, _ = safetensors_chunks(store)
    yield header
    for name in names:
        a = np.ascontiguousarray(store[name])
        if a.size:
            yield a.reshape(-1).view(np.uint8).data
        if a.nbytes % ALIGN:
            yield bytes(-a.nbytes % ALIGN)


def _hash(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_hashes(members: Mapping[str, Any], manifest: Mapping[str, Any], where: str) -> None:
    """UserError for a member (but the weights) that is not the one that was written, is not listed or is missing."""
    listed = manifest.get("sha256")
    if not isinstance(listed, dict):
        raise UserError(f"{where}: manifest.json has no sha256 of the members")
    for name in sorted({*members, *listed} - {_WEIGHTS}):
        if name not in members or name not in listed:
            raise UserError(f"{where}: damaged: '{name}' is "
                            f"{'not in the file' if name in listed else 'not listed in manifest.json'}")
        if listed[name] != _hash(members[name]):
            raise UserError(f"{where}: damaged: '{name}' is not what manifest.json says (its SHA-256 differs)")


def _sum(data: Any) -> int:
    """The sum of the 64-bit words: finds any flipped bit at the speed of memory, so that large weights load fast."""
    raw = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data
    whole = len(raw) // 8 * 8
    tail = int.from_bytes(bytes(raw[whole:]), "little")
    return (int(np.add.reduce(raw[:whole].view("<u8"), dtype=np.uint64)) + tail) % (1 << 64)


class _Writer:
    """A zip writer for stored members whose data starts at multiples of ALIGN."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.central: list[bytes] = []

    def add(self, name: str, chunks: list[Any]) -> None:
        encoded = name.encode()
        crc, size = 0, 0
        for c in chunks:
            crc = zlib.crc32(c, crc)
            size += len(c)
        at = self.file.tell()
        large, far = size >= _MAX32, at >= _MAX32
        version = 45 if large or far else 20
        extra = struct.pack("<HHQQ", _ZIP64, 16, size, size) if large else b""
        short = min(size, _MAX32)
        pad = -(at + _LOCAL.size + len(encoded) + len(extra) + 4) % ALIGN
        extra += struct.pack("<HH", _PADDING, pad) + b"\0" * pad
        self.file.write(_LOCAL.pack(0x04034B50, version, 0, 0, 0, _DATE, crc, short, short, len(encoded), len(extra)))
        self.file.write(encoded + extra)
        for c in chunks:
            self.file.write(c)
        wide = ([size, size] if large else []) + ([at] if far else [])
        extra = struct.pack(f"<HH{len(wide)}Q", _ZIP64, 8 * len(wide), *wide) if wide else b""
        self.central.append(_CENTRAL.pack(0x02014B50, version, version, 0, 0, 0, _DATE, crc, short, short, len(encoded),
                                          len(extra), 0, 0, 0, 0, min(at, _MAX32)) + encoded + extra)

    def finish(self) -> None:
        at = self.file.tell()
        directory = b"".join(self.central)
        count = len(self.central)
        self.file.write(directory)
        if at >= _MAX32 or count >= _MAX16:
            self.file.write(_END64.pack(0x06064B50, _END64.size - 12, 45, 45, 0, 0, count, count, len(directory), at)
                            + _LOCATOR64.pack(0x07064B50, 0, at + len(directory), 1))
            at, count = _MAX32, min(count, _MAX16)
        self.file.write(_END.pack(0x06054B50, 0, 0, count, count, len(directory), at, 0))


def _directory(data: Any, where: str) -> tuple[int, int]:
    """How many members the zip has, and where its directory starts."""
    total = len(data)
    if total < _END.size:
        raise UserError(f"{where}: not a compiled model: only {total} bytes")
    magic, _, _, count, _, size, at, _ = _END.unpack(bytes(data[-_END.size:]))
    end = total - _END.size
    if magic == 0x06054B50 and at == _MAX32 and end >= _LOCATOR64.size + _END64.size:
        end -= _LOCATOR64.size
        magic64, _, begin, _ = _LOCATOR64.unpack(bytes(data[end:end + _LOCATOR64.size]))
        if magic64 == 0x07064B50 and begin == end - _END64.size:
            end = begin
            magic64, _, _, _, _, _, count, _, size, at = _END64.unpack(bytes(data[end:end + _END64.size]))
            magic = magic if magic64 == 0x06064B50 else 0
    if magic != 0x06054B50 or at + size != end:
        raise UserError(f"{where}: not a compiled model, or cut off: its end is not that of an .xcm file")
    return count, at


def _members(data: Any, where: str) -> dict[str, Any]:
    """Path -> view of the bytes, each member's place, size and checksum checked."""
    total = len(data)
    count, at = _directory(data, where)
    members: dict[str, Any] = {}
    for _ in range(count):
        if at + _CENTRAL.size > total:
            raise UserError(f"{where}: damaged: its directory is cut off")
        fields = _CENTRAL.unpack(bytes(data[at:at + _CENTRAL.size]))
        name_size, extra, comment = fields[10:13]
        name = one_line(bytes(data[at + _CENTRAL.size:at + _CENTRAL.size + name_size]).decode("utf-8", "replace"))
        at += _CENTRAL.size + name_size
        packed, size, offset = _wide((fields[8], fields[9], fields[16]), bytes(data[at:at + extra]))
        at += extra + comment
        if fields[0] != 0x02014B50 or fields[4] != 0 or packed != size:
            raise UserError(f"{where}: damaged: bad directory entry for '{name}'")
        check_member_path(name, where)
        if name in members:
            raise UserError(f"{where}: damaged: '{name}' is there twice")
        members[name] = _member(data, where, name, offset, size, fields[7])
    return members


def _wide(values: tuple[int, ...], extra: bytes) -> list[int]:
    """`values`, those that are not there in 32 bits taken from the zip64 field in `extra`."""
    wide: list[int] = []
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == _ZIP64:
            wide = [v for v, in struct.iter_unpack("<Q", extra[4:4 + size // 8 * 8])] if len(extra) >= 4 + size else []
        extra = extra[4 + size:]
    return [wide.pop(0) if v == _MAX32 and wide else v for v in values]


def _member(data: Any, where: str, name: str, offset: int, size: int, crc: int) -> Any:
    if offset + _LOCAL.size > len(data):
        raise UserError(f"{where}: damaged: '{name}' starts behind the end of the file")
    local = _LOCAL.unpack(bytes(data[offset:offset + _LOCAL.size]))
    middle = offset + _LOCAL.size + local[9]
    begin = middle + local[10]
    name_there = bytes(data[offset + _LOCAL.size:middle])
    sizes = _wide(local[7:9], bytes(data[middle:begin]))
    if (local[0] != 0x04034B50 or begin % ALIGN or begin + size > len(data) or name_there != name.encode()
            or local[6] != crc or sizes != [size, size]):
        raise UserError(f"{where}: damaged: '{name}' is not where its directory says")
    view = data[begin:begin + size]
    if name != _WEIGHTS and zlib.crc32(view) != crc:
        raise UserError(f"{where}: damaged: the checksum of '{name}' is wrong")
    return view


def check_member_path(name: str, where: str) -> None:
    """UserError for a path that would leave the archive or is not plain."""
    parts = name.split("/")
    if not name or "\\" in name or ":" in name or "\0" in name or any(p in ("", ".", "..") for p in parts):
        raise UserError(f"{where}: refused: member path {name!r} is not a plain path inside the archive")


def _json(data: Any, where: str) -> Any:
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as e:
        raise UserError(f"{where}: not readable: {e}") from None
