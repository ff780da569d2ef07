"""Small models of many kinds, and random damage to them: what the fuzz tests feed to the importer and the tools."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NUMBERS = (0, 1, -1, 2, 3, 7, -2, 127, 255, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 31, 1 << 40, (1 << 62) + 1,
           (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 0.5)
TEXTS = ("", "x", "y", "w", "NOTSET", "\0", "../../etc/passwd", "a" * 5000, "n", "0", "Ünïcode", "linear", "%s{0}")


def value(name: str, shape: list[Any], kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **weights: Any) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _rand(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def dense() -> onnx.ModelProto:
    node = helper.make_node
    return _model([node("Gemm", ["x", "w", "b"], ["h"], name="gemm", transB=1, alpha=0.5),
                   node("Softmax", ["h"], ["s"], name="soft", axis=-1), node("Shape", ["s"], ["d"], name="shape"),
                   node("Reshape", ["s", "d"], ["r"], name="reshape"),
                   node("Slice", ["r", "i", "j"], ["y"], name="cut")],
                  [value("x", ["n", 4])], [value("y", ["n", 3])], w=_rand(5, 4), b=_rand(5), i=np.array([0, 0]),
                  j=np.array([9, 3]))


def image() -> onnx.ModelProto:
    node = helper.make_node
    return _model([node("Conv", ["x", "w"], ["h"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
                   node("Relu", ["h"], ["r"], name="relu"),
                   node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
                   node("Resize", ["p", "", "s"], ["z"], name="resize", mode="linear"),
                   node("Transpose", ["z"], ["t"], name="turn", perm=[0, 2, 3, 1]),
                   node("Pad", ["t", "e"], ["y"], name="pad", mode="reflect")],
                  [value("x", ["b", 2, "h", 8])], [value("y", [None] * 4)], w=_rand(4, 2, 3, 3),
                  s=np.array([1, 1, 2, 2], np.float32), e=np.array([0, 1, 1, 0, 0, 1, 1, 0]))


def control() -> onnx.ModelProto:
    node = helper.make_node
    then = helper.make_graph([node("Neg", ["x"], ["a"], name="neg")], "t", [], [value("a", ["n"])])
    other = helper.make_graph([node("Abs", ["x"], ["b"], name="abs")], "e", [], [value("b", ["n"])])
    body = helper.make_graph(
        [node("Add", ["v", "x"], ["v1"], name="step"), node("Identity", ["go"], ["go1"], name="keep"),
         node("ReduceSum", ["v1"], ["s"], name="sum", keepdims=0)], "l",
        [value("i", [], INT64), value("go", [], BOOL), value("v", ["n"])],
        [value("go1", [], BOOL), value("v1", ["n"]), value("s", [])])
    return _model([node("If", ["q"], ["h"], name="pick", then_branch=then, else_branch=other),
                   node("Loop", ["three", "", "h"], ["y", "z"], name="loop", body=body)],
                  [value("x", ["n"]), value("q", [], BOOL)], [value("y", ["n"]), value("z", ["m"])],
                  three=np.array(3))


def indexed() -> onnx.ModelProto:
    node = helper.make_node
    return _model([node("Gather", ["t", "x"], ["g"], name="gather"),
                   node("LayerNormalization", ["g", "w"], ["l"], name="norm"),
                   node("TopK", ["l", "k"], ["v", "p"], name="top"),
                   node("ScatterND", ["t", "at", "u"], ["c"], name="put"),
                   node("ReduceMean", ["c"], ["m"], name="mean", keepdims=0),
                   node("Add", ["v", "m"], ["y"], name="add")],
                  [value("x", ["n"], INT64)], [value("y", ["n", 2]), value("p", ["n", 2], INT64)],
                  t=_rand(6, 8), w=_rand(8), k=np.array([2]), at=np.array([[1], [3]]), u=_rand(2, 8))


def recurrent() -> onnx.ModelProto:
    node = helper.make_node
    return _model([node("LSTM", ["x", "w", "r"], ["h", "", "c"], name="lstm", hidden_size=3),
                   node("Squeeze", ["h", "one"], ["s"], name="squeeze"),
                   node("Einsum", ["s", "v"], ["y"], name="einsum", equation="abc,cd->abd")],
                  [value("x", ["t", 2, 4])], [value("y", [None] * 3), value("c", [1, 2, 3])], w=_rand(1, 12, 4),
                  r=_rand(1, 12, 3), one=np.array([1]), v=_rand(3, 2))


def quantised() -> onnx.ModelProto:
    node = helper.make_node
    return _model([node("QuantizeLinear", ["x", "s", "z"], ["q"], name="quantise"),
                   node("DequantizeLinear", ["q", "s", "z"], ["d"], name="widen"),
                   node("MatMul", ["d", "w"], ["m"], name="matmul"), node("Cast", ["m"], ["y"], name="cast", to=10)],
                  [value("x", ["n", 4])], [value("y", ["n", 2], TensorProto.FLOAT16)], s=np.array(0.1, np.float32),
                  z=np.array(3, np.uint8), w=_rand(4, 2))


def counted() -> onnx.ModelProto:
    node = helper.make_node
    body = helper.make_graph(
        [node("Mul", ["v", "v"], ["row"], name="square"), node("Less", ["i", "last"], ["more"], name="ends"),
         node("Identity", ["v"], ["v1"], name="keep")], "l",
        [value("i", [], INT64), value("go", [], BOOL), value("v", [2])],
        [value("more", [], BOOL), value("v1", [2]), value("row", [2])])
    return _model([node("NonZero", ["x"], ["at"], name="where"),
                   node("Slice", ["at", "zero", "one", "one"], ["first"], name="first"),
                   node("Sub", ["at", "first"], ["y"], name="relative"),
                   node("ReduceMax", ["at"], ["last"], name="most", keepdims=0),
                   node("Loop", ["four", "", "u"], ["", "z"], name="loop", body=body)],
                  [value("x", ["n"])], [value("y", [1, "k"], INT64), value("z", ["m", 2])],
                  zero=np.array([0]), one=np.array([1]), four=np.array(4), u=_rand(2))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (dense, image, control, indexed, recurrent, quantised, counted)}


def damaged(model: onnx.ModelProto, rng: random.Random) -> bytes:
    """`model` after one to three changes, as a file's bytes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 2, 3))):
        message, field = rng.choice(list(_fields(copy)))
        _change(message, field, rng)
    data = bytearray(copy.SerializeToString())
    if rng.random() < 0.15:
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data[:rng.randrange(len(data))] if rng.random() < 0.03 else data)


