"""Cases of benchmarks/gpu.py for the schedules beside products, rows and attention: `--group schedules`.

Reductions of columns and of everything, odd sizes, transposes, reads and writes at computed positions, scans, sorts,
windows, resampling, and results whose size depends on data.
"""

from __future__ import annotations

from typing import Any

from gpu_cases import SIZE, Case


def pointwise(rows: int, columns: int) -> Case:
    return Case(f"pointwise f16 {rows}x{columns}", ((rows, columns), (columns,)), "f16",
                lambda xt, x, b: xt.tanh(xt.add(x, b)), lambda f, x, b: (x + b).tanh(), bytes=4.0 * rows * columns)


def columns_sum(rows: int, columns: int, dtype: str) -> Case:
    return Case(f"column sum {dtype} {rows}x{columns}", ((rows, columns),), dtype,
                lambda xt, x: xt.reduce(x, kind="sum", axes=(0,), keepdims=False), lambda f, x: x.sum(0),
                bytes=1.0 * SIZE[dtype] * rows * columns)


def full(kind: str, count: int, dtype: str) -> Case:
    return Case(f"full {kind} {dtype} {count}", ((count,),), dtype,
                lambda xt, x: xt.reduce(x, kind=kind, axes=(0,), keepdims=False),
                lambda f, x: x.sum() if kind == "sum" else x.max(), bytes=1.0 * SIZE[dtype] * count)


def transpose(shape: tuple[int, ...], perm: tuple[int, ...]) -> Case:
    count = 1
    for n in shape:
        count *= n
    return Case(f"transpose f16 {'x'.join(map(str, shape))} by {''.join(map(str, perm))}", (shape,), "f16",
                lambda xt, x: xt.transpose(x, perm=perm), lambda f, x: x.permute(perm).contiguous(), bytes=4.0 * count)


def gather(rows: int, columns: int, count: int) -> Case:
    return Case(f"gather f16 {count} of {rows}x{columns}", ((rows, columns), (count,)), "f16",
                lambda xt, x, i: xt.gather(x, i, axis=0), lambda f, x, i: x[i.long()], bytes=4.0 * count * columns,
                dtypes=("f16", "i64"), high=rows)


def gather_elements(rows: int, columns: int) -> Case:
    shape = (rows, columns)
    return Case(f"gather_elements f32 {rows}x{columns}", (shape, shape), "f32",
                lambda xt, x, i: xt.gather_elements(x, i, axis=1), lambda f, x, i: x.gather(1, i.long()),
                bytes=16.0 * rows * columns, dtypes=("f32", "i64"), high=columns)


def scatter_elements(rows: int, columns: int, updates: int, kind: str) -> Case:
    def peer(f: Any, x: Any, i: Any, u: Any) -> Any:
        return x.scatter(0, i.long(), u) if kind == "none" else x.scatter_add(0, i.long(), u)

    return Case(f"scatter_elements {kind} f32 {updates} into {rows}, x{columns}",
                ((rows, columns), (updates, columns), (updates, columns)), "f32",
                lambda xt, x, i, u: xt.scatter_elements(x, i, u, axis=0, reduction=kind), peer,
                bytes=8.0 * rows * columns + 12.0 * updates * columns, dtypes=("f32", "i64", "f32"), high=rows,
                distinct=kind == "none")


def scatter_rows(rows: int, columns: int, updates: int, kind: str) -> Case:
    def peer(f: Any, x: Any, i: Any, u: Any) -> Any:
        return x.index_put((i[:, 0].long(),), u, accumulate=kind == "add")

    return Case(f"scatter_nd {kind} f16 {updates} rows into {rows}x{columns}",
                ((rows, columns), (updates, 1), (updates, columns)), "f16",
                lambda xt, x, i, u: xt.scatter_nd(x, i, u, reduction=kind), peer,
                bytes=4.0 * rows * columns + 2.0 * updates * columns, dtypes=("f16", "i64", "f16"), high=rows,
                distinct=kind == "none")


