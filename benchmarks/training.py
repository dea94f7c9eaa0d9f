"""Training speed on a GPU: the peers' loop against ours, in one run, and ours alone and in populations.

    python -m benchmarks.training --out results/benchmarks/training.json

The peers' loop is Garg et al.'s: HuggingFace's GPT-2 in float32, run eagerly, prompts sampled on the host, `.item()` at
each step.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch

from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from algoscope.training.settings import Curriculum, Member, Settings

TASK = LinearRegression(dim=20, examples=40)
Precision = Literal["bf16", "tf32", "fp32", "fp64"]


def rate(advance: Callable[[], None], steps: int, repeats: int = 3) -> float:
    """Steps per second: the median over repeats, after a warm-up."""
    for _ in range(max(steps // 10, 3)):
        advance()
    found = []
    for _ in range(repeats):
        _wait()
        begin = time.perf_counter()
        for _ in range(steps):
            advance()
        _wait()
        found.append(steps / (time.perf_counter() - begin))
    return sorted(found)[repeats // 2]


def peers(model: Transformer, batch: int, device: torch.device) -> Callable[[], None]:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        n_positions=2 * TASK.length, n_embd=model.width, n_layer=model.layers, n_head=model.heads,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
    )  # fmt: skip
    backbone = torch.nn.Module.to(GPT2Model(config), device)
    read_in, read_out = (torch.nn.Linear(*sizes).to(device) for sizes in ((TASK.inputs, model.width), (model.width, 1)))
    parameters = [*backbone.parameters(), *read_in.parameters(), *read_out.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-4)

    def advance() -> None:
        x = torch.randn(batch, TASK.examples + 1, TASK.dim)
        y = (x @ torch.randn(batch, TASK.dim, 1))[..., 0]
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        states = backbone(inputs_embeds=read_in(TASK.encode(x, y))).last_hidden_state
        loss = (TASK.read(read_out(states)) - y).square().mean()
        loss.backward()
        optimizer.step()
        loss.detach().item()

    return advance


def ours(
    model: Transformer, batch: int, members: int, precision: Precision, device: torch.device
) -> tuple[Population, Callable]:
    settings = Settings(steps=100_000, batch=batch, precision=precision, curriculum=Curriculum(interval=500))
    population = Population(model, [Member(TASK, seed, 3e-4) for seed in range(members)], settings, device)
    return population, prepare(population)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--precisions", nargs="+", default=["bf16"])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Transformer(layers=options.layers, heads=8, width=options.width)
    table: list[dict] = []
    if not options.skip_peers:
        table.append({"loop": "peers", "steps_per_s": rate(peers(model, 64, device), max(options.steps // 10, 1))})
        print(table[-1], flush=True)

    for precision in options.precisions:
        for members in options.members:
            begin = time.perf_counter()
            population, advance = ours(model, 64, members, precision, device)
            _wait()
            compiled = time.perf_counter() - begin
            speed = rate(advance, max(options.steps // members, 1))
            row = {"loop": "ours", "precision": precision, "members": members, "compile_s": round(compiled, 1)}
            memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
            row |= {"steps_per_s": speed, "model_steps_per_s": speed * members, "gib": round(memory, 2)}
            row |= {"step": int(population.state.step), "loss": float(population.state.losses.mean())}
            print(row, flush=True)
            table.append(row)
            if options.profile:
                profile(population)
            del population, advance
            if device.type == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
    if options.out:
        options.out.write_text(json.dumps(table, indent=2))


def profile(population: Population) -> None:
    """Where the time of a step goes, by kernel."""
    from torch.profiler import ProfilerActivity

    with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        for _ in range(3):
            population.step()
        _wait()
    events = sorted(found.key_averages(), key=lambda event: -event.self_device_time_total)
    total = sum(event.self_device_time_total for event in events) / 3
    print(f"kernels of a step: {total / 1000:.2f} ms")
    for event in events[:28]:
        if event.self_device_time_total:
            print(f"{event.self_device_time_total / 3:9.1f} us {event.count / 3:7.1f} x {event.key[:110]}")


if __name__ == "__main__":
    main()
