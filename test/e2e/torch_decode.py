"""Small language models that decode with a static cache, compiled and in eager.

    python test/e2e/torch_decode.py [NAME ...]      # 200 greedy tokens of each: llama, qwen3, gpt2, mixtral
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import torch
from exported.exporting import declare_compiled_ops

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


def generated(name: str, tokens: int, layers: int = 2) -> bool:
    """Whether ``generate`` gives the tokens that eager gives, with ``forward`` compiled, all of it by xcc."""
    from xcc.frontends.torch.backend import backend

    model = model_of(name, layers)
    given: dict[str, Any] = {"cache_implementation": "static", "do_sample": False, "max_new_tokens": tokens}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = model.generate(prompt(), **given)
        model.forward = torch.compile(model.forward, backend=backend, options={"strict": True})
        return bool(torch.equal(model.generate(prompt(), **given), wanted))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", choices=[*MODELS, []], help="default: all")
    p.add_argument("--tokens", type=int, default=200)
    args = p.parse_args()
    fine = True
    for name in args.name or MODELS:
        start = time.perf_counter()
        same = generated(name, args.tokens)
        fine &= same
        print(f"{name:10} generate {args.tokens} tokens: {'as eager' if same else 'DIFFERENT'}, "
              f"{time.perf_counter() - start:.0f} s", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
