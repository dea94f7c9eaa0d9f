"""An index in training and in use: ours against a plain loop over the same network, as ratios from one run.

    python -m benchmarks.index                  writes results/benchmarks/index.json; four minutes on a GPU, most of
                                                which compile
    python -m benchmarks.index --parts queries  one part of it; the others stay as they are
    python -m benchmarks.index --scale smoke    small sizes, for a CPU; writes nothing without --out

The plain loop is eager PyTorch in 32 bits with Adam, and fetches the loss at each step. Ratios are to the one that
draws its prompts on the device; one that draws them on the host, as peers do, is told apart.

In use, 512 sets have been stored before the clock starts, and each is asked one query. The published table is for 32
coordinates, a network for each look-up, and log2 N of them, on a GPU of that time: its numbers stand beside ours, and
are no ratio. How fast a network looks up does not depend on its weights, so these are fresh.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from algoscope import arguments, files, runs
from algoscope.models import Index
from algoscope.models.index import IndexNetwork, sorted_by
from algoscope.randomness import stream
from algoscope.tasks import UniformSearch
from algoscope.tasks.search import Search
from algoscope.training import Member, Settings
from algoscope.training.bench import baseline_step, measure, rate
from benchmarks.kernels import kernels

RESULT = Path("results/benchmarks/index.json")
PUBLISHED = {64: 212_943, 128: 175_559, 256: 146_495, 1024: 113_960, 2048: 103_476}  # queries/s by number of points
MEMBERS = (1, 3)
PARTS = ("queries", "training", "kernels")
LONGEST = 25  # kernels of a step that are told by name


@dataclass(frozen=True)
class Sizes:
    task: UniformSearch
    model: Index
    sets: int  # of points in a step of training, each with the queries of the task
    asked: int  # sets that are asked at once
    points: tuple[int, ...]  # of the table
    dim: int  # of the points of the table


PAPER = Sizes(UniformSearch(100, queries=16), Index(lookups=7, answer="any"), 64, 512, tuple(PUBLISHED), dim=32)
SMOKE = Sizes(
    UniformSearch(7, queries=2),
    Index(lookups=3, layers=1, width=8, hidden=16, answer="any"),
    sets=4,
    asked=8,
    points=(8,),
    dim=2,
)


def training(sizes: Sizes, device: torch.device, seconds: float, members: Sequence[int] = MEMBERS) -> dict[str, Any]:
    """Steps per second of the plain loops and of the engine, and their ratios."""
    plain = {
        "prompts from the device": rate(_plain(sizes, device, from_host=False), device, seconds),
        "prompts from the host": rate(_plain(sizes, device, from_host=True), device, seconds),
    }
    torch.set_float32_matmul_precision("high")  # a user may know of it
    plain["prompts from the device, TF32"] = rate(_plain(sizes, device, from_host=False), device, seconds)
    torch.set_float32_matmul_precision("highest")
    print(json.dumps(plain, indent=1), flush=True)
    settings, ours = Settings(steps=100_000, batch=sizes.sets, curriculum=None), []
    for count in members:
        found = measure(sizes.model, [Member(sizes.task, seed) for seed in range(count)], settings, device, seconds)
        ratios = {name: found.model_steps_per_s / other for name, other in plain.items()}
        speeds = {"steps_per_s": found.steps_per_s, "model_steps_per_s": found.model_steps_per_s}
        ours.append({"members": count, **speeds, "compile_s": found.compile_s, "gib": found.gib, "ratios": ratios})
        print(json.dumps(ours[-1], indent=1), flush=True)
    about = {"sets": sizes.sets, "precision": settings.on(device, sizes.task).precision}
    return {**about, "plain_steps_per_s": plain, "ours": ours}


def longest(sizes: Sizes, device: torch.device) -> dict[str, Any]:
    """How many kernels a step of one model takes on a GPU, and which take longest."""
    if device.type != "cuda":
        return {}
    settings = Settings(steps=100_000, batch=sizes.sets, curriculum=None)
    found = kernels(sizes.model, [Member(sizes.task)], settings, device)
    rows = [{"name": kernel.name[:80], "calls": kernel.calls, "us": kernel.us} for kernel in found[:LONGEST]]
    calls, us = (sum(each) for each in zip(*((kernel.calls, kernel.us) for kernel in found), strict=True))
    return {"kernels": calls, "us": us, "longest": rows}


def _plain(sizes: Sizes, device: torch.device, from_host: bool) -> Callable[[], None]:
    return baseline_step(sizes.task, _fresh(sizes.model, sizes.task), sizes.sets, device, from_host)


def _fresh(model: Index, task: Search) -> IndexNetwork:
    return model.build(task.inputs, task.outputs, task.length, stream("weights", 0))


def queries(sizes: Sizes, device: torch.device, seconds: float) -> dict[str, Any]:
    """Queries per second: of the model that is trained, and of those of the published table."""
    own = replace(sizes.task, queries=1)
    found = {"ours": {"points": own.size, "lookups": sizes.model.lookups, **_asked(sizes, own, device, seconds)}}
    rows = []
    for count in sizes.points:
        model = replace(sizes.model, lookups=(count - 1).bit_length(), answer="last")
        case = replace(sizes, task=UniformSearch(count, dim=sizes.dim), model=model)
        speeds = _asked(case, case.task, device, seconds)
        rows.append({"points": count, "lookups": model.lookups, **speeds, "published": PUBLISHED.get(count)})
        print(json.dumps(rows[-1]), flush=True)
    return {**found, "batch": sizes.asked, "dim": sizes.dim, "table": rows}


@torch.no_grad()
def _asked(sizes: Sizes, task: UniformSearch, device: torch.device, seconds: float) -> dict[str, float]:
    network = _fresh(sizes.model, task).to(device).eval()
    prompts = task.sample(sizes.asked, seed=0, device=device, dtype=torch.float32)
    tokens = task.encode(prompts.x, prompts.y)
    points, asked = tokens[:, : task.size], tokens[:, task.size :]
    order, _ = network.sort(network.arrange(points)[0], False)
    stored = sorted_by(points, order, None)
    found = {"eager": sizes.asked * rate(lambda: _look_up(network, asked, stored), device, seconds)}
    if device.type == "cuda":
        found["recorded"] = sizes.asked * rate(_recorded(network, asked, stored), device, seconds)
    return {f"queries_per_s_{how}": speed for how, speed in found.items()}


@torch.no_grad()
def _look_up(network: IndexNetwork, asked: Tensor, stored: Tensor) -> None:
    for _ in network.lookups(asked, stored, None):
        pass


def _recorded(network: IndexNetwork, asked: Tensor, stored: Tensor) -> Callable[[], None]:
    """All look-ups as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            _look_up(network, asked, stored)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _look_up(network, asked, stored)
    return graph.replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="by default all")
    parser.add_argument("--scale", choices=["smoke", "paper"], default="paper")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of training")
    parser.add_argument("--members", type=int, nargs="+", default=MEMBERS, help="of populations; each is compiled anew")
    parser.add_argument("--device", help="such as cpu or cuda; by default a GPU if there is one")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device, sizes = arguments.device(options.device), SMOKE if options.scale == "smoke" else PAPER
    out = options.out or (RESULT if options.scale == "paper" else None)
    found = json.loads(out.read_text()) if out is not None and out.exists() else {}
    about = {"scale": options.scale, "task": runs.plain(sizes.task), "model": runs.plain(sizes.model)}
    for part in options.parts:
        if part == "queries":
            measured = queries(sizes, device, options.seconds / 4)
        elif part == "training":
            measured = training(sizes, device, options.seconds, options.members)
        else:
            measured = longest(sizes, device)
        found |= {part: {**measured, **about, "provenance": runs.provenance(device)}}
        print(json.dumps(found[part], indent=1), flush=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(out, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
