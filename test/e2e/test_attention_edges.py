"""Attentions around the sizes of tiles, with every mask: in the interpreter, and with several batches on a GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attention_edges import WINDOW, device_cases, edge_cases, wrong
from attention_forms import Case, module_of
from compiled import EXAMPLES, compiled, on_chip
from gpu_poison import SharedPoison, shared_poison

import xcc
from xcc._mlir import ir
from xcc.passes.gpu import warpgroup_matrix
from xcc.runtime.cuda_api import find_gpu
from xcc.runtime.cuda_driver import CudaDriver

CHIPS = ("sm_90a", "sm_80", "gfx942")
FEW = replace(WINDOW, batch=2, queries=1, keys=4, features=8)      # too few keys for a matrix instruction's k


def chosen() -> list[tuple[Case, str]]:
    """Each case on one chip, the chips in turn; on all of them with XCC_EXAMPLES above 1."""
    cases = edge_cases(max(1, int(12 * EXAMPLES)))
    return [(c, chip) for n, c in enumerate(cases) for i, chip in enumerate(CHIPS) if EXAMPLES > 1 or i == n % 3]


def registers(group: str) -> list[str]:
    return re.findall(r"%r\d+", group)


@pytest.mark.parametrize(("case", "chip"), [(WINDOW, "sm_90a"), *((FEW, chip) for chip in CHIPS), *chosen()], ids=str)
def test_edge(case: Case, chip: str) -> None:
    arrays = case.arrays()
    with on_chip(chip):
        model: Any = compiled(module_of(case, arrays))
    for path, code in model.artifact.members.items():
        groups = re.findall(r"wgmma\.mma_async[^{]*(\{[^}]*\}), (\{[^}]*\})", str(bytes(code)) if "ptx" in path else "")
        assert not any(set(registers(sums)) & set(registers(weights)) for sums, weights in groups)
    assert not wrong(model, None, case, arrays)


def test_a_register_for_two_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros of the weights of keys behind the last, and zeros that the sums begin with."""
    statement = warpgroup_matrix.inline_asm

    def without_early_clobber(*args: Any, **named: Any) -> Any:
        result = statement(*args, **named)
        op = result.owner
        op.attributes["constraints"] = ir.StringAttr.get(op.attributes["constraints"].value.replace("&", ""))
        return result

    case = replace(WINDOW, batch=1)
    arrays = case.arrays()
    with on_chip("sm_90a"):
        model: Any = compiled(module_of(case, arrays))
    monkeypatch.setattr(warpgroup_matrix, "inline_asm", without_early_clobber)
    assert "error" in wrong(model, None, case, arrays)


@pytest.mark.gpu
def test_edges_on_the_gpu(tmp_path: Path) -> None:
    """In poisoned memory (conftest.py) and shared memory."""
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    from xcc.targets.nvptx.driver import default_chip

    shared = SharedPoison(CudaDriver(), shared_poison(default_chip().name))
    bad = []
    for n, case in enumerate(device_cases(int(40 * EXAMPLES))):
        path, arrays = tmp_path / f"{n}.mlir", case.arrays(n)
        path.write_text(str(module_of(case, arrays)))
        message = wrong(xcc.compile(path, target="nvptx"), shared, case, arrays)
        bad += [f"{case}: {message}"] if message else []
    assert not bad, "\n".join(bad)
