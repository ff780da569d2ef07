"""The command line of xcc."""

from __future__ import annotations

from xcc.diagnostics import listed
from xcc.options import PRECISIONS
from xcc.targets.base import get_target, target_names
from xcc.tools.common import ArgumentParser

__all__ = ["TUNING_FILE", "parser"]

TITLE = "xcc: compiles a model to an artifact, or to the IR of any stage."
TUNING_FILE = "xcc-tuning.txt"


def parser() -> ArgumentParser:
    formats = ", ".join(f"{listed(get_target(t).formats)} ({t})" for t in target_names())
    p = ArgumentParser(prog="xcc", description=TITLE,
                       epilog="exit status: 0 done, 1 bad input or option, 70 a bug in xcc (a reproducer was saved)")
    p.add_argument("model", nargs="?", metavar="MODEL", help=".onnx, .pt2 (torch.export), the .mlir of any stage, or "
                   "kernels.py::NAME, a kernel of a Python file, which is imported")
    p.add_argument("-o", "--output", default="", metavar="FILE",
                   help="the artifact (default: MODEL.xcm), or with --emit the IR (default: standard output)")
    p.add_argument("--target", default="cpu", metavar="T[,opt=..]", help=f"{listed(target_names())} (default: cpu)")
    p.add_argument("--chip", default="native", metavar="C[,attr=..]", help="a chip of the target's table, with "
                   "attributes to change (znver4,cores=8), or several (A,B: the runtime takes what fits); "
                   "'native' (default) is this machine's; 'list' prints all")
    p.add_argument("--emit", default="", metavar="STAGE",
                   help="stop after this stage and write its IR; or write all kernels' code as one file: "
                   f"{formats}; 'code': a file a kernel in the folder -o")
    p.add_argument("--dump-stages", default="", metavar="DIR", help="write the IR after each stage; compiling goes on")
    p.add_argument("--dim", action="append", default=[], metavar="N=SIZE", help="fix a dim, or bound it: N=LOW..HIGH")
    p.add_argument("--fix", action="append", default=[], metavar="INPUT=VALUE",
                   help="make an input a constant: a number or [..., ...]")
    p.add_argument("--update", action="append", default=[], metavar="OUTPUT=INPUT",
                   help="an output takes the place of an input, whose array is written to: present.0.key=past.0.key")
    p.add_argument("--precision", default="", choices=PRECISIONS[1:], metavar="TYPE",
                   help=f"compute type of f32 parts: {', '.join(PRECISIONS[1:])}")
    p.add_argument("--mesh", default="", metavar="AXIS:RANKS,..", help="axes of ranks that share the model: tp:2, "
                   "dp:2,tp:4 (data parallel along dp, tensor parallel along others); auto:8 takes the best of 8 ranks")
    p.add_argument("--shard", action="append", default=[], metavar="NAMES=AXIS:DIM", help="where inputs, outputs and "
                   "weights lie whose names match: 'h.*.weight=tp:0', 'wte=whole'; the rest is chosen by cost")
    p.add_argument("--print-sharding", action="store_true", help="print what ranks exchange; without -o or "
                   "--emit that is all")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="cpu threads of the compiled model")
    p.add_argument("--no-winograd", action="store_true", help="no convolutions in Winograd's form (cpu)")
    p.add_argument("--tuning", default="", metavar="FILE", help="a tuning database to take schedules from")
    p.add_argument("--tune", nargs="?", type=float, const=60.0, default=0.0, metavar="SECONDS",
                   help="first measure other schedules on this machine (default 60 s); what wins goes into the "
                        f"--tuning file (default {TUNING_FILE})")
    p.add_argument("--pipeline", default="", metavar="TEXT|@FILE", help="passes to run in place of the target's")
    p.add_argument("--print-pipeline", action="store_true", help="print the target's pipeline and stop")
    p.add_argument("--plugin", action="append", default=[], metavar="FILE", help="a Python file that registers passes")
    p.add_argument("--verify", default="stage", metavar="STAGE|each|numbers",
                   help="verify after each pass, or each of STAGE; numbers: evaluate the model on random inputs after "
                   "each pass up to stage kernels, and name the pass that changes a result")
    p.add_argument("--timing", action="store_true", help="print the seconds of each stage and pass")
    p.add_argument("--keep-ir", action="store_true", help="store the kernels' IR for xcc-run --interpret")
    p.add_argument("--jobs", type=int, default=0, metavar="N", help="kernel compiler processes (default: one a core)")
    p.add_argument("--no-cache", action="store_true", help="compile everything anew")
    p.add_argument("--debug-patterns", action="store_true", help="say why a pattern did not apply")
    p.add_argument("-v", "--verbose", action="count", default=0,
                   help="print what was fused and what GPU kernels need of the chip; -vv also each pass")
    p.add_argument("--version", action="store_true", help="print the version and stop")
    return p
