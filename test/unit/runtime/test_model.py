"""The Model API with an executor that only looks at what it is given."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime import dlpack
from xcc.runtime.artifact import Artifact
from xcc.runtime.model import Model, load
from xcc.runtime.program import Buffer, Program

N, W = symbolic.sym("n"), symbolic.sym("w")


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def run(self, inputs: list[Any], symbols: dict[str, int]) -> list[Any]:
        self.calls.append((inputs, symbols))
        return [np.asarray(i) for i in inputs]


@pytest.fixture
def model() -> Model:
    program = Program((Buffer("input", (N, W * 2), "f32", "x"), Buffer("input", (W, 3), "i64", "i"),
                       Buffer("output", (N, W * 2), "f32", "y"), Buffer("output", (W, 3), "i64", "z")),
                      (), (0, 1), (2, 3), ("n", "w"), {"n": (1, 8)})
    m = Model(Artifact({"target": "cpu", "chip": "c"}, program, {}))
    m._executor = Recorder()
    return m


def x(n: int = 2, w: int = 4) -> np.ndarray[Any, Any]:
    return np.zeros((n, 2 * w), np.float32)


def i(w: int = 4) -> np.ndarray[Any, Any]:
    return np.zeros((w, 3), np.int64)


def test_signature_and_run(model: Model) -> None:
    assert [str(t) for t in model.inputs] == ["x: f32[n, 2*w]", "i: i64[w, 3]"]
    out = model.run({"i": i(), "x": x()})
    assert list(out) == ["y", "z"]
    assert model.executor.calls[0][1] == {"n": 2, "w": 4}
    y, z = model(x(), i())
    assert y.shape == (2, 8)
    assert z.shape == (4, 3)
    assert "f32[n, 2*w]" in repr(model)


def test_lists_and_strided_arrays(model: Model) -> None:
    model(np.zeros((8, 2), np.float32).T, [[1, 2, 3]] * 4)
    given = model.executor.calls[0][0]
    assert given[0].flags.c_contiguous
    assert given[1].dtype == np.int64


@pytest.mark.parametrize(("inputs", "what"), [
    ({"x": x()}, "missing input 'i'; the model's inputs are x: f32"),
    ({"x": x(), "i": i(), "q": i()}, "no input 'q'; its inputs are"),
    ({"x": x().astype(np.float64), "i": i()}, "input 'x': element type is f64, the model takes x: f32"),
    ({"x": x()[0], "i": i()}, r"input 'x': shape is \[8\], the model takes"),
    ({"x": x(), "i": i(5)}, r"dim 1 is 8, but must be 2\*w = 10, as 'w' is 5 \(from dim 0 of input 'i'\)"),
    ({"x": x(), "i": np.zeros((4, 2), np.int64)}, r"input 'i': shape is \[4, 2\]: dim 1 is 2, the model takes 3"),
    ({"x": x(9), "i": i()}, r"dim 0 of input 'x': 'n' is 9, the model was compiled for 1\.\.8"),
    ({"x": "text", "i": i()}, "cannot make an array of f32 from a str"),
    ({"x": np.array(["a"]), "i": i()}, "element type is <U1"),
    ({"x": [[1.0], [1.0, 2.0]], "i": i()}, "cannot make an array of f32 from a list"),
    ({"x": x(1), "i": [[0.5, 1.0, 2.0]]}, "cannot make an array of i64 from a list"),
    ([x(), i()], "inputs come as a dict by name, not as a list"),
    (None, "inputs come as a dict by name, not as a NoneType"),
])
def test_bad_inputs(model: Model, inputs: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        model.run(inputs)


def test_wrong_count(model: Model) -> None:
    with pytest.raises(UserError, match="takes 2 inputs"):
        model(x())


def test_dlpack_from_torch(model: Model) -> None:
    torch = pytest.importorskip("torch")
    given = torch.arange(16, dtype=torch.float32).reshape(2, 8).requires_grad_()
    y, _ = model(given, torch.zeros((4, 3), dtype=torch.int64))
    np.testing.assert_array_equal(y, np.arange(16, dtype=np.float32).reshape(2, 8))
    assert model.executor.calls[0][0][0].__array_interface__["data"][0] == given.data_ptr()


def test_a_tensor_that_is_negated_when_read(model: Model) -> None:
    torch = pytest.importorskip("torch")
    given = torch.complex(torch.zeros(2, 8), torch.ones(2, 8)).conj().imag
    assert given.is_neg()
    y, _ = model(given, i())
    np.testing.assert_array_equal(y, np.full((2, 8), -1, np.float32))


def test_what_dlpack_cannot_share(model: Model) -> None:
    torch = pytest.importorskip("torch")
    for given in (torch.zeros(2, 8).to_sparse(), torch.zeros(2, 8, device="meta"), torch.zeros(2, 8).to(torch.cfloat)):
        with pytest.raises(UserError, match="input 'x': the Tensor cannot be shared|element type .* is not supported"):
            model(given, i())


@pytest.mark.parametrize("name", ["float16", "bfloat16", "bool", "uint8", "float64", "int32"])
def test_dlpack_types(name: str) -> None:
    torch = pytest.importorskip("torch")
    t = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, name))
    view = dlpack.to_numpy(dlpack.import_dlpack(t.T))
    assert view.shape == (3, 2)
    np.testing.assert_array_equal(view.astype(np.float64), t.T.double().numpy())


def test_dlpack_keeps_memory_alive() -> None:
    import gc

    view = dlpack.to_numpy(dlpack.import_dlpack(np.full(1000, 7.0)))
    gc.collect()
    junk = [np.zeros(1000) for _ in range(10)]
    assert (view == 7).all()
    assert len(junk) == 10


def _loaded_by(imports: str, prefixes: tuple[str, ...]) -> str:
    code = (f"import sys, {imports}; "
            f"print([m for m in sys.modules if any((m + '.').startswith(p + '.') for p in {prefixes})])")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_runtime_imports_no_compiler() -> None:
    compiler = ("mlir", "torch_mlir", "llvmlite", "onnx", "torch", "xcc.passes", "xcc.dialects", "xcc.targets",
                "xcc.frontends", "xcc.compiler")
    assert _loaded_by("xcc.runtime, xcc.runtime.model, xcc.runtime.artifact, xcc.runtime.dlpack", compiler) == "[]"


def test_import_xcc_is_light() -> None:
    assert _loaded_by("xcc", ("numpy", "mlir", "torch_mlir", "onnx", "torch")) == "[]"


def test_too_little_memory_is_an_error_of_the_run(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(inputs: list[Any], symbols: dict[str, int]) -> list[Any]:
        return [np.empty(1 << 60, np.uint8)]

    monkeypatch.setattr(model.executor, "run", run)
    with pytest.raises(UserError, match=r"memory does not suffice for a run of these sizes: .*EiB"):
        model(x(), i())


def test_what_is_no_path_or_no_sizes() -> None:
    for wrong in (3, None, b"m.xcm"):
        with pytest.raises(UserError, match="is loaded from a path"):
            load(wrong)  # type: ignore[arg-type]


def test_sizes_come_by_name(model: Model) -> None:
    model.artifact.manifest["target"] = "cpu"
    with pytest.raises(UserError, match="dims is 3; give a dict by name"):
        model.prepare(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_model_is_no_value(model: Model, how: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot be pickled or copied.*xcc\.load the file"):
        how(model)
