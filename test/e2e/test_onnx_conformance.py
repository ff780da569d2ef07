"""The ONNX backend suite through `xcc.onnx_backend`: interpreted (the ops' numpy meaning) and compiled for the CPU.

`onnx_expected_failures.txt` lists what does not pass; a listed test that passes is an error. All tests run
interpreted and every third one compiled, of those that spell an op by others (`_expanded`) every ninth, as the others'
tests compile these; ``XCC_CONFORMANCE=all`` compiles all. ``python test_onnx_conformance.py
compile`` (or ``interpret``) prints what fails and the count.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import xcc
from xcc import onnx_backend
from xcc.interpreter.executor import make_executor as interpreting

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
OPTIONS: dict[str, dict[str, Any]] = {"interpret": {}, "compile": {"cache": False, "isolate": False}}
COMPILED_EVERY = {False: 1, True: 1} if os.environ.get("XCC_CONFORMANCE") == "all" else {False: 3, True: 9}
"""One in so many is compiled, by whether the name says that it is expanded."""
ON_CHIPS = [("test_matmulinteger", "sm_90a"), ("test_qlinearmatmul_2D_uint8_float32", "gfx942"),
            ("test_qlinearmatmul_3D_int8_float32", "gfx1100"), ("test_qlinearmatmul_3D_uint8_float16", "sm_80")]
MATRIX = (b"xtg.mma", b"amdgpu.mfma", b"amdgpu.wmma")
EXPECTED = Path(__file__).with_name("onnx_expected_failures.txt")


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {c.name: c for kind in KINDS for c in load_model_tests(kind=kind)}
    return dict(sorted(found.items()))


@cache
def expected_failures(engine: str) -> dict[str, str]:
    """Test -> reason. A line is ``test reason`` for every engine, ``test@engine reason`` for one."""
    lines = [line for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    entries = [(name.partition("@"), reason) for name, _, reason in (line.partition(" ") for line in lines)]
    return {name: reason.strip() for (name, _, only), reason in entries if only in ("", engine)}


def compiled_names() -> list[str]:
    return sorted(name for expanded, every in COMPILED_EVERY.items()
                  for name in [n for n in cases() if ("_expanded" in n) == expanded][::every])


def _value(x: Any) -> Any:
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def _data_sets(case: Any, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    if case.data_sets:
        for inputs, outputs in case.data_sets:
            yield [_value(x) for x in inputs], [_value(x) for x in outputs]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield tuple([_read(folder / f"{kind}_{i}.pb") for i in range(len(list(folder.glob(f"{kind}_*.pb"))))]
                    for kind in ("input", "output"))  # type: ignore[misc]


def _read(path: Path) -> Any:
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def check(case: Any, engine: str) -> None:
    """Raises when the case's outputs differ from what is expected."""
    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    backend = onnx_backend.prepare(model, engine=engine, **OPTIONS[engine])
    for inputs, outputs in _data_sets(case, model):
        for got, want in zip(backend.run(inputs), outputs, strict=True):
            if isinstance(want, list):
                assert isinstance(got, list)
                for g, w in zip(got, want, strict=True):
                    _compare(np.asarray(g), np.asarray(w), case)
            else:
                _compare(np.asarray(got), np.asarray(want), case)


def _compare(got: Any, want: Any, case: Any) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind not in "fV":
        np.testing.assert_array_equal(got, want)
        return
    narrow = want.dtype.itemsize < 4
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-2 if narrow else case.rtol,
                               atol=1e-3 if narrow else max(case.atol, 1e-6))


def run(name: str, engine: str) -> None:
    reason = expected_failures(engine).get(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            check(cases()[name], engine)
        except Exception as e:
            if reason is None:
                raise
            pytest.xfail(f"{reason}: {e}")
    assert reason is None, f"passes, but is listed as failing ({reason}): delete its line in {EXPECTED.name}"


@pytest.mark.parametrize("name", list(cases()))
def test_interpreted(name: str) -> None:
    run(name, "interpret")


@pytest.mark.parametrize("name", compiled_names())
def test_compiled(name: str) -> None:
    run(name, "compile")


@pytest.mark.parametrize("name, chip", ON_CHIPS)
def test_products_of_bytes_on_gpus(name: str, chip: str) -> None:
    """Compiled for a GPU, run by the interpreter."""
    case = cases()[name]
    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
    compiled = xcc.compile(model, target=target, chip=chip, cache=False, keep_ir=True)
    a = compiled.artifact
    assert any(i in bytes(v) for n, v in a.members.items() if n.startswith("ir/") for i in MATRIX)
    compiled._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    for inputs, outputs in _data_sets(case, model):
        got = compiled.run({i.name: x for i, x in zip(model.graph.input, inputs, strict=True)})
        for g, w in zip(got.values(), outputs, strict=True):
            _compare(np.asarray(g), np.asarray(w), case)


def test_expected_failures_exist() -> None:
    assert not {name for engine in OPTIONS for name in expected_failures(engine)} - set(cases())


def main(engine: str = "compile") -> int:
    passed, failed = 0, []
    for name, case in cases().items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(case, engine)
            passed += 1
        except Exception as e:
            failed.append(f"{name} {type(e).__name__}: {' '.join(str(e).split())[:200]}")
    print("\n".join(failed))
    print(f"{passed} of {passed + len(failed)} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
