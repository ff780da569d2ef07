"""The tiles that contractions get, per problem and chip: what fits, and what the largest problems must have."""

from __future__ import annotations

import importlib

import pytest

from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.gpu_contraction import matrix_tile
from xcc.targets.nvptx.chip import chips

ALL = {**chips(), **CHIPS}


@pytest.mark.parametrize("chip", ALL)
@pytest.mark.parametrize("size, simt", [(1, False), (2, False), (4, True), (8, True)])
def test_candidates_fit(chip, size, simt):
    found = importlib.import_module(ALL[chip].tiles).candidates(size, simt, ALL[chip])
    assert found
    for t in found:
        assert t.shared_bytes(size) <= ALL[chip].shared_bytes
        assert t.m * t.n // t.threads <= 128 and t.threads <= ALL[chip].max_threads and t.threads % ALL[chip].warp == 0


@pytest.mark.parametrize("chip", ALL)
def test_a_large_product_has_large_tiles(chip):
    t = matrix_tile(4096, 4096, 4096, 1, 2, False, ALL[chip])
    assert t.m * t.n >= 128 * (64 if chip == "gfx90a" else 128) and t.stages >= (3 if "mma" in ALL[chip].matrix else 2)


@pytest.mark.parametrize("m, n, k", [(16, 4096, 4096), (333, 777, 1111), (1024, 1024, 1024)])
def test_small_results_use_most_cores(m, n, k):
    chip = ALL["sm_90a"]
    t = matrix_tile(m, n, k, 1, 2, False, chip)
    assert 0.55 * chip.cores <= -(-m // t.m) * -(-n // t.n) <= 4 * chip.cores


def test_large_tiles_are_wider_than_high():
    t = matrix_tile(8192, 8192, 8192, 1, 2, False, ALL["sm_90a"])
    assert (t.m, t.n) == (128, 256)


def test_columns_fill_the_cores():
    """75 tiles of 256 columns would keep 57 of 132 cores idle; several dims of columns are shared by powers of two."""
    chip = ALL["sm_90a"]
    assert matrix_tile(3152, 768, 3072, 1, 2, False, chip, unit=64).n == 192
    assert matrix_tile(2048, 768, 3072, 1, 2, False, chip, unit=32).n == 96
    assert matrix_tile(2048, 768, 3072, 1, 2, False, chip, unit=64).n == 128
    assert matrix_tile(3152, 768, 3072, 1, 2, False, chip).n == 256
    assert matrix_tile(4096, 4096, 4096, 1, 2, False, chip, unit=64).n == 256


@pytest.mark.parametrize("m, n, k, least", [(768, 768, 8192, 100), (256, 2304, 25088, 120), (64, 576, 401408, 120)])
def test_long_sums_of_few_results_are_added_up_by_several_workgroups(m, n, k, least):
    """As many as nearly all cores, and no more."""
    t = matrix_tile(m, n, k, 1, 2, False, ALL["sm_90a"], streams=True)
    assert least <= t.workers <= ALL["sm_90a"].cores and t.workers >= 2 * -(-m // t.m) * -(-n // t.n)


def test_tiles_by_fmas_that_would_not_lie_evenly_are_dealt_out():
    """144 tiles of 128x128 on 132 cores: 311 us on an H200, dealt out to twice as many workgroups as cores 190."""
    chip = ALL["sm_90a"]
    t = matrix_tile(1500, 1500, 1500, 1, 4, True, chip, streams=True)
    assert t.workers % chip.cores == 0 and t.workers % (-(-1500 // t.m) * -(-1500 // t.n))
    assert matrix_tile(1500, 1500, 1500, 1, 4, True, chip).workers == 0


@pytest.mark.parametrize("m, n, k", [(4096, 4096, 4096), (768, 768, 2048), (16, 4096, 8192), (64, 64, 512)])
def test_other_sums_are_one_workgroup_s(m, n, k):
    assert matrix_tile(m, n, k, 1, 2, False, ALL["sm_90a"], streams=True).workers == 0