def _fields(message: Any) -> Iterator[tuple[Any, Any]]:
    """Every field that is set below `message`, and the message that holds it."""
    for field, content in message.ListFields():
        yield message, field
        if field.type == field.TYPE_MESSAGE:
            for inner in content if _repeated(field) else (content,):
                yield from _fields(inner)


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _change(message: Any, field: Any, rng: random.Random) -> None:
    """Removes, repeats, reorders or replaces what the field holds."""
    if not _repeated(field):
        if rng.random() < 0.2 or field.type == field.TYPE_MESSAGE:
            message.ClearField(field.name)
        else:
            _assign(lambda v: setattr(message, field.name, v), field, rng)
        return
    items = getattr(message, field.name)
    if not len(items):
        return
    at, what = rng.randrange(len(items)), rng.randrange(4)
    if what == 0:
        del items[at]
    elif what == 1 and field.type == field.TYPE_MESSAGE:
        items.add().CopyFrom(items[at])
    elif what == 2:
        kept = list(items)
        rng.shuffle(kept)
        del items[:]
        items.extend(kept)
    elif field.type == field.TYPE_MESSAGE:
        inner = list(_fields(items[at]))
        if inner:
            _change(*rng.choice(inner), rng)
    else:
        _assign(lambda v: items.__setitem__(at, v), field, rng)


def _assign(put: Callable[[Any], None], field: Any, rng: random.Random) -> None:
    kinds = {field.TYPE_STRING: TEXTS, field.TYPE_FLOAT: FLOATS, field.TYPE_DOUBLE: FLOATS,
             field.TYPE_BYTES: (b"", b"\0", b"\xff" * 7, b"linear", bytes(1000))}
    try:
        put(rng.choice(kinds.get(field.type, NUMBERS)))
    except ValueError:          # out of range for a narrow field
        put(rng.choice((0, 1, 2)))
