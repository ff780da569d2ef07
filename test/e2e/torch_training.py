"""Trains small models through ``torch.compile(backend="xcc")``, strict, beside eager: same weights, same batches.

    python test/e2e/torch_training.py [MODEL ...]               # 50 steps' losses with SGD and AdamW
    python test/e2e/torch_training.py --optimizer sgd --steps 5 bert
    python test/e2e/torch_training.py --time [MODEL ...]        # a step's time beside eager and Inductor

Each row has the largest difference of a loss from eager's, and what that would be of eager itself after its weights
have moved by a rounding: training amplifies such differences, ReLU and batch norm of few values most of all. A step is
forward, backward and the optimizer, all compiled. The exit status is 1 if a loss differs by more than 1e-3.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))
from exported.exporting import declare_compiled_ops  # noqa: E402

Tensor = torch.Tensor
LIMIT = 1e-3


@dataclass(frozen=True)
class Task:
    """`build()` a model, `batch(generator)` its inputs, `loss(model, *inputs)` what is minimised; optimizers' rates."""

    build: Callable[[], torch.nn.Module]
    batch: Callable[[torch.Generator], tuple[Tensor, ...]]
    loss: Callable[..., Tensor]
    rates: dict[str, float]


def classified(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y)


def next_words(model: Any, words: Tensor) -> Tensor:
    """The mean loss of each word but the first, by the words before it."""
    logits = model(input_ids=words, use_cache=False).logits
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())


def resnet() -> torch.nn.Module:
    from torchvision.models import resnet18

    # Blocks begin as identities, else training amplifies a rounding to 1e-3 within 10 steps
    return resnet18(num_classes=10, zero_init_residual=True)     # type: ignore[no-any-return]


def bert(layers: int = 4, width: int = 256) -> torch.nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(BertConfig(
        vocab_size=1000, hidden_size=width, num_hidden_layers=layers, num_attention_heads=4,
        intermediate_size=4 * width, max_position_embeddings=128, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=3))


def gpt2(layers: int = 4, width: int = 256) -> torch.nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(
        vocab_size=1000, n_embd=width, n_layer=layers, n_head=4, n_positions=128, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))


def words(g: torch.Generator, count: int = 4, length: int = 64) -> Tensor:
    return torch.randint(0, 1000, (count, length), generator=g)


def images(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise whose mean tells the class."""
    y = torch.randint(0, 10, (8,), generator=g)
    return torch.randn(8, 3, 64, 64, generator=g) + y.reshape(8, 1, 1, 1) / 5, y


TASKS = {
    "resnet18": Task(resnet, images, classified, {"sgd": 5e-4, "adamw": 1e-4}),
    "bert": Task(bert, lambda g: (words(g), torch.randint(0, 3, (4,), generator=g)),
                 lambda m, x, y: m(input_ids=x, labels=y).loss, {"sgd": 1e-2, "adamw": 1e-4}),
    "gpt2": Task(gpt2, lambda g: (words(g),), next_words, {"sgd": 1e-2, "adamw": 1e-4}),
}


def optimizer_of(name: str, model: torch.nn.Module, rate: float) -> Any:
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    return torch.optim.AdamW(model.parameters(), lr=rate)


def step_of(task: Task, model: torch.nn.Module, optimizer: str, compiled: Callable[..., Any]) -> Callable[..., Tensor]:
    """One step: the loss before it. `compiled` is given the loss and the optimizer's step."""
    updates = optimizer_of(optimizer, model, task.rates[optimizer])
    loss = compiled(lambda *inputs: task.loss(model, *inputs))
    update = compiled(updates.step)

    def step(*inputs: Tensor) -> Tensor:
        updates.zero_grad()
        out = loss(*inputs)
        out.backward()
        update()
        return out.detach()     # type: ignore[no-any-return]

    return step


def losses(task: Task, step: Callable[..., Tensor], steps: int) -> list[float]:
    """Of `steps` steps, on eight batches again and again."""
    return [float(step(*task.batch(torch.Generator().manual_seed(n % 8)))) for n in range(steps)]


def eager(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def xcc_strict(f: Callable[..., Any]) -> Callable[..., Any]:
    from xcc.frontends.torch.backend import backend

    return torch.compile(f, backend=backend, options={"strict": True})


def moved(model: torch.nn.Module) -> torch.nn.Module:
    """A copy with its weights changed by at most a rounding."""
    out = copy.deepcopy(model)
    with torch.no_grad():
        for p in out.parameters():
            p.mul_(1 + 6e-8 * torch.randint(-1, 2, p.shape))
    return out


def model_of(task: Task) -> torch.nn.Module:
    declare_compiled_ops()
    torch._dynamo.reset()
    torch.manual_seed(0)
    return task.build().train()


def compare(task: Task, optimizer: str, steps: int) -> tuple[float, float, float, float]:
    """The first and last loss, the largest difference from eager's, and of eager's own with moved weights."""
    model = model_of(task)
    twins = (copy.deepcopy(model), moved(model))
    want = losses(task, step_of(task, model, optimizer, eager), steps)
    got, other = (losses(task, step_of(task, m, optimizer, how), steps)
                  for m, how in zip(twins, (xcc_strict, eager), strict=True))
    return want[0], want[-1], largest(want, got), largest(want, other)


def largest(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def step_times(task: Task, optimizer: str, rounds: int) -> dict[str, float]:
    """Median seconds of a step, the ways in turn in each round."""
    ways = {"eager": eager, "Inductor": torch.compile, "xcc": xcc_strict}
    batch = task.batch(torch.Generator().manual_seed(0))
    model = model_of(task)
    steps = {name: step_of(task, copy.deepcopy(model), optimizer, how) for name, how in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(-3, rounds):
        for name, step in steps.items():
            begin = time.perf_counter()
            step(*batch)
            if n >= 0:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(t) for name, t in times.items()}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="*", help=f"of {', '.join(TASKS)} (default: all)")
    p.add_argument("--optimizer", action="append", choices=("sgd", "adamw"), help="default: both")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--time", action="store_true", help="a step's time beside eager and Inductor")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    wrong = False
    print("| model | optimizer | " + ("eager ms | Inductor ms | xcc ms | Inductor / xcc |" if args.time else
                                      "steps | first loss | last | difference | of eager with moved weights |"))
    print("|---|---|" + "---|" * (4 if args.time else 5), flush=True)
    for name in args.model or TASKS:
        for optimizer in args.optimizer or ("sgd", "adamw"):
            if args.time:
                t = step_times(TASKS[name], optimizer, args.steps)
                cells = [*(f"{t[way] * 1e3:.1f}" for way in t), f"{t['Inductor'] / t['xcc']:.2f}"]
            else:
                first, last, off, own = compare(TASKS[name], optimizer, args.steps)
                wrong = wrong or off > LIMIT
                cells = [str(args.steps), f"{first:.4f}", f"{last:.4f}", f"{off:.1e}", f"{own:.1e}"]
            print(f"| {name} | {optimizer} | {' | '.join(cells)} |", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
