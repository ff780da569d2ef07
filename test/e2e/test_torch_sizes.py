"""``xcc.torch.compile``: one compilation for all sizes, 1 and 0 too; a size of 1 that broadcasts is compiled apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import sympy
import torch
from torch._dynamo.utils import counters
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils._sympy.functions import Max

import xcc.torch
from xcc.frontends.torch.backend import backend
from xcc.frontends.torch.call import BoxedCall, _Result
from xcc.frontends.torch.size_answers import is_of_ones

pytestmark = pytest.mark.usefixtures("fresh_torch")

S, T = sympy.symbols("s t", integer=True, nonnegative=True)
F = torch.nn.functional


def compilations(f: Callable[..., Any], *calls: tuple[tuple[int, ...], ...]) -> list[int]:
    """How many there were after each call with tensors of such shapes, each equal to eager's."""
    compiled, made = xcc.torch.compile(f, strict=True, versions=0), []
    with torch.no_grad():
        for shapes in calls:
            given = [torch.randn(s) for s in shapes]
            torch.testing.assert_close(compiled(*given), f(*given), rtol=1e-4, atol=1e-5)
            made.append(counters["stats"]["unique_graphs"])
    return made


def test_functions_are_compiled_for_their_sizes() -> None:
    """Without another trace: of 3 sizes by itself, then of columns that are 4, then of any."""
    compiled = xcc.torch.compile(lambda x, w: torch.softmax(x @ w, 1).sum(0), strict=True, versions=3)
    for m, k, n in ((5, 3, 4), (1, 1, 4), (9, 16, 4), (2, 3, 4), (0, 3, 4), (2, 5, 7), (1, 1, 1), (5, 3, 4)):
        x, w = torch.randn(m, k, requires_grad=True), torch.randn(k, n, requires_grad=True)
        want = torch.softmax(x @ w, 1).sum(0)
        torch.testing.assert_close(compiled(x, w), want)
        factor = torch.randn(n)
        got = torch.autograd.grad((compiled(x, w) * factor).sum(), (x, w))
        torch.testing.assert_close(got, torch.autograd.grad((want * factor).sum(), (x, w)))
    assert counters["stats"]["unique_graphs"] == 1


def test_a_size_of_one_broadcasts() -> None:
    assert compilations(torch.add, ((5, 3), (1, 3)), ((4, 3), (1, 3)), ((5, 3), (5, 3)), ((1, 3), (1, 3)),
                        ((0, 3), (1, 3)), ((1, 3), (7, 3)), ((6, 3), (6, 3))) == [1, 1, 2, 2, 2, 3, 3]


def test_calls_of_known_sizes_repeat_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free sizes are no arguments of the program, where tensors have them; a step of training has two programs."""
    anew = Mock(side_effect=BoxedCall._call_anew)
    monkeypatch.setattr(BoxedCall, "_call_anew", lambda *args: anew(*args))
    monkeypatch.setattr(_Result, "value", None)     # sizes that are kept for the gradient are arguments as they are
    compiled = xcc.torch.compile(lambda x, w: torch.tanh(x * w) / x.shape[0], strict=True)
    for rows, programs in ((3, 2), (5, 4), (3, 4), (5, 4)):
        given = [torch.randn(s, requires_grad=True) for s in ((rows, 7), (7,))]
        y = compiled(*given)
        expected = torch.tanh(given[0] * given[1]) / rows
        step = torch.randn(rows, 7)
        for got, wanted in zip((y, *torch.autograd.grad(y, given, step)),
                               (expected, *torch.autograd.grad(expected, given, step)), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
        assert anew.call_count == programs


def test_a_size_of_one_broadcasts_inside_ops() -> None:
    """As a mask of attention, a matrix of products, what is added to a product, and where an op's kernel decides."""
    def f(q: Any, mask: Any, weight: Any, row: Any) -> Any:
        y = F.scaled_dot_product_attention(q, q, q, mask) @ weight
        return torch.where(row > 0, torch.addmm(row, y[0, 0], y[0, 0]), 0)

    assert compilations(f, ((2, 3, 8, 8), (2, 1, 8, 8), (1, 1, 8, 8), (1, 8)),
                        ((3, 3, 6, 6), (3, 1, 6, 6), (1, 1, 6, 6), (1, 6))) == [1, 1]


