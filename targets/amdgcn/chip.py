"""The table of AMD GPUs.

Peaks are dense, of the shipped product named beside each (vendor data sheets). One gfx90a is one of the two dies of an
MI250X. `matrix` names the instruction families of ``passes/gpu/vendor/fragments_amd``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xcc.targets.base import Chip

_KB, _MB = 1 << 10, 1 << 20
_TRIPLE = "amdgcn-amd-amdhsa"


class AmdChip(Chip):
    """What AMD's chips are like."""

    instruction_tables = ("xcc.passes.gpu.vendor.fragments_amd",)
    primitives = "xcc.targets.amdgcn.primitives"
    tiles = "xcc.targets.amdgcn.tiles"
    intrinsics: ClassVar[Mapping[str, str]] = {"exp2": "amdgcn.exp2.*"}

    @property
    def masks_loads(self) -> bool:
        return True

    @property
    def reads_fragments_ahead(self) -> bool:
        return self.warp > 32

    @property
    def fragment_copies(self) -> int:
        return 2 if any(f.startswith("wmma-rdna3") for f in self.matrix) else 1

    @property
    def narrow_waves(self) -> bool:
        return any(f.startswith("wmma") for f in self.matrix)

    @property
    def lanes_in_step(self) -> bool:
        return self.warp == 64


XGMI = 60e9         # bytes/s of a collective: of a link between two chips, and without one; not measured
PCIE = 20e9
NETWORK = 40e9      # a GPU's share of its machine's network: 400 Gbit/s in large clusters; likewise
COLLECTIVE, AFAR = 20_000, 40_000       # nanoseconds of a small one, and over a network; likewise


def _cdna(name: str, cores: int, shared: int, l2: int, l3: int, bandwidth: float, flops: dict[str, float],
          matrix: tuple[str, ...], memory: int) -> Chip:
    return AmdChip(name=name, triple=_TRIPLE, cpu=name, cores=cores, vector_bytes=16, vector_registers=512, warp=64,
                   max_threads=1024, shared_bytes=shared, l2_bytes=l2, l3_bytes=l3, bandwidth=bandwidth,
                   flops=tuple(flops.items()), matrix=matrix, link_bandwidth=XGMI, link_latency=COLLECTIVE,
                   memory_bytes=memory * 10**9, network_bandwidth=NETWORK, network_latency=AFAR)


def _rdna(name: str, cores: int, l2: int, l3: int, bandwidth: float, flops: dict[str, float],
          matrix: tuple[str, ...], memory: int) -> Chip:
    """Without halves of registers as registers of their own: LLVM 22 fails on copies of them in f16 kernels."""
    return AmdChip(name=name, triple=_TRIPLE, cpu=name, features="-real-true16", cores=cores, vector_bytes=16,
                   vector_registers=256, warp=32, max_threads=1024, shared_bytes=64 * _KB, l2_bytes=l2, l3_bytes=l3,
                   bandwidth=bandwidth, flops=tuple(flops.items()), matrix=matrix, link_bandwidth=PCIE,
                   link_latency=COLLECTIVE, memory_bytes=memory * 10**9, network_bandwidth=NETWORK,
                   network_latency=AFAR)


CHIPS: dict[str, Chip] = {chip.name: chip for chip in (
    # MI250X, one die
    _cdna("gfx90a", 110, 64 * _KB, 8 * _MB, 0, 1.638e12,
          {"f64": 47.9e12, "f32": 47.9e12, "f16": 191.5e12, "bf16": 191.5e12, "i8": 191.5e12},
          ("mfma", "mfma-cdna2"), 64),
    # MI300X
    _cdna("gfx942", 304, 64 * _KB, 4 * _MB, 256 * _MB, 5.3e12,
          {"f64": 163.4e12, "f32": 163.4e12, "tf32": 653.7e12, "f16": 1307.4e12, "bf16": 1307.4e12, "i8": 2614.9e12,
           "f8": 2614.9e12},
          ("mfma", "mfma-cdna3", "mfma-cdna3-f8", "mfma-xf32"), 192),
    # MI355X
    _cdna("gfx950", 256, 160 * _KB, 4 * _MB, 256 * _MB, 8.0e12,
          {"f64": 78.6e12, "f32": 157.3e12, "f16": 2516.6e12, "bf16": 2516.6e12, "i8": 5033.2e12, "f8": 5033.2e12},
          ("mfma-cdna4", "mfma", "mfma-cdna3"), 288),
    # Radeon RX 7900 XTX
    _rdna("gfx1100", 96, 6 * _MB, 96 * _MB, 960e9,
          {"f32": 61.4e12, "f16": 122.8e12, "bf16": 122.8e12, "i8": 122.8e12}, ("wmma-rdna3",), 24),
    # Radeon RX 9070 XT
    _rdna("gfx1201", 64, 8 * _MB, 64 * _MB, 644.6e9,
          {"f32": 48.7e12, "f16": 194.6e12, "bf16": 194.6e12, "i8": 389.3e12, "f8": 389.3e12}, ("wmma-rdna4",), 16),
)}


def chips() -> dict[str, Chip]:
    return CHIPS


def default_chip() -> Chip:
    """The GPU of this machine when there is one in the table, else gfx942."""
    from xcc.runtime.hip_driver import device_architecture

    return CHIPS.get(device_architecture(), CHIPS["gfx942"])
