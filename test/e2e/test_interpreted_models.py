"""A model with real weights through xcc-run --interpret, for both GPU vendors, against onnxruntime."""

from __future__ import annotations

import subprocess
import sys

import models
import numpy as np
import pytest

from xcc.tools import xcc_run


@pytest.mark.slow
@pytest.mark.parametrize(("target", "chip"), [("nvptx", "sm_90a"), ("amdgcn", "gfx942"), ("amdgcn", "gfx1100")])
def test_text_direction_classifier(target, chip, tmp_path, capsys):
    try:
        source = str(models.get("ppocr_cls"))
    except FileNotFoundError as e:
        pytest.skip(str(e))
    artifact, image = str(tmp_path / "cls.xcm"), tmp_path / "x.npy"
    np.save(image, np.random.default_rng(0).standard_normal((1, 3, 48, 48)).astype(np.float32))
    options = f"{target},code=ptx" if target == "nvptx" else target
    subprocess.run([sys.executable, "-m", "xcc.tools.xcc_cli", source, "-o", artifact, f"--target={options}",
                    f"--chip={chip}", "--keep-ir"], check=True)     # a command forks: not in this process
    assert xcc_run.main([artifact, "--interpret", "--input", f"x={image}", "--compare", source, "--rtol=1e-4",
                         "--atol=1e-6"]) == 0
    assert "\nsame" in capsys.readouterr().out