def test_elements_along_a_dim_of_any_size() -> None:
    """torch's own rule of take_along_dim reads sizes as numbers, that of index_add does not compare them."""
    def f(x: Any, rows: Any) -> Any:
        taken = torch.take_along_dim(x, x.argsort(1)[:, :3], 1) + torch.take_along_dim(x, x.argmax()[None])
        return taken, x.index_add(0, (rows[:, 0] > 0).long(), rows)

    assert compilations(f, ((4, 5), (3, 5)), ((6, 7), (9, 7)), ((2, 9), (1, 9))) == [1, 1, 1]


@pytest.mark.parametrize("part", [lambda x: x[:, ::3], lambda x: x[:, :x.shape[1] // 8]])
def test_the_last_of_a_computed_number_broadcasts(part: Callable[..., Any]) -> None:
    """Of n elements, which may be none, ``n - max(n - 1, 0)``."""
    def f(x: Any) -> Any:
        y = part(x).exp().cumsum(1)
        return y / (y[:, -1:] + 1e-3)

    assert compilations(f, ((2, 224),), ((3, 64),), ((1, 17),), ((2, 0),), ((4, 30),))[2:] == [1, 2, 2]


@pytest.mark.parametrize("part", [lambda x: x, lambda x: torch.cat((x, x), 1)])
def test_the_last_broadcasts_where_nothing_is_computed_between(part: Callable[..., Any]) -> None:
    """By operators, by ops of three operands, by what expands, and in products."""
    def f(x: Any) -> Any:
        y = part(x)
        last = y[:, -1:]
        return (y / last, torch.where(y > 0, last, y), last.expand(-1, y.shape[1]) * 2, y.masked_fill(last > 0, 2.0),
                torch.baddbmm(last[:, None], y[:, :, None], y[:, None]), last)

    assert compilations(f, ((2, 6),), ((5, 9),), ((1, 4),), ((3, 1),), ((0, 3),), ((2, 0),)) == [1, 1, 1, 1, 1, 2]


def test_an_inner_part_of_one_broadcasts() -> None:
    """The length of ``x[:, 1:2]`` is a difference of least sizes, and that of ``x[:, :1]`` beside a 1 is 1 to torch."""
    def f(x: Any) -> Any:
        part = x[:, 1:2]
        return (x - part, torch.addcmul(x, part, x[2:3]), torch.broadcast_tensors(x, part)[1] + 1,
                torch._weight_norm(x, x[:, :1] * 2))

    assert compilations(f, ((5, 7),), ((4, 2),), ((3, 6),), ((6, 1),)) == [1, 1, 1, 2]


def test_a_quotient_of_one_broadcasts() -> None:
    """One embedding for all places, or one a place: ``view`` leaves a quotient of sizes."""
    def f(x: Any, t: Any) -> Any:
        return x + t.view(x.shape[0], -1, 4)

    given = [((2, 5, 4), (2, 4)), ((3, 6, 4), (3, 4)), ((2, 3, 4), (6, 4)), ((4, 2, 4), (8, 4))]
    assert compilations(f, *given) == [1, 1, 2, 2]


def test_the_one_step_of_a_window_broadcasts() -> None:
    """Converters that count steps themselves arrive at a quotient, which torch knows to be 1."""
    def f(x: Any) -> Any:
        return (x - x[..., ::2], F.conv1d(x, torch.ones(3, 3, 2), stride=2) + x,
                torch.where(F.interpolate(x, scale_factor=0.5) > 0, x, 0))

    assert compilations(f, ((2, 3, 2),), ((4, 3, 2),), ((1, 3, 2),)) == [1, 1, 1]


def test_branches_and_loops() -> None:
    """Of results that may be empty, whose dims lie in another order."""
    def f(x: Any) -> Any:
        turned = torch.cond(x.sum() > 0, lambda t: t.sin().transpose(0, 1), lambda t: t.transpose(0, 1).cos(), (x,))
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 1.5), (torch.tensor(0), turned))[1] * 2

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for shape in ((2, 6), (3, 5), (0, 4)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), 2 * 1.5 ** 3 * (x.sin() if x.sum() > 0 else x.cos()).t())
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("step", [torch.tanh, torch.exp, lambda h: h])
def test_gradients_of_steps_that_keep_what_they_give(step: Callable[..., Any]) -> None:
    """As a recurrent layer's: torch takes what is kept and given for an alias."""
    w = torch.randn(4, requires_grad=True)

    def body(h: Any, x: Any) -> Any:
        y = step(h * 0.25 + x)
        return y, y * w

    def loop(h: Any, x: Any) -> Any:
        made = []
        for row in x:
            h, y = body(h, row)
            made.append(y)
        return h, torch.stack(made)

    compiled = xcc.torch.compile(lambda h, x: scan(body, h, x), strict=True, versions=0)
    for n in (3, 5):
        given = [torch.randn(4, requires_grad=True), torch.randn(n, 4, requires_grad=True), w]
        wanted, found = (torch.autograd.grad(sum(y.sum() for y in f(*given[:2])), given) for f in (loop, compiled))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def test_gradients_of_branches_beside_an_op_without_converter() -> None:
    layer = torch.nn.Linear(4, 4)

    def f(x: Any) -> Any:
        y = torch.special.airy_ai(x.detach())
        z = torch.cond(x.sum() > 0, lambda t: layer(t).sin(), lambda t: layer(t) * 2, (x + y,))
        return scan(lambda c, t: (c * 0.9 + layer(t), c.tanh() + t), torch.zeros(4), z)[1]

    with pytest.warns(UserWarning, match="airy_ai"):
        for x in (torch.ones(3, 4), -torch.ones(2, 4)):
            want = torch.autograd.grad(f(x).pow(2).sum(), layer.weight)
            got = xcc.torch.compile(f, versions=0)(x)
            torch.testing.assert_close(torch.autograd.grad(got.pow(2).sum(), layer.weight), want)


