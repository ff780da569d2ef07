"""lit finds the tools either installed (a wheel) or through the folder of links that `make links` builds.

They run as forks of one process (lit_tools/server.py), which ends with lit.
"""

import os
import socket
import subprocess
import sys
import tempfile

import lit.formats

config.name = "xcc"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["unit", "e2e", "Inputs", "lit_tools"]  # noqa: F821
config.test_source_root = os.path.dirname(os.path.abspath(__file__))  # noqa: F821
root = os.path.dirname(config.test_source_root)  # noqa: F821
host = os.path.basename(os.environ.get("XCC_PRETENDED_HOST", ""))       # two may be pretended at a time
config.test_exec_root = os.path.join(root, "build", "lit", host)  # noqa: F821

python = sys.executable
links = os.path.join(root, "build", "links")
if os.environ.get("XCC_TEST_INSTALLED") != "1" and os.path.isdir(links):
    config.environment["PYTHONPATH"] = links  # noqa: F821
for variable in ("HOME", "XDG_CACHE_HOME", "LD_LIBRARY_PATH", "MALLOC_PERTURB_"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]  # noqa: F821

tools = os.path.join(config.test_source_root, "lit_tools")  # noqa: F821
address = os.path.join(tempfile.mkdtemp(prefix="xcc-lit-"), "server")
listener = socket.socket(socket.AF_UNIX)
listener.bind(address)
listener.listen(256)
ending, until_here = os.pipe()      # the other end is closed when lit ends
subprocess.Popen([python, os.path.join(tools, "server.py"), str(listener.fileno()), str(ending)],
                 pass_fds=(listener.fileno(), ending), env={**os.environ, **config.environment})  # noqa: F821
os.close(ending)
listener.close()
# Tests name their chips: asking for this machine's is an error, but in tools/ (lit.local.cfg).
config.environment["XCC_PRETENDED_HOST"] = os.path.join(config.test_source_root, "a test that names its chip")  # noqa: F821
client = f"{python} -I -S {os.path.join(tools, 'client.py')} {address}"

for tool in ("xcc_opt", "xcc_run", "xcc_bench", "xcc_cli"):
    config.substitutions.append((f"%{tool}", f"{client} {tool}"))  # noqa: F821
config.substitutions += [  # noqa: F821
    ("%xcc", f"{client} xcc_cli"),
    ("%python", python),
    ("%decisions", "stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, "
                   "whole-steps, persistent-grid, group-tiles, coarsen-grid, epilogue-pieces, prefetch-epilogue, "
                   "prefetch-fragments, convert-layouts"),
    ("%loops", "peel-tails, block-depth, blocked-sums, deal-rows, pack-rows, pack-columns, decode-panels, keep-values, "
               "park-values, epilogue-strips, unroll-steps, prefetch-panels, prefetch-inputs, non-temporal-stores"),
    (r"\bfilecheck\b", f"{client} filecheck"),
]
