"""Time to quality on a GPU: the error at the last position on held-out prompts while a population trains.

python -m benchmarks.quality --steps 29000 --rates 2e-4 3e-4 --seeds 2
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch.func import functional_call

from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from algoscope.training.settings import Curriculum, Member, Settings

HELD_OUT = 1280


@torch.no_grad()
def errors(population: Population, x: torch.Tensor, y: torch.Tensor) -> list[list[float]]:
    """Each member's normalized error by position, its weights in the precision of training."""
    task, found = population.task, []
    for row in population.state.parameters:
        tensors = population.layout.tensors(row[None])
        squares = [
            (task.read(functional_call(population.network, tensors, (task.encode(a, b),))) - b).square()
            for a, b in zip(x.split(256), y.split(256), strict=True)
        ]
        found.append((torch.cat(squares).mean(0) / task.power).tolist())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=29_000)
    parser.add_argument("--rates", type=float, nargs="+", default=[3e-4])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--interval", type=int, default=500)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--beta2", type=float, default=0.999)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--report", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    task = LinearRegression(dim=20, examples=40)
    settings = Settings(
        steps=options.steps, warmup=options.warmup, precision=options.precision, betas=(0.9, options.beta2),
        curriculum=Curriculum(interval=options.interval),
    )  # fmt: skip
    members = [Member(task, seed, rate) for rate in options.rates for seed in range(options.seeds)]
    prompts = task.sample(HELD_OUT, seed=10**6, device=device, dtype=torch.float32)
    begin = time.perf_counter()
    population = Population(Transformer(12, 8, 256), members, settings, device)
    advance = prepare(population)
    torch.cuda.synchronize()
    print(f"compiled in {time.perf_counter() - begin:.1f} s", flush=True)
    begin, history = time.perf_counter(), []
    for step in range(1, options.steps + 1):
        advance()
        if step % options.report == 0 or step == options.steps:
            found = errors(population, prompts.x, prompts.y)
            seconds = time.perf_counter() - begin
            history.append({"step": step, "seconds": round(seconds, 2), "errors": found})
            last = " ".join(f"{row[40]:.2e}" for row in found)
            print(f"{step:7d} {seconds:7.1f} s  t=40: {last}  t=20: {found[0][20]:.2e}", flush=True)
            if seconds > options.limit:
                break
    if options.out:
        options.out.write_text(
            json.dumps({"options": {k: str(v) for k, v in vars(options).items()}, "history": history})
        )


if __name__ == "__main__":
    main()