def test_what_torch_asks_of_sizes_of_one_compiles_nothing_anew() -> None:
    """The layout of a pool's result, whether a reshape copies; nor does it matter which sizes were equal at first."""
    def f(x: Any) -> Any:
        return F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1).flatten(1), x.transpose(0, 1).reshape(-1, 3) * 2

    assert compilations(f, *(((n, 6, 5, 3),) for n in (3, 1, 0, 5))) == [1, 1, 1, 1]


def test_differences_of_neighbours() -> None:
    """torch's own code slices up to one element ahead of the end there, and asks no dim whether it has one."""
    def f(x: Any) -> Any:
        return torch.diff(x), torch.diff(x, 2, prepend=x[:, :1] - 1)

    assert compilations(f, *(((2, n),) for n in (16, 5, 9))) == [1, 1, 1]
    for n in (3, 2, 1, 0):
        x = torch.randn(2, n)
        torch.testing.assert_close(xcc.torch.compile(f, strict=True, versions=0)(x), f(x))


def test_slices_from_computed_places() -> None:
    """Where a slice begins before the first element torch does not know its size."""
    def f(x: Any) -> Any:
        n = x.shape[1]
        return x[:, n - 4:] * 2, x[:, 1:n - 2] + 1, x[:, n - 3:n - 1:2].sum(1), x[:, n - 4:].clone()[:, :2].exp()

    assert compilations(f, *(((2, n),) for n in (9, 5, 3, 1, 2, 4)))[:5] == [1] * 5


@pytest.mark.parametrize("rows", [(0, 4, 1), (4, 0, 1)])
def test_slices_and_stacks_of_no_elements(rows: tuple[int, ...]) -> None:
    """A slice of what has no elements has none either, read or written; torch took sizes to be 1 at least."""
    def f(x: Any) -> Any:
        y = x.clone()
        y[::2, 1:] = 2
        return x[:-1] * 2, x[2:, 1:] + 1, x[-3:-1] - 1, torch.stack([x.sin(), x], 1), y

    assert compilations(f, *(((n, 3),) for n in rows)) == [1, 1, 1]


def test_a_slice_of_the_last_n_of_n_elements() -> None:
    """As of states of convolutions: torch made it a size that only a run can tell, of which a view ended the graph."""
    def f(x: Any) -> Any:
        return x.t()[:, -x.shape[0]:].t().split([1, 2], 1)[1].view(*x.shape[:-1], -1, 1) * 2

    assert compilations(f, ((5, 3),), ((1, 3),), ((7, 3),)) == [1, 1, 1]


