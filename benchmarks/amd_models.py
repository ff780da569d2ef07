"""Compiles the test models for AMD chips and prints what their code objects need, one row a model and chip.

    XCC_TEST_MODELS=FOLDER python benchmarks/amd_models.py [--chip gfx942 ...] [--precision f16] [name ...]

Every code object has been linked by LLD and compared with its launches (`check_kernel`). Exit status 1 when a model
does not compile, or a kernel spills, uses scratch memory or more LDS than the chip gives a workgroup.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
import models  # noqa: E402

from xcc.compiler import compile_model  # noqa: E402
from xcc.options import CompileOptions  # noqa: E402
from xcc.targets.amdgcn.chip import CHIPS  # noqa: E402
from xcc.targets.base import KernelBinary  # noqa: E402

HEAD = ("model", "chip", "kernels", "code bytes", "VGPRs", "AGPRs", "SGPRs", "LDS bytes", "scratch", "spills",
        "SGPR spills", "lowest occupancy", "kernels with matrix loop", "largest share")


def kernels_of(name: str, chip: str, precision: str, jobs: int) -> tuple[KernelBinary, ...]:
    """The compiled kernels of the test model `name`."""
    model = models.MODELS[name]
    options = CompileOptions.make("amdgcn", model.dims, chip=chip, precision=precision, jobs=jobs)
    return compile_model(str(model.get()), options).kernels


def row(name: str, chip: str, kernels: tuple[KernelBinary, ...]) -> tuple[str, ...]:
    reports: list[dict[str, Any]] = [dict(k.report) for k in kernels]

    def most(key: str) -> int:
        return max((int(r[key]) for r in reports), default=0)

    shares = [float(r["matrix_share"]) for r in reports if r["loop_matrix"]]
    return (name, chip, str(len(kernels)), str(sum(len(k.blob) for k in kernels)),
            *(str(most(k)) for k in ("vgprs", "agprs", "sgprs", "shared_bytes", "scratch_bytes", "spills",
                                     "sgpr_spills")),
            str(min((int(r["occupancy"]) for r in reports), default=0)), str(len(shares)),
            f"{max(shares, default=0):.0%}")


def faults(chip: str, kernels: tuple[KernelBinary, ...]) -> list[str]:
    """The kernels that a chip cannot run at speed, or not at all."""
    out = []
    for k in kernels:
        r = dict(k.report)
        if r["scratch_bytes"] or r["spills"] or int(r["shared_bytes"]) > CHIPS[chip].shared_bytes:
            out.append(f"{k.name}: scratch {r['scratch_bytes']}, spills {r['spills']}, LDS {r['shared_bytes']}")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="default: every model that is at hand")
    parser.add_argument("--chip", action="append", choices=sorted(CHIPS), help="default: all")
    parser.add_argument("--precision", default="")
    parser.add_argument("--jobs", type=int, default=0, help="kernel compiler processes (default: one a core)")
    args = parser.parse_args()
    print("|" + "|".join(HEAD) + "|\n" + "|---" * len(HEAD) + "|", flush=True)
    bad = 0
    for name in args.name or models.MODELS:
        for chip in args.chip or CHIPS:
            begin = time.perf_counter()
            try:
                kernels = kernels_of(name, chip, args.precision, args.jobs)
            except FileNotFoundError as e:
                print(f"{name}: skipped: {e}", file=sys.stderr)
                break
            except Exception as e:
                print(f"{name} {chip}: FAILED {type(e).__name__}: {e}", file=sys.stderr, flush=True)
                bad += 1
                continue
            print("|" + "|".join(row(name, chip, kernels)) + "|", flush=True)
            print(f"{name} {chip}: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
            for line in faults(chip, kernels):
                print(f"{name} {chip}: {line}", file=sys.stderr, flush=True)
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