def cumsum(rows: int, columns: int) -> Case:
    shape = (rows, columns) if rows > 1 else (columns,)
    return Case(f"cumsum f32 {'x'.join(map(str, shape))}", (shape,), "f32",
                lambda xt, x: xt.cumulative(x, kind="sum", axis=len(shape) - 1), lambda f, x: x.cumsum(-1),
                bytes=8.0 * rows * columns)


def sort(rows: int, columns: int) -> Case:
    return Case(f"sort f32 {rows}x{columns}", ((rows, columns),), "f32", lambda xt, x: xt.sort(x, axis=1)[0],
                lambda f, x: x.sort(dim=-1, stable=True)[0], bytes=16.0 * rows * columns)


def top_k(rows: int, columns: int, k: int) -> Case:
    return Case(f"top_k f32 {k} of {rows}x{columns}", ((rows, columns),), "f32",
                lambda xt, x: xt.top_k(x, k=k, axis=1)[0], lambda f, x: x.topk(k)[0], bytes=4.0 * rows * columns)


def pool(n: int, c: int, h: int, kind: str) -> Case:
    def build(xt: Any, x: Any) -> Any:
        return xt.reduce_window(x, kind=kind, window=(1, 1, 3, 3), strides=(1, 1, 2, 2), low=(0, 0, 1, 1),
                                high=(0, 0, 1, 1))

    def peer(f: Any, x: Any) -> Any:
        return f.max_pool2d(x, 3, 2, 1) if kind == "max" else f.avg_pool2d(x, 3, 2, 1) * 9

    return Case(f"{kind} pool f16 n{n} c{c} {h}x{h}", ((n, c, h, h),), "f16", build, peer, bytes=2.5 * n * c * h * h)


def resize(n: int, c: int, h: int, mode: str) -> Case:
    torch_mode = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[mode]
    rounding = {"coordinate": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {}
    return Case(f"resize {mode} f16 n{n} c{c} {h} to {2 * h}", ((n, c, h, h),), "f16",
                lambda xt, x: xt.resize(x, shape=(n, c, 2 * h, 2 * h), mode=mode, **rounding),
                lambda f, x: f.interpolate(x, scale_factor=2, mode=torch_mode), bytes=10.0 * n * c * h * h)


def nonzero(count: int) -> Case:
    return Case(f"nonzero f32 {count}", ((count,),), "f32",
                lambda xt, x: xt.nonzero(xt.maximum(x, xt.constant(0.0, dtype="f32")), symbol="found"),
                lambda f, x: f.relu(x).nonzero().T, bytes=12.0 * count, host=True)


def compress(rows: int, columns: int) -> Case:
    return Case(f"compress f32 {rows}x{columns}", ((rows, columns), (rows,)), "f32",
                lambda xt, x, c: xt.compress(x, xt.compare(c, xt.constant(0.0, dtype="f32"), direction="gt"), axis=0,
                                             symbol="found"),
                lambda f, x, c: x[c > 0], bytes=6.0 * rows * columns, host=True)


CASES: tuple[Case, ...] = (
    pointwise(8191, 4097),
    columns_sum(8192, 4096, "f32"),
    columns_sum(65536, 64, "f16"),
    full("sum", 1 << 25, "f32"),
    full("max", 1 << 25, "f16"),
    transpose((32, 512, 32, 128), (0, 2, 1, 3)),
    transpose((32, 64, 112, 112), (0, 2, 3, 1)),
    transpose((4095, 4097), (1, 0)),
    gather(50257, 768, 32768),
    gather_elements(4096, 4096),
    scatter_elements(4096, 1024, 512, "none"),
    scatter_elements(4096, 1024, 4096, "add"),
    scatter_rows(16384, 1024, 2048, "none"),
    scatter_rows(16384, 1024, 2048, "add"),
    cumsum(4096, 4096),
    cumsum(1, 1 << 24),
    sort(256, 4096),
    sort(8, 65536),
    top_k(64, 32000, 50),
    pool(32, 64, 112, "max"),
    pool(32, 64, 112, "sum"),
    resize(8, 64, 64, "linear"),
    resize(8, 64, 64, "nearest"),
    resize(8, 64, 64, "cubic"),
    nonzero(1 << 20),
    compress(16384, 256),
)
