"""What a launcher (torchrun, mpirun, srun) has told this process of its place among the ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from xcc.diagnostics import UserError

__all__ = ["Place", "place"]

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_LOCAL_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
_JOB = ("TORCHELASTIC_RUN_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "SLURM_JOB_ID")
_DEFAULT_PORT = 29500       # as PyTorch's


@dataclass(frozen=True)
class Place:
    """`rank` of `size`; `local_rank` of the `local_size` on this machine; `address` of rank 0's machine, and the `port`
    that the launcher chose there; `job` tells ranks of different jobs apart, and `secret` is what its ranks know."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    address: str = "127.0.0.1"
    port: int = _DEFAULT_PORT
    job: str = ""
    secret: str = field(default="", repr=False)


def place(environment: Mapping[str, str] | None = None) -> Place:
    """This process's; one rank alone where no launcher has started it. UserError for numbers that are none."""
    env = os.environ if environment is None else environment
    size = _number(env, _SIZE, 1)
    if size <= 1:
        return Place()
    rank = _number(env, _RANK, -1)
    if not 0 <= rank < size:
        raise UserError(f"{_which(env, _SIZE)} is {size}, and {' or '.join(_RANK[:2])} does not say which rank this is")
    local = _number(env, _LOCAL_RANK, -1)
    local_size = _number(env, _LOCAL_SIZE, size if "MASTER_ADDR" not in env else 1)
    if local < 0 and "MASTER_ADDR" in env:
        raise UserError("LOCAL_RANK is not set: it says which of this machine's GPUs the rank has")
    if local_size < size and "MASTER_ADDR" not in env:
        raise UserError("MASTER_ADDR is not set: ranks are on several machines, and it names that of rank 0")
    return Place(rank, size, rank if local < 0 else local, local_size, env.get("MASTER_ADDR", "127.0.0.1"),
                 _number(env, ("MASTER_PORT",), _DEFAULT_PORT),
                 "/".join(env[name] for name in _JOB if name in env), env.get("XCC_JOB_SECRET", ""))


def _which(env: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((name for name in names if env.get(name)), "")


def _number(env: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    name = _which(env, names)
    text = env.get(name, "")
    if name and not text.split("(")[0].isdecimal():     # srun: "4(x2)"
        raise UserError(f"{name} is '{text}', which is no number")
    return int(text.split("(")[0]) if name else default
