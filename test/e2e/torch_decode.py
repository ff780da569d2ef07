"""Small language models that decode with a static cache, compiled and in eager.

    python test/e2e/torch_decode.py [NAME ...]      # 200 greedy tokens of each: llama, qwen3, gpt2, mixtral
    python test/e2e/torch_decode.py --times         # a step with a short and with a long cache, kernel by kernel

By ``generate`` with ``forward`` compiled, and by a .pt2 file of one step that has the cache as its state.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from exported.exporting import declare_compiled_ops

import xcc.torch
from xcc.runtime.program import Launch

VOCABULARY = 96
MODELS = ("llama", "qwen3", "gpt2", "mixtral")


def model_of(name: str, layers: int = 2, positions: int = 256) -> Any:
    """A model with random weights of a seed."""
    declare_compiled_ops()
    import transformers

    torch.manual_seed(0)
    if name == "gpt2":
        config: Any = transformers.GPT2Config(n_embd=64, n_layer=layers, n_head=4, vocab_size=VOCABULARY,
                                              n_positions=positions, bos_token_id=1, eos_token_id=1)
        model: Any = transformers.GPT2LMHeadModel(config)
    else:
        family = {"llama": "Llama", "qwen3": "Qwen3", "mixtral": "Mixtral"}[name]
        experts = {"num_local_experts": 4, "num_experts_per_tok": 2} if name == "mixtral" else {}
        config = getattr(transformers, f"{family}Config")(
            vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=layers, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, intermediate_size=96, max_position_embeddings=positions, **experts)
        model = getattr(transformers, f"{family}ForCausalLM")(config)
    model.generation_config.eos_token_id = None     # each run has as many tokens as it is asked for
    return model.eval()


def prompt() -> Any:
    """Two rows of tokens."""
    return torch.randint(2, VOCABULARY, (2, 7), generator=torch.Generator().manual_seed(1))


def generated(name: str, tokens: int, layers: int = 2, others: Sequence[dict[str, Any]] = ()) -> bool:
    """Whether ``generate`` gives the tokens that eager gives, with ``forward`` compiled, all of it by xcc: greedy ones,
    and those of `others`, arguments of further calls, which are of any size then."""
    from xcc.frontends.torch.backend import backend

    model = model_of(name, layers)
    options = {"strict": True}
    ways = [{"cache_implementation": "static", "do_sample": False, "max_new_tokens": tokens, **way}
            for way in ({}, *others)]

    def made() -> list[Any]:
        torch.manual_seed(3)
        return [model.generate(prompt(), **way) for way in ways]

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = made()
        model.forward = xcc.torch.compile(model.forward, **options) if others else \
            torch.compile(model.forward, backend=backend, options=options)
        return all(map(torch.equal, made(), wanted))


def program_of(name: str, layers: int = 2, length: int = 256) -> Any:
    """A step of the model as an exported program, the cache being its buffers: input_ids, cache_position -> logits."""
    return exported(model_of(name, layers), 2, length)


def exported(model: Any, rows: int, length: int) -> Any:
    """The program of a step of `rows` prompts with a cache of `length` tokens."""
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model.generation_config.cache_implementation = "static"
    given = {"input_ids": torch.zeros(rows, 1, dtype=torch.int64), "cache_position": torch.zeros(1, dtype=torch.int64)}
    with torch.no_grad():
        return torch.export.export(TorchExportableModuleWithStaticCache(model, rows, length), (), given)


def decoded(model: Any, tokens: int) -> Any:
    """Greedy tokens of a compiled step, the prompt before them: one run a token, from an empty cache."""
    model.reset()
    row = prompt().numpy()
    for at in range(row.shape[1] + tokens - 1):
        logits, = model.run({"input_ids": np.ascontiguousarray(row[:, at:at + 1]), "cache_position": np.array([at])}
                            ).values()
        if at + 1 == row.shape[1]:
            row = np.concatenate([row, logits[:, -1].argmax(-1)[:, None]], axis=1)
    return row


def steps_agree(name: str, tokens: int, layers: int = 2) -> bool:
    """Whether a .pt2 file with the cache as state decodes as eager does, again after a reset."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "step.pt2")
        torch.export.save(program_of(name, layers), path)
        compiled = xcc.compile(path)
        wanted = model_of(name, layers).generate(prompt(), cache_implementation="static", do_sample=False,
                                                 max_new_tokens=tokens).numpy()
        return all(np.array_equal(decoded(compiled, tokens), wanted) for _ in range(2))


def step_times(length: int, runs: int = 20) -> tuple[float, float]:
    """Seconds of a Llama's step with a cache of `length` rows: of kernels outside of attention, and of those of it.

    Kernels of attention are those that read something of the cache's length.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=4096, hidden_size=384, num_hidden_layers=4, num_attention_heads=6, head_dim=64,
                         num_key_value_heads=2, intermediate_size=1408, max_position_embeddings=1 << 14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = xcc.compile(exported(LlamaForCausalLM(config).eval(), 1, length))
    program = model.artifact.program
    reading = {s.kernel for s in program.body if isinstance(s, Launch) and "scatter" not in s.kernel
               and any(length in program.buffers[b].shape for b in s.buffers)}
    sums = []
    for at in range(runs):
        times = model.profile({"input_ids": np.array([[at]]), "cache_position": np.array([at])})
        sums.append([sum(t.seconds for t in times if (t.kernel in reading) == inside) for inside in (False, True)])
    outside, inside = np.median(sums, axis=0)
    return float(outside), float(inside)


WAYS = {"generate": generated, "exported": steps_agree}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", help=f"of {', '.join(MODELS)}; default: all")
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--times", action="store_true", help="time a step instead, with a cache of 512 and of 8192 rows")
    args = p.parse_args()
    if args.times:
        declare_compiled_ops()
        for length in (512, 8192):
            outside, inside = step_times(length)
            print(f"{length:5} rows: {outside * 1e6:6.0f} us outside of attention, {inside * 1e6:6.0f} us in it")
        return 0
    fine = True
    for name in args.name or MODELS:
        for way, check in WAYS.items():
            start = time.perf_counter()
            same = check(name, args.tokens)
            fine &= same
            print(f"{name:10} {way:10} {args.tokens} tokens: {'as eager' if same else 'DIFFERENT'}, "
                  f"{time.perf_counter() - start:.0f} s", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
