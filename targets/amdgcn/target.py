"""The AMD target."""

from __future__ import annotations

from xcc.passes.legal_ops import PLANNED, THREADS
from xcc.targets.amdgcn.chip import chips, default_chip
from xcc.targets.base import Target
from xcc.targets.folders import deferred
from xcc.targets.kernel_binary import kernel_files

TARGET = Target(
    name="amdgcn", chips=chips, default_chip=default_chip, link=kernel_files,
    pipeline=deferred("amdgcn", "pipeline", "pipeline"), tile_stages=deferred("amdgcn", "pipeline", "tile_stages"),
    emit_kernel=deferred("amdgcn", "emit", "emit_kernel"),
    formats=("asm", "hsaco"), code_file=deferred("amdgcn", "emit", "code_file"), fewer_registers=(224, 192, 160, 112),
    planned_stage="plan", kept_stage="gpu", shares_after="",        # pointers of kernels are llvm.noalias
    legal={"plan": PLANNED, "gpu": (*THREADS, "amdgpu.*", "rocdl.*"),
           "rocdl": ("builtin.module", "gpu.module", "llvm.*", "rocdl.*")},
    title="AMD GPUs", other_names="amd amdgpu device gcn gpu hip hsaco rocm",
    other_chips={"gfx90a": "mi210 mi250 mi250x", "gfx942": "mi300 mi300a mi300x mi325x", "gfx950": "mi350x mi355x",
                 "gfx1100": "rx7900xt rx7900xtx w7900", "gfx1201": "rx9070 rx9070xt r9700"})
