"""How chips are named: the table's entries, this machine's, attributes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from xcc.diagnostics import UserError
from xcc.driver.versions import compile_versions
from xcc.options import CompileOptions
from xcc.runtime import cores
from xcc.targets import base
from xcc.targets.base import chip_of, get_target
from xcc.targets.chip_spec import chip_facts, chip_from_facts, spec_of, split_specs
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu.target import required_flags

HOSTS = sorted((Path(__file__).parents[3] / "hosts").glob("*.json"))
CPU = get_target("cpu")
EVERY = [(name, chip) for name in base.target_names() for chip in get_target(name).chips().values()]


@pytest.fixture(params=HOSTS, ids=lambda path: path.stem)
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(cpu_chip.PRETENDED, str(request.param))
    return str(request.param.stem)


@pytest.mark.parametrize(("text", "specs"), [
    ("", [""]), ("a", ["a"]), ("a,b", ["a", "b"]), ("a,cores=8,b", ["a,cores=8", "b"]),
    ("a,x=1,y=2,native,cores=3,c", ["a,x=1,y=2", "native,cores=3", "c"])])
def test_an_attribute_belongs_to_the_chip_before_it(text: str, specs: list[str]) -> None:
    assert split_specs(text) == specs


def test_names_are_the_tables_entries_on_every_machine(host: str) -> None:
    for name, chip in cpu_chip.CHIPS.items():
        assert chip_of(CPU, name) == chip


def test_native_is_the_host(host: str) -> None:
    chip = chip_of(CPU, "native")
    assert chip == chip_of(CPU) == cpu_chip.host()
    known = {"avx2": ("haswell", 4, 32, 512 << 10, 32 << 20), "zen4-2": ("znver4", 2, 64, 1 << 20, 32 << 20),
             "zen5-2": ("znver5", 2, 64, 1 << 20, 32 << 20), "xeon-16": ("sapphirerapids", 16, 64, 2 << 20, 105 << 20)}
    assert (chip.name, chip.cores, chip.vector_bytes, chip.l2_bytes, chip.l3_bytes) == known[host]
    assert ("amx" in chip.matrix, "vnni" in chip.matrix) == (host == "xeon-16", host != "avx2")
    assert chip_of(CPU, "native,cores=3") == dataclasses.replace(chip, cores=3)


@pytest.mark.parametrize(("without", "entry"), [
    ((), "sapphirerapids"), (("amx-bf16",), "znver4"),
    (("amx-bf16", "avx512bf16", "avx512vnni", "avxvnni"), "x86-64-v4"), (("avx512vl",), "x86-64-v3")])
def test_what_is_not_seen_of_an_unknown_cpu(without: tuple[str, ...], entry: str) -> None:
    """It is as in the entry whose vectors are as wide and whose matrix instructions are most alike."""
    facts = json.loads(next(h for h in HOSTS if h.stem == "xeon-16").read_text())
    features = tuple(f for f in facts["features"] if f[1:] not in without)
    chip = cpu_chip._chip(cpu_chip.Seen(**facts | {"cpu": "new", "features": features, "l1_bytes": 7 << 10}))
    like = cpu_chip.CHIPS[entry]
    assert (chip.name, chip.shared_bytes) == ("new", 7 << 10)
    assert (chip.flops, chip.bandwidth, chip.vector_bytes) == (like.flops, like.bandwidth, like.vector_bytes)


def test_code_that_runs_at_once_is_for_this_machine(host: str) -> None:
    assert cpu_chip.real_host().cores == cores.physical_cores()


@pytest.mark.parametrize(("target", "chip"), EVERY, ids=lambda x: getattr(x, "name", x))
def test_entries_say_what_code_depends_on(target: str, chip: base.Chip) -> None:
    assert min(chip.cores, chip.vector_bytes, chip.l2_bytes, chip.bandwidth, *dict(chip.flops).values()) > 0


def test_attributes() -> None:
    chip = chip_of(CPU, "znver4,cores=8,l3_bytes=16M,l2_bytes=2k,bandwidth=3e9,matrix=vnni/x,early_launch=true,"
                        "flops=f32:1e9/f16:2e9,features=+a/-b,name=mine")
    assert chip == dataclasses.replace(
        cpu_chip.CHIPS["znver4"], cores=8, l3_bytes=16 << 20, l2_bytes=2 << 10, bandwidth=3e9, matrix=("vnni", "x"),
        early_launch=True, flops=(("f32", 1e9), ("f16", 2e9)), features="+a,-b", name="mine")
    assert chip_of(get_target("nvptx"), "sm_80,cores=4").cores == 4
    assert chip_of(CPU, "znver4,l3_bytes=0").last_cache_bytes == 1 << 20


@pytest.mark.parametrize(("spec", "what"), [
    ("znver4,colour=3", "'colour=3': a chip has no attribute 'colour'; attributes are bandwidth, cores, "),
    ("znver4,cores=0", "'cores=0': give a whole number, 1 or more"),
    ("znver4,l2_bytes=big", "'l2_bytes=big': give a whole number"),
    ("znver4,l3_bytes=-1", "'l3_bytes=-1': give a whole number, 0 or more"),
    ("znver4,vector_bytes=48", "give a whole number, a power of two"),
    ("znver4,bandwidth=nan", "'bandwidth=nan': give a number"),
    ("znver4,early_launch=perhaps", "give true or false"),
    ("znver4,matrix=a//b", "give names with / between them"),
    ("znver4,flops=1e9", "give rates as TYPE:NUMBER"),
    ("znver4,cpu=", "'cpu=': give a name"),
    ("cores=8", "'cores=8' is an attribute, and no chip is before it"),
    ("znver4,znver5", "these are several"),
    ("znver44,cores=8", "has no chip 'znver44'; chips are apple-m1, .* and native, this machine's"),
])
def test_what_is_no_chip(spec: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        chip_of(CPU, spec)


def test_one_name_for_two_versions() -> None:
    with pytest.raises(UserError, match="'znver4' and 'znver4,cores=8' are both znver4, with different attributes"):
        compile_versions("none.onnx", CompileOptions(chip="znver4,x86-64-v3,znver4,cores=8"))


@pytest.mark.parametrize(("target", "chip"), EVERY, ids=lambda x: getattr(x, "name", x))
def test_facts_and_specs_read_back(target: str, chip: base.Chip) -> None:
    table = get_target(target).chips()
    for c in (chip, dataclasses.replace(chip, cores=77, name="other", features="+x,-y", matrix=(), flops=())):
        assert chip_from_facts(chip_facts(c), target) == c
        assert chip_of(get_target(target), spec_of(c, table)) == c
    assert spec_of(chip, table) == chip.name


def test_the_host_has_a_spec_for_other_machines(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = cpu_chip.host()
    monkeypatch.delenv(cpu_chip.PRETENDED)
    assert chip_of(CPU, spec_of(chip, cpu_chip.CHIPS)) == chip


def test_facts_that_are_none() -> None:
    for facts in (None, {}, {"cores": 2}):
        with pytest.raises(UserError, match="does not say the attributes of its chip: compile it again"):
            chip_from_facts(facts, "cpu")


@pytest.mark.parametrize(("text", "what"), [("{", "does not describe a machine"), ('{"cpu": "x"}', "does not describe"),
                                            (None, "cannot be read")])
def test_hosts_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, what: str) -> None:
    path = tmp_path / "host.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv(cpu_chip.PRETENDED, str(path))
    with pytest.raises(UserError, match=what):
        cpu_chip.host()


def test_what_code_needs_of_a_cpu() -> None:
    """The CPU's instructions, less those that attributes take away, and what they add."""
    assert "avx512_vnni" in required_flags(chip_of(CPU, "znver4"))
    assert "avx512_vnni" not in required_flags(chip_of(CPU, "znver4,features=-avx512vnni"))
    assert "vaes" in required_flags(chip_of(CPU, "znver4,features=+vaes"))
    assert "avx512f" not in required_flags(chip_of(CPU, "x86-64-v3"))
