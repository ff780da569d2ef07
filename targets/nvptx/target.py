"""The NVIDIA target."""

from __future__ import annotations

from xcc.passes.legal_ops import PLANNED, THREADS
from xcc.targets.base import Target
from xcc.targets.folders import deferred
from xcc.targets.kernel_binary import kernel_files
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.driver import default_chip


def _tools() -> str:
    """ptxas, where it is installed, makes the cubins."""
    from xcc.targets.nvptx.ptxas import find_ptxas

    return find_ptxas() or ""


TARGET = Target(
    name="nvptx", chips=chips, default_chip=default_chip, link=kernel_files,
    pipeline=deferred("nvptx", "pipeline", "pipeline"), tile_stages=deferred("nvptx", "pipeline", "tile_stages"),
    emit_kernel=deferred("nvptx", "emit", "emit_kernel"),
    code_file=deferred("nvptx", "emit", "code_file"),
    collective_kernels=deferred("nvptx", "peer_collectives", "collective_kernels"),
    formats=("ptx", "asm", "cubin"), text_formats=("ptx", "asm"), portable="ptx", kept_stage="gpu", shares_after="gpu",
    legal={"plan": PLANNED, "gpu": (*THREADS, "nvgpu.*", "nvvm.*"),
           "nvvm": ("builtin.module", "gpu.module", "llvm.*", "nvvm.*")},
    options={"code": ("cubin", "ptx")},     # what alone the artifact holds; both where ptxas is found, else PTX
    title="NVIDIA GPUs", other_names="cuda cubin device gpu nvidia nvptx64 ptx sm", tools=_tools,
    other_chips={"sm_80": "a100 a30 ampere", "sm_86": "a10 a40 rtx3090 sm_87", "sm_89": "ada l4 l40 l40s rtx4090",
                 "sm_90a": "gh200 h100 h200 h800 hopper sm_90", "sm_100a": "b100 b200 blackwell gb200 sm_100"})
