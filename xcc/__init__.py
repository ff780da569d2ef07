"""xcc compiles ONNX models and PyTorch programs for CPUs, NVIDIA GPUs and AMD GPUs.

>>> model = xcc.compile("m.onnx", target="cpu")        # doctest: +SKIP
>>> out = model.run({"x": x})                          # doctest: +SKIP
>>> model.save("m.xcm"); model = xcc.load("m.xcm")     # doctest: +SKIP

Importing this package loads neither MLIR nor onnx nor torch.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import CompilerBug, UserError, XccError

if TYPE_CHECKING:
    from xcc import onnx_backend, targets, torch
    from xcc.runtime.model import Model, load

__all__ = ["CompilerBug", "Model", "UserError", "XccError", "compile", "load", "onnx_backend", "targets", "torch"]

_HERE = Path(__file__).parent
if not (_HERE / "passes").exists() and (_HERE.parent / "passes" / "base.py").exists():
    __path__.append(str(_HERE.parent))      # a checkout, where the subpackages lie beside this folder

_LAZY = {"Model": ("xcc.runtime.model", "Model"), "load": ("xcc.runtime.model", "load"),
         "targets": ("xcc.targets", ""), "onnx_backend": ("xcc.onnx_backend", ""), "torch": ("xcc.torch", "")}

_KERNELS = {        # the language of kernels (docs/kernel-language.md): module -> what kernels use of it
    "arguments": "constexpr",
    "combining": "argmax argmin argsort cummax reduce scan sort topk",
    "functions": "abs acos asin atan cdiv ceil cos cosh cumprod cumsum device_assert device_print dot erf exp exp2 "
                 "expm1 floor log log1p log2 maximum minimum num_programs program_id rsqrt sigmoid sin sinh sqrt "
                 "static_range tan tanh where",
    "kernel": "kernel",
    "random": "philox rand randint randn",
    "shapes": "arange full join reshape split transpose zeros",
    "unwritten": "empty",
    "types": "f64 f32 f16 bf16 f8E4M3FN f8E5M2 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64",
}
_LAZY |= {name: (f"xcc.frontends.kernel.{module}", name) for module, names in _KERNELS.items()
          for name in names.split()}


def compile(model: Any, target: str = "cpu", *, dims: dict[str, Any] | None = None,
            fix: dict[str, Any] | None = None, updates: dict[str, str] | None = None, pipeline: Any = None,
            **options: Any) -> Model:
    """Compiles `model` and returns it ready to be called.

    Args:
        model: a path (.onnx, .pt2, or the .mlir of any stage), an ``onnx.ModelProto`` or a
            ``torch.export.ExportedProgram``.
        target: "cpu", "nvptx" or "amdgcn", with ``,key=value`` for options of the target.
        dims: bounds of symbolic dims, ``{"batch": (1, 64), "seq": 128}``.
        fix: inputs that become constants, ``{"rate": 16000}``; the compiled model does not have them.
        updates: outputs that take the place of inputs, ``{"present.0.key": "past.0.key"}``: runs write to the arrays
            that they are given.
        pipeline: a :class:`xcc.passes.pipeline.Pipeline` to use in place of the target's own.
        options: ``mesh={"tp": 2}`` for a model of several ranks and ``shard={"h.*.weight": "tp:0"}`` for where its
            parts lie (docs/parallel.md), and the fields of :class:`xcc.options.CompileOptions`: chip, precision, ...

    The work is done in other processes (option ``isolate``), and its result is kept for the next time (``cache``).

    Raises:
        UserError: the model or an option is at fault; the message names the place.
        CompilerBug: xcc is at fault; a reproducer was saved.
    """
    import os

    if os.environ.get("XCC_WORKER"):
        raise UserError("a file with passes calls xcc.compile when it is imported: put the call under "
                        "if __name__ == '__main__'")
    from xcc.facade import compile_to_artifact
    from xcc.options import CompileOptions
    from xcc.runtime.model import Model

    compiled = Model(compile_to_artifact(model, CompileOptions.make(target, dims, fix, updates, **options), pipeline))
    alone = compiled.part.mesh.size > compiled.part.place.size      # to be saved: no launcher has started its ranks
    return compiled if alone else compiled.prepare()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        loaded = importlib.import_module(module)
        value = globals()[name] = getattr(loaded, attribute) if attribute else loaded
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