def test_a_slice_up_to_the_last_n_elements() -> None:
    """As of a video's tokens before those of its text: the length is a size of the call, which ops may ask for."""
    def f(x: Any, y: Any) -> Any:
        both = torch.cat([x, y], 1)
        ahead = both[:, :-y.shape[1]].unflatten(2, (2, -1))
        return ahead.reshape(*ahead.shape[:-1], 2, 1) * 2, both[:, -y.shape[1]:].sum(1)

    shapes = [((2, a, 4), (2, b, 4)) for a, b in ((6, 3), (5, 1), (3, 4), (4, 0))]
    assert compilations(f, *shapes) == [1, 1, 1, 2]


def test_windows_that_sizes_decide_are_numbers() -> None:
    """Strides and groups are compiled for each value of theirs, not for each size, in the gradients too; paddings are
    free."""
    def f(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, padding=x.shape[2] % 4, stride=max(1, x.shape[3] // 8), groups=x.shape[1])

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for n, (size, made) in enumerate((((2, 4, 9, 9), 1), ((1, 4, 10, 11), 1), ((2, 4, 10, 17), 2))):
        given = [torch.randn(size, requires_grad=True), torch.randn(4, 1, 3, 3, requires_grad=True)]
        wanted, found = (torch.autograd.grad(own(*given).square().sum(), given) for own in (f, compiled))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, msg=str(n))
        assert counters["stats"]["unique_graphs"] == made


@pytest.mark.parametrize("f", [
    lambda x: F.avg_pool2d(x, x.shape[2:]).square() + F.avg_pool2d(x, (1, x.shape[3]), (1, 1)).square(),
    lambda x: F.max_pool2d(x.relu(), x.shape[2:]) * F.max_pool2d(x, (2, x.shape[3]), (1, x.shape[3]), (1, 0)),
    lambda x: F.grid_sample(x, F.affine_grid(x[:, 0, :2, :3], x.shape[:2] + x.shape[2:], False), align_corners=False),
    lambda x: F.affine_grid(x[:, 0, :2, :3], list(x.shape), True) * torch.linspace(-1, 1, x.shape[3])[:, None]])
def test_sizes_that_torch_takes_as_constants(f: Callable[..., Any]) -> None:
    """Windows of all of a dim, grids; in the gradients too. Of equal elements the first has the gradient."""
    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for size in ((2, 3, 5, 8), (1, 3, 9, 6), (3, 3, 6, 7)):
        x = torch.randn(size, requires_grad=True)
        found, wanted = compiled(x), f(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
        wanted, found = (torch.autograd.grad(y.square().sum(), x) for y in (wanted, found))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        assert counters["stats"]["unique_graphs"] == 1


def test_strided_views_of_parts_and_of_turned_tensors() -> None:
    """Of a part, whose memory has more than its elements, torch makes the view."""
    def whole(x: Any) -> Any:
        return x.relu().t().as_strided((2, 3), (1, 2)) * 2

    def part(x: Any) -> Any:
        return x[:, 1:].as_strided((2, 3), (1, 2)) * 2

    x, y = torch.randn(4, 6), torch.randn(3, 7)
    assert compilations(whole, ((4, 6),), ((3, 7),)) == [1, 1]
    with pytest.warns(UserWarning, match="does not fill the memory"):
        compiled = xcc.torch.compile(part)
        for given in (x, y):
            torch.testing.assert_close(compiled(given), part(given))


def test_numbers_of_losses_and_norms_that_sizes_decide() -> None:
    def f(x: Any, y: Any) -> Any:
        n = y.shape[0]
        return (torch.linalg.vector_norm(x, n, -1), x.var(-1, correction=n), x.std(0, correction=n - 1),
                torch.dist(x, -x, n), F.cross_entropy(x, (x[:, 0] > 0).long(), ignore_index=n - 1),
                torch.histc(x, 4, -n, n))

    assert compilations(f, ((5, 4), (2,)), ((7, 4), (2,)), ((5, 4), (1,)))[:2] == [1, 1]


@pytest.mark.parametrize("first", [(1, 0), (0, 0)])
def test_slices_of_a_first_call_without_elements(first: tuple[int, ...]) -> None:
    """torch divided by a size of 0 to learn how a result lies. Strides of no elements are their own compilation."""
    def f(x: Any) -> Any:
        return x[:-1] * 2, x[1:, 1:] - 1, x.T[1:] * 2

    assert compilations(f, (first,), ((3, 2),), ((1, 0),), ((4, 5),))[-1] <= 2


def test_the_model_may_ask_whether_there_is_anything() -> None:
    def f(x: Any) -> Any:
        return x + 1 if x.shape[0] else torch.ones(3)

    assert compilations(f, ((4, 3),), ((0, 3),), ((1, 3),)) == [1, 2, 2]


def test_the_model_may_ask_whether_a_product_of_sizes_is_0() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] * (x.shape[1] // 2) > 0 else x - 1

    assert compilations(f, ((3, 1),), ((3, 5),), ((2, 4),), ((4, 1),), ((9, 9),)) == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("reverse", [False, True])
def test_an_associative_scan_is_compiled_once(reverse: bool) -> None:
    def f(x: torch.Tensor) -> Any:
        def combine(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        return associative_scan(combine, (x.sigmoid(), x), 1, reverse, "generic")

    assert compilations(f, ((2, 5, 3),), ((2, 4, 3),), ((1, 9, 7),), ((3, 1, 2),)) == [1] * 4


def test_gradients_of_an_associative_scan() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return associative_scan(torch.mul, x + 1, dim=0, combine_mode="generic").square()    # type: ignore[no-any-return]

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for n in (5, 2, 1, 8):
        x = torch.randn(n, 3, requires_grad=True)
        torch.testing.assert_close(*(torch.autograd.grad(g(x).sum(), x)[0] for g in (compiled, f)), rtol=1e-4, atol=0)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize(("f", "made"), [
    (lambda x: ((y := x * 2).reshape(-1, 3, 2).sin_(), y)[1], [1, 2, 2]),
    (lambda x: ((y := x * 2).flatten(0, 1), y.add_(1))[0], [1, 2, 2]),
    (lambda x: torch.reshape(x * 2, (x.shape[0], -1)).add_(1), [1, 1, 1]),
    (lambda x: x.reshape(-1, 3, 2) * 2, [1, 1, 1])])
def test_reshapes_that_are_views_for_some_sizes(f: Callable[..., Any], made: list[int]) -> None:
    """torch's guards tell where one is written by the other, alone: what else reads a copy is compiled once."""
    compiled, counts = xcc.torch.compile(f, strict=True, versions=0), []
    for shape in ((2, 3, 5), (2, 3, 1), (2, 3, 7)):
        x = torch.randn(shape).transpose(0, 2)
        torch.testing.assert_close(compiled(x), f(x))
        counts.append(counters["stats"]["unique_graphs"])
    assert counts == made


def test_writes_to_a_diagonal_that_is_empty() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        torch.diagonal(y, -1)[1:] = 0
        return y

    assert compilations(f, ((5, 4),), ((1, 4),), ((2, 4),), ((7, 1),)) == [1] * 4


def test_a_shape_with_a_rest_crosses_a_break_of_the_graph() -> None:
    def f(x: Any) -> Any:
        shape = (x.shape[0], -1, 4)
        torch._dynamo.graph_break()     # type: ignore[no-untyped-call]
        return x.view(shape) * 2

    assert compilations(f, *(((n, s),) for n, s in ((2, 24), (5, 36), (1, 8)))) == [2, 2, 2]


def test_a_size_of_zero_divides_nothing() -> None:
    """What is computed of a quotient by it has no elements; the division ended the process."""
    class Divided(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            n = x.shape[0]
            return x * ((n - 3) % n) + x * (x.shape[1] * 8 // n)

    program = torch.export.export(Divided(), (torch.randn(5, 4),), dynamic_shapes=({0: torch.export.Dim.AUTO,
                                                                                   1: torch.export.Dim.AUTO},))
    run = xcc.torch.function(xcc.compile(program, isolate=False))
    for n in (5, 2, 0):
        x = torch.randn(n, 4)
        torch.testing.assert_close(run(x), Divided()(x) if n else x)


@pytest.mark.parametrize("compile", [xcc.torch.compile, lambda f, **o: torch.compile(
    f, backend=backend, dynamic=True, options=o)])
def test_numbers_below_zero_count_from_the_end(compile: Any) -> None:
    """Numbers that a call gives, and differences of sizes."""
    def f(x: Any, k: int) -> Any:
        y = x.clone()
        y[k] = 0
        return x[k:] * 2, x[:k] + 1, x[:, k - 2:] + 1, x[k] * 2, y, x[:, k:x.shape[1] - 3].sum()

    compiled = compile(f, strict=True)
    for k in (-3, -2, 2, 3, -5, 1):
        x = torch.randn(6, 4)
        torch.testing.assert_close(compiled(x, k), f(x, k))


def test_two_dims_are_cut_by_a_number_of_the_call() -> None:
    """As Longformer cuts its windows."""
    compiled = xcc.torch.compile(lambda x, w: x[:, -w - 1:-1, w + 1:] * 2, strict=True, versions=0)
    for n, w in ((9, 2), (12, 4), (3, 5)):
        x = torch.randn(2, n, n)
        torch.testing.assert_close(compiled(x, w), x[:, -w - 1:-1, w + 1:] * 2)
    assert counters["stats"]["unique_graphs"] == 1


def test_results_lie_as_the_images_of_the_call() -> None:
    """Later layouts make strides symbols, of which torch's code for pools says that channels are not last, and that of
    index_fill that there are gaps."""
    def f(x: Any) -> Any:
        return (F.avg_pool2d(x, 2, 1, 1), F.adaptive_avg_pool2d(x, 2), F.interpolate(x, scale_factor=2.0), x * 2,
                x.index_fill(1, torch.tensor([1, 0]), 1), torch.lerp(x, x.cos(), x.sin().contiguous()))

    compiled, last = xcc.torch.compile(f, strict=True, versions=0), torch.channels_last
    x, y = torch.randn(2, 6, 4, 5), torch.randn(3, 5, 7, 4)
    with torch.no_grad():
        for given in (x, x.to(memory_format=last), y.to(memory_format=last), x.transpose(2, 3), x.transpose(0, 1), y):
            for got, want in zip(compiled(given), f(given), strict=True):
                assert got.stride() == want.stride()
                torch.testing.assert_close(got, want)


@pytest.mark.parametrize("conv", [F.conv2d, F.conv_transpose2d])
def test_convolutions_of_groups_of_any_channels(conv: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return conv(x, w, groups=2)

    def sizes(channels: int, others: int) -> tuple[tuple[int, ...], ...]:
        """Of images and of a filter, whose first dim has all of its channels, and the second those of a group."""
        first, second = (channels, others) if conv is F.conv_transpose2d else (others, channels // 2)
        return (3, channels, 6, 5), (first, second, 3, 2)

    assert compilations(f, sizes(6, 4), sizes(4, 8), sizes(8, 2)) == [1, 1, 1]


def test_depthwise_convolutions_are_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many groups there are is a number, and so are a filter's channels then; the sizes of images are free."""
    split = Mock()
    monkeypatch.setattr("xcc.passes.xt.split_groups._split", split)

    def f(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, groups=6)

    assert compilations(f, ((3, 6, 6, 5), (6, 1, 3, 2)), ((2, 6, 7, 9), (6, 1, 3, 2)), ((2, 6, 7, 9), (12, 1, 3, 2))
                        ) == [1, 1, 2]
    split.assert_not_called()


@pytest.mark.parametrize("mode, factor", [("bilinear", 1.2), ("nearest", 2.3)])
def test_images_are_resized_by_a_factor(mode: str, factor: float) -> None:
    """Of small ones the size stays or doubles: torch's kernels copy then. The gradient is a resize, too."""
    def f(x: Any) -> Any:
        return F.interpolate(x, scale_factor=factor, mode=mode)

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for shape in ((1, 2, 10, 7), (1, 2, 4, 9), (2, 3, 2, 3), (1, 1, 1, 5)):
        x = torch.randn(shape, requires_grad=True)
        got, want = compiled(x), f(x)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        weights = torch.randn_like(want)
        torch.testing.assert_close(*(torch.autograd.grad(y, x, weights) for y in (got, want)), rtol=1e-4, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def test_roots_and_shares_of_sizes() -> None:
    """As what makes images of a row of patches has them, and what keeps some of its tokens."""
    def f(x: Any) -> Any:
        n = x.shape[1]
        side, up = math.isqrt(n), math.ceil(math.sqrt(n + 1))
        image = x.reshape(x.shape[0], int(n ** 0.5), round(math.sqrt(n)), 3)
        return (image.sum(2) * side, F.pad(x, (0, 0, 0, up * up - n)).unflatten(1, (up, -1)) + 1,
                x.topk(max(1, int(0.7 * n)), 1)[0], x[:, :math.ceil(n * 0.3)] * 2, x[:, :round(n / 2)] + 1)

    assert compilations(f, *(((2, n * n, 3),) for n in (5, 2, 9, 1))) == [1, 1, 1, 1]


def test_roots_of_sizes_in_exported_programs() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            side = int(x.shape[1] ** 0.5)
            return F.max_pool2d(x.transpose(1, 2).reshape(-1, 3, side, side), 2, ceil_mode=True), x[:, :int(0.7 * side)]

    dims = ({0: torch.export.Dim("b"), 1: torch.export.Dim.AUTO},)
    program = torch.export.export(Square(), (torch.randn(2, 25, 3),), dynamic_shapes=dims, strict=True)
    run = xcc.torch.function(xcc.compile(program, isolate=False))
    for b, n in ((2, 25), (1, 4), (3, 81), (2, 1)):
        x = torch.randn(b, n, 3)
        torch.testing.assert_close(run(x), Square()(x))


def test_derivatives_of_derivatives() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * x.cumsum(0)).sum() + x.softmax(0)[0]

    assert compilations(torch.func.hessian(f), *(((n,),) for n in (5, 2, 9, 1))) == [1, 1, 1, 1]


def test_derivatives_of_derivatives_of_each_row() -> None:
    """By vmap, whose rules meet tangents that are zero, and tensors of outer batches alone."""
    weight = torch.randn(4, 1)

    def f(x: Any) -> Any:
        return (x @ weight).tanh()[0] + (x @ weight).sin().sum()

    assert compilations(torch.vmap(torch.func.hessian(f)), *(((n, 4),) for n in (5, 2, 9))) == [1, 1, 1]


def test_conversions_of_nothing() -> None:
    assert compilations(lambda x: (x == 0).long(), ((3, 5),), ((2, 4),), ((3, 0),)) == [1, 1, 2]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_gradients_of_antialiased_resizes(mode: str) -> None:
    def f(x: Any) -> Any:
        return F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] // 2 + 3), mode=mode, antialias=True)

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for shape in ((2, 3, 16, 24), (1, 3, 24, 16)):
        x = torch.randn(shape, requires_grad=True)
        got, want = (torch.autograd.grad(y.square().sum(), x)[0] for y in (compiled(x), f(x)))
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1


def test_recurrent_layers_take_a_batch_of_one() -> None:
    model = torch.nn.LSTM(4, 5, batch_first=True)
    assert compilations(lambda x: model(x)[0], ((2, 7, 4),), ((1, 7, 4),)) == [1, 1]


def test_what_the_model_asks_is_compiled_once_for_each_answer() -> None:
    def attention(q: Any, k: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[1] > 1)

    assert compilations(attention, ((2, 5, 8), (2, 5, 8)), ((3, 1, 8), (3, 6, 8)), ((2, 4, 8), (2, 4, 8))) == [1, 2, 2]


def test_questions_about_ones() -> None:
    asked = (sympy.Ne(1024 * S, 1024), sympy.Ge(S, 2), sympy.Gt(S, 1), sympy.Ne(S * T, 1), sympy.Ne(32 * S * T - 32, 0),
             sympy.Le(4, S * T), sympy.Lt(1, S), sympy.Ne(8 * T * Max(1, S), 8))
    others = (sympy.Ne(S, 4), sympy.Ne(S, 0), sympy.Ge(S, 1), sympy.Ge(S, 3), sympy.Le(S, 8), sympy.Ne(S, T),
              sympy.Eq(S, 2), sympy.Eq(S, 1), sympy.Ge(S + T, 2), sympy.Ne(S // 2, 1), sympy.true,
              sympy.Ne(Max(2, S), 2))
    assert [g for g in asked if not is_of_ones(g)] == [] and [g for g in others if is_of_ones(g)] == []
