"""Weights on disk."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xcc.weight_files import read_weights, write_weights
from xcc.weights import WeightStore

NARROW = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("kind", NARROW)
def test_types_without_a_safetensors_name(tmp_path: Path, kind: str) -> None:
    """Stages of models with such weights can be dumped and read; a U8 beside them stays what it is."""
    store, dtype = WeightStore(), np.dtype(getattr(ml_dtypes, kind))
    store.add("w", np.arange(1, 4).astype(np.float32).astype(dtype).reshape(1, 3))
    store.add("bytes", np.arange(5, dtype=np.uint8))
    write_weights(tmp_path / "w.safetensors", store)
    back = read_weights(tmp_path / "w.safetensors")
    assert (back["w"].dtype, back["bytes"].dtype) == (dtype, np.uint8)
    assert np.array_equal(back["w"].view(np.uint8), store["w"].view(np.uint8))


def test_metadata_of_other_programs(tmp_path: Path) -> None:
    header = b'{"__metadata__":{"w":"pt","x":"int4"},"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\1\2")
    assert read_weights(tmp_path / "w.safetensors")["w"].dtype == np.uint8
