"""The algebra of linear layouts, and the fragment tables."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcc.passes.gpu.exchange.lane_exchange import lane_exchange
from xcc.passes.gpu.layout.forms import blocked, row_major, swizzled
from xcc.passes.gpu.layout.linear import Layout, log2, unit
from xcc.passes.gpu.memory.access import Access, neighbours_in_lanes, neighbours_in_registers
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.targets.nvptx.chip import chips

sizes = st.integers(0, 4).map(lambda b: 1 << b)
shapes = st.lists(sizes, min_size=1, max_size=3).map(tuple)


def all_inputs(layout):
    """Every combination of input values."""
    for values in product(*(range(layout.size(n)) for n in layout.inputs)):
        yield dict(zip(layout.inputs, values, strict=True))


def identity(shape):
    """``dim0``, ``dim1``, ... to the position itself."""
    return Layout.make(shape, {f"dim{d}": [unit(len(shape), d, 1 << b) for b in range(log2(s))]
                               for d, s in enumerate(shape)})


@st.composite
def bijections(draw):
    """A layout that maps register, lane and warp one to one onto its tile, bits mixed at random."""
    shape = draw(shapes)
    flat = Layout.make(shape, {})
    n = flat.total_bits
    columns = [1 << i for i in draw(st.permutations(range(n)))]
    for _ in range(draw(st.integers(0, 6))):
        if n > 1:
            i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
            if i != j:
                columns[i] ^= columns[j]
    a, b = sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))
    parts = {"register": columns[:a], "lane": columns[a:b], "warp": columns[b:]}
    return Layout.make(shape, {k: [flat.unflatten(c) for c in v] for k, v in parts.items()})


@given(bijections())
@settings(max_examples=60, deadline=None)
def test_a_bijection_covers_its_tile_once(layout):
    seen = [layout.at(**i) for i in all_inputs(layout)]
    assert len(set(seen)) == len(seen) == 1 << layout.total_bits
    assert layout.is_injective() and layout.rank == layout.total_bits


@given(bijections())
@settings(max_examples=60, deadline=None)
def test_text_round_trips(layout):
    assert Layout.parse(str(layout)) == layout


@given(bijections())
@settings(max_examples=60, deadline=None)
def test_composition_with_row_major_is_the_flat_number(layout):
    flat = row_major(layout.shape).compose(layout)
    assert identity(layout.shape).compose(layout).bases == layout.bases
    for i in all_inputs(layout):
        assert flat.at(**i)[0] == layout.flatten(layout.at(**i))


@given(bijections(), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_slice_forgets_a_dim(layout, dim):
    if dim >= len(layout.shape):
        return
    kept = layout.sliced([dim])
    assert kept.rank == kept.total_bits
    for lane in range(layout.size("lane")):
        position = layout.at(lane=lane)
        assert kept.at(lane=lane) == position[:dim] + position[dim + 1:]


@given(bijections())
@settings(max_examples=40, deadline=None)
def test_permuting_twice_returns(layout):
    order = list(reversed(range(len(layout.shape))))
    assert layout.permuted(order).permuted(order) == layout


@given(shapes, sizes, st.sampled_from([32, 64]), sizes)
@settings(max_examples=80, deadline=None)
def test_blocked_covers_every_tile(shape, vector, warp, warps):
    layout = blocked(shape, list(reversed(range(len(shape)))), vector, warp, warps)
    assert layout.rank == layout.total_bits
    assert layout.size("lane") == warp and layout.size("warp") == warps
    live = [v for _, vs in layout.bases for v in vs if any(v)]
    assert len(live) == layout.total_bits


@pytest.mark.parametrize("instruction", instructions_of(chips()["sm_89"]), ids=lambda i: i.name)
def test_mma_fragments_are_bijections(instruction):
    i = instruction
    for layout, shape in ((i.a, (i.m, i.k)), (i.b, (i.k, i.n)), (i.c, (i.m, i.n))):
        assert layout.shape == shape
        assert layout.is_injective() and layout.rank == layout.total_bits
        assert layout.size("lane") == 32


def test_mma_fragment_positions_are_those_of_the_ptx_manual():
    i = next(i for i in instructions_of(chips()["sm_80"]) if i.name == "mma.m16n8k16.f16")
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for r in range(8):
            row = g + (8 if r // 2 in (1, 3) else 0)
            assert i.a.at(register=r, lane=lane) == (row, t * 2 + r % 2 + (8 if r >= 4 else 0))
        for r in range(4):
            assert i.b.at(register=r, lane=lane) == (t * 2 + r % 2 + (8 if r >= 2 else 0), g)
            assert i.c.at(register=r, lane=lane) == (g + (8 if r >= 2 else 0), t * 2 + r % 2)


def test_int8_fragment_positions_are_those_of_the_ptx_manual():
    i = next(i for i in instructions_of(chips()["sm_80"]) if i.name == "mma.m16n8k32.i8.i8")
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for r in range(16):
            row = g + (8 if 4 <= r < 8 or r >= 12 else 0)
            assert i.a.at(register=r, lane=lane) == (row, t * 4 + r % 4 + (16 if r >= 8 else 0))
        for r in range(8):
            assert i.b.at(register=r, lane=lane) == (t * 4 + r % 4 + (16 if r >= 4 else 0), g)


def test_swizzle_removes_the_conflicts_of_a_column():
    """32 lanes read a column of a 32x32 tile of f32: row-major memory serialises them, a swizzle does not."""
    column = Layout.make((32, 32), {"register": [], "lane": [(1 << b, 0) for b in range(5)]})
    plain = row_major((32, 32)).compose(column)
    mixed = swizzled((32, 32), [1, 0], 1, 128, 4).compose(column)
    assert plain.bank_conflicts(1, 4) == 31
    assert mixed.bank_conflicts(1, 4) == 0


def test_two_folds_spread_rows_that_are_eight_apart():
    """Patches of 8 rows by 8 k are written in runs along k, and read a row a lane."""
    along = [(0, 1), (0, 2), (0, 4)]
    written = Layout.make((128, 64), {"register": along, "lane": [(8, 0), (16, 0), (32, 0), (64, 0), (0, 8), (0, 16)]})
    read = Layout.make((128, 64), {"register": along, "lane": [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (0, 8)]})
    once, twice = (swizzled((128, 64), (1, 0), 8, 128, 2, folds) for folds in (1, 2))
    assert [m.compose(written).bank_conflicts(8, 2) for m in (once, twice)] == [7, 0]
    assert [m.compose(read).bank_conflicts(8, 2) for m in (once, twice)] == [0, 0]
    assert {twice.at(dim0=n, dim1=k)[0] for n in range(128) for k in range(64)} == set(range(128 * 64))


def test_contiguous_runs_are_aligned():
    layout = Layout.make((64,), {"register": [(1,), (2,), (32,)], "lane": [(4,), (8,), (16,)]})
    assert layout.contiguous(4) == (4, [0, 1])
    assert layout.contiguous(2) == (2, [0])
    crossed = Layout.make((8,), {"register": [(1,), (2,)], "lane": [(6,)]})
    assert crossed.contiguous(4) == (2, [0])


def test_bad_layouts_are_refused():
    with pytest.raises(ValueError, match="power of two"):
        Layout.make((3,), {})
    with pytest.raises(ValueError, match="outside the tile"):
        Layout.make((4,), {"lane": [(4,)]})


def tiled(inner: Layout, outer: Layout) -> Layout:
    """The tile of `inner` repeated by `outer`."""
    shape = tuple(a * b for a, b in zip(inner.shape, outer.shape, strict=True))
    return Layout.make(shape, {name: [*inner.basis(name), *(
        tuple(c * s for c, s in zip(v, inner.shape, strict=True)) for v in outer.basis(name))]
        for name in dict.fromkeys(inner.inputs + outer.inputs)})


@pytest.mark.parametrize("name, transposed", [("a", False), ("b", True)])
def test_fragments_load_by_ldmatrix_without_conflicts(name, transposed):
    """A 64x64 tile in row-major memory with swizzled 16-byte pieces: A as it lies, B transposed, four tiles a load."""
    from xcc.passes.gpu.vendor.ldmatrix import matrix_load

    i = next(i for i in instructions_of(chips()["sm_80"]) if i.name == "mma.m16n8k16.f16")
    fragment = getattr(i, name)
    repeat = Layout.make(tuple(64 // s for s in fragment.shape),
                         {"register": [(1 << b, 0) for b in range(2)]
                          + [(0, 1 << b) for b in range(2 if name == "a" else 3)]})
    tile = tiled(fragment, repeat)
    plan = matrix_load(swizzled((64, 64), [1, 0], 8, 128, 2).compose(tile), 2)
    assert plan is not None and plan.transposed is transposed and plan.tiles == 4
    assert plan.addresses.bank_conflicts(8, 2) == 0
    assert sorted(r for g in plan.groups for r in g) == list(range(tile.registers))
    assert matrix_load(swizzled((64, 64), [1, 0], 1, 128, 2).compose(tile), 2) is None


@pytest.mark.parametrize("name, near", [("a", [1, 0]), ("b", [0, 1])])
def test_fragments_of_bytes_load_by_ldmatrix_along_k(name, near):
    from xcc.passes.gpu.vendor.ldmatrix import matrix_load

    i = next(i for i in instructions_of(chips()["sm_80"]) if i.name == "mma.m16n8k32.i8.i8")
    fragment = getattr(i, name)
    rest = {"a": [(16, 0), (32, 0), (0, 32)], "b": [(0, 8), (0, 16), (0, 32), (32, 0)]}[name]
    tile = tiled(fragment, Layout.make(tuple(64 // s for s in fragment.shape), {
        "register": [tuple(v // s for v, s in zip(r, fragment.shape, strict=True)) for r in rest]}))
    plan = matrix_load(swizzled((64, 64), near, 16, 64, 1).compose(tile), 1)
    assert plan is not None and not plan.transposed and plan.tiles == 4
    assert sorted(r for g in plan.groups for r in g) == list(range(tile.registers))
    assert matrix_load(swizzled((64, 64), near[::-1], 16, 64, 1).compose(tile), 1) is None


@st.composite
def exchanges(draw):
    """Two layouts of a tile that differ in registers and lanes alone; the second may hold copies."""
    warps = draw(st.integers(0, 1))
    lanes, registers = draw(st.integers(1, 5)), draw(st.integers(0, 4))
    n = warps + lanes + registers
    flat = Layout.make((1 << n,), {})
    out = []
    for copies in (False, True):
        columns = [1 << i for i in draw(st.permutations(range(n - warps)))]
        for _ in range(draw(st.integers(0, 6))):
            i, j = draw(st.integers(0, len(columns) - 1)), draw(st.integers(0, len(columns) - 1))
            columns[i] ^= columns[j] if i != j else 0
        if copies and draw(st.booleans()):
            columns[draw(st.integers(0, len(columns) - 1))] = 0
        out.append(Layout.make(flat.shape, {"register": [[c] for c in columns[lanes:]],
                                            "lane": [[c] for c in columns[:lanes]],
                                            "warp": [[1 << n - 1]] * warps}))
    return out


@given(exchanges())
@settings(max_examples=150, deadline=None)
def test_shuffles_bring_every_element_to_its_lane(layouts):
    """The rounds of an exchange, done in Python: what each lane sends, reads and fills."""
    source, target = layouts
    plan = lane_exchange(source, target)
    if plan is None:
        return

    def mapped(by_bit, lane):
        out = 0
        for i, v in enumerate(by_bit):
            out ^= v if lane >> i & 1 else 0
        return out

    for lane in range(source.size("lane")):
        for number, (start, first) in enumerate(zip(plan.start, plan.first, strict=True)):
            other = first ^ mapped(plan.lanes, lane)
            sent = source.at(register=start ^ mapped(plan.send, other), lane=other)
            assert sent == target.at(register=number ^ mapped(plan.place, lane), lane=lane)


def test_known_exchanges():
    """A transposition of register and lane bits is a plan; so is a row that all lanes want."""
    rows = Layout.make((4, 4), {"register": [[0, 1], [0, 2]], "lane": [[1, 0], [2, 0]]})
    columns = Layout.make((4, 4), {"register": [[1, 0], [2, 0]], "lane": [[0, 1], [0, 2]]})
    plan = lane_exchange(rows, columns)
    assert plan is not None and plan.shuffles == 3      # one round of four stays in its lane
    spread = Layout.make((4,), {"register": [], "lane": [[1], [2]]})
    everywhere = Layout.make((4,), {"register": [[1], [2]], "lane": [[0], [0]]})
    plan = lane_exchange(spread, everywhere)
    assert plan is not None and plan.shuffles == 4
    other = Layout.make((4,), {"register": [[1]], "lane": [], "warp": [[2]]})
    assert lane_exchange(other, Layout.make((4,), {"register": [[2]], "lane": [], "warp": [[1]]})) is None


@pytest.mark.parametrize(("aligned", "size"), [(1, 2), (2, 2), (1, 4)])
def test_lanes_of_a_fragment_side_by_side(aligned, size):
    """A fragment of 16x8 over a tile of 64x128: behind it a warp's accesses lie side by side, all elements once."""
    fragment = Layout.make((64, 128), {
        "register": [(0, 1), (8, 0), (0, 8), (0, 16), (0, 32), (0, 64)],
        "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], "warp": [(16, 0), (32, 0)]})
    access = object.__new__(Access)
    access.aligned, access.widest, access.bytes, access.dims, access.sizes = aligned, aligned, size, [0, 1], [-1, -1]
    wanted = neighbours_in_lanes(fragment, access)
    assert {tuple(wanted.at(**v)) for v in all_inputs(wanted)} == set(product(range(64), range(128)))
    width = max(aligned, 4 // size)
    assert sorted(wanted.at(lane=n) for n in range(32)) == [(0, n * width) for n in range(32)]
    assert lane_exchange(fragment, wanted) is not None
    assert access.efficiency(wanted) > access.efficiency(fragment)
    assert access.efficiency(wanted) >= access.efficiency(neighbours_in_registers(fragment, access))
