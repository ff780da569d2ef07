"""Compiles every GPU schedule for AMD chips and prints what its code needs, one row a schedule.

    python benchmarks/amd_schedules.py [--chip gfx942 ...] [--only TEXT ...] [--run]

The programs and their sizes are those of test/e2e/schedule_cases.py. A cell holds VGPRs (and AGPRs) of a thread / KiB
of LDS of a workgroup / waves that a SIMD holds / share of matrix instructions in the loop that has the most of them,
read from the assembled code; of several kernels the largest need.

Exit status 1 where a kernel uses scratch memory, spills, needs more LDS than there is, or has no matrix instruction
though the chip has one for its element type. With --run each small size also runs in the interpreter, against numpy.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
import schedule_cases as cases  # noqa: E402

from xcc.targets.amdgcn.chip import CHIPS  # noqa: E402


def cell(case: cases.Case, chip: str, run: bool) -> tuple[str, list[str]]:
    """The table's entry, and what is wrong."""
    try:
        kernels = cases.compiled_case(case, chip).kernels
        problems = cases.faults(case, chip, kernels)
        r = cases.main_report(kernels)
        if run:
            cases.run_small(case, chip)
    except Exception as e:
        return "failed", [f"{type(e).__name__}: {e}"]
    registers = f"{r['vgprs']}+{r['agprs']}" if r["agprs"] else str(r["vgprs"])
    share = f"{r['matrix_share']:.0%}" if r["loop_matrix"] else "-"
    return f"{registers} / {r['shared_bytes'] / 1024:.3g} / {r['occupancy']} / {share}", problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", action="append", choices=sorted(CHIPS), help="default: all")
    parser.add_argument("--only", action="append", default=[],
                        help="only schedules whose name contains this text, or one of several")
    parser.add_argument("--run", action="store_true", help="also run the small sizes in the interpreter")
    args = parser.parse_args()
    chips = args.chip or list(CHIPS)
    print("|schedule|" + "|".join(chips) + "|\n" + "|---" * (len(chips) + 1) + "|", flush=True)
    bad = 0
    for case in (c for c in cases.CASES if not args.only or any(text in c.name for text in args.only)):
        cells = []
        for chip in chips:
            text, problems = cell(case, chip, args.run)
            cells.append(text)
            for line in problems:
                print(f"{case.name} {chip}: {line}", file=sys.stderr, flush=True)
            bad += bool(problems)
        print("|" + "|".join([case.name, *cells]) + "|", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
