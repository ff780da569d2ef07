"""The instructions that an emulator has to get right before its numbers count (benchmarks/emulated_instructions.py)."""

import importlib.util
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.code_object import read_code_object

FILE = Path(__file__).resolve().parents[4] / "benchmarks" / "emulated_instructions.py"
SPEC = importlib.util.spec_from_file_location("emulated_instructions", FILE)
emulated = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = emulated
SPEC.loader.exec_module(emulated)


class Emulator:
    """Gives the right results, and zeros for the instruction `wrong`."""

    def __init__(self, chip, wrong=None):
        self.results = [i.result if i is not wrong else np.zeros_like for i in emulated.INSTRUCTIONS if i.runs_on(chip)]

    def run_kernel(self, blob, name, arch, grid, block, arrays):
        info = read_code_object(blob)[name]
        assert (grid, block, info.wave) == ((1, 1, 1), (CHIPS[arch].warp, 1, 1), CHIPS[arch].warp)
        arrays[1][:] = self.results.pop(0)(arrays[0])


@pytest.mark.parametrize("name", ["gfx942", "gfx1100"])
def test_right_results_pass_and_each_wrong_one_is_named(name):
    chip = CHIPS[name]
    assert emulated.wrong_instructions(Emulator(chip), chip) == []
    wrong = next(i for i in emulated.INSTRUCTIONS if i.runs_on(chip))
    line, = emulated.wrong_instructions(Emulator(chip, wrong), chip)
    assert line.startswith(f"{name}: {wrong.text}: of 0x3c004500 came 0x0, not ")


def test_vgpr_131_of_a_16_bit_instruction_is_a_whole_register():
    """VOP1: 0111111 in bits 31:25, vdst in 24:17, op in 16:9 (10: v_cvt_f16_f32), src0 in 8:0."""
    blob = emulated.instruction_code(emulated.INSTRUCTIONS[0], CHIPS["gfx942"])
    words = struct.unpack(f"<{len(blob) // 4}I", blob[:len(blob) // 4 * 4])
    assert [w for w in words if w >> 9 == 0x3F << 16 | 131 << 8 | 10]


def test_expected_results():
    """By hand: 0x3c004500 is 1.0 and 5.0 in halves, 0.0078296661376953125 as f32."""
    word = np.array([0x3C004500], np.uint32)
    wanted = {"v_cvt_f16_f32_e32 v131, v1": 0x2002, "v_cvt_f32_f16_e32 v1, v131": 0x40A00000,
              "v_add_f16_e32 v1, 1.0, v131": 0x4600, "v_cmp_gt_f16_e32 vcc, 0, v131": 0,
              "v_cvt_f32_f16_sdwa v1, -v2 src0_sel:WORD_1": 0xBF800000,
              "ds_read_u16_d16_hi v1, v2": 0x45001234, "ds_write_b32 v2, a8": 0x3C004500,
              "ds_load_u16_d16_hi v1, v2": 0x45001234}
    assert {i.text: int(i.result(word)[0]) for i in emulated.INSTRUCTIONS} == wanted
