"""Arrays that the tools read and write."""

from __future__ import annotations

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.tools.arrays import gather_inputs, read_array, write_outputs
from xcc.tools.xcc_run import _reference

X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.int64)


def test_outputs_of_any_name_come_back(tmp_path):
    """numpy.savez takes none that is called as one of its parameters."""
    outputs = {"file": X, "args": Y, "a/b": X}
    write_outputs(f"{tmp_path}/y.npz", outputs)
    back = read_array(f"{tmp_path}/y.npz")
    assert list(back) == list(outputs)
    for name, value in outputs.items():
        np.testing.assert_array_equal(back[name], value, strict=True)
    write_outputs(f"{tmp_path}/y", outputs)
    np.testing.assert_array_equal(np.load(tmp_path / "y" / "a_b.npy"), X)


def test_outputs_that_would_be_one_file(tmp_path):
    with pytest.raises(UserError, match="need an .npz file"):
        write_outputs(f"{tmp_path}/y", {"a/b": X, "a_b": Y})


def test_an_input_of_an_archive_is_the_one_of_its_name(tmp_path):
    np.savez(tmp_path / "two.npz", a=Y, x=X)
    np.savez(tmp_path / "one.npz", a=X)
    for file in ("two", "one"):
        np.testing.assert_array_equal(gather_inputs((), [f"x={tmp_path}/{file}.npz"], (), None, {})["x"], X)


@pytest.mark.parametrize(("value", "what"), [(np.array(["a"]), "'y' is of type <U1"),
                                             (np.zeros(1, "c8"), "'y' is of type complex64"),
                                             (np.zeros(1, "V2"), "'y' is of type |V2")])
def test_what_no_output_can_be_compared_with(tmp_path, value, what):
    np.savez(tmp_path / "y.npz", y=value, other=X)
    with pytest.raises(UserError) as e:
        _reference(f"{tmp_path}/y.npz", {}, {"y": X})
    assert what in str(e.value)


def test_an_array_without_a_name_is_no_reference(tmp_path):
    np.save(tmp_path / "y.npy", X)
    (tmp_path / "y.npy").rename(tmp_path / "y.npz")
    with pytest.raises(UserError, match="it is no .npz file"):
        _reference(f"{tmp_path}/y.npz", {}, {"y": X})
