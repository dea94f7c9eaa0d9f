"""Training on a GPU at the size of the papers: speed against the peers' loop, cost against size, time to quality.

    python -m benchmarks.training speed      speeds, compilation, memory, where the time goes
    python -m benchmarks.training quality    seconds to an error of 1e-3 and of 3e-4, one seed after another
    python -m benchmarks.training floors     the error in bf16, tf32 and fp32 after equal steps
    python -m benchmarks.training whole      seconds of `ag.train`, with all that it writes on the way

Each writes its part of results/benchmarks/training.json, with its provenance, and leaves the other parts as they are.
Several that are named after one another are one run.
"""

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import torch
from torch.func import functional_call

from algoscope import runs
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Member, Settings, train
from algoscope.training.bench import Speed, measure, measure_baseline
from algoscope.training.engine import prepare
from algoscope.training.population import Population
from benchmarks.kernels import by_kind, kernels
from benchmarks.peers import Peers, ceilings

RESULT = Path("results/benchmarks/training.json")
TASK = LinearRegression(dim=20, examples=40)
MODEL = Transformer(layers=12, heads=8, width=256)
STEPS = 22_000  # of the schedule, on which both goals lie
GOALS = {"1e-3": 1e-3, "3e-4": 3e-4}  # errors to reach
HELD_OUT = 1280


def speed(device: torch.device, seconds: float) -> dict[str, Any]:
    """All speeds in one run."""
    settings = Settings(steps=100_000, precision="bf16", optimizer="adamw")  # as the peers'
    baseline = measure_baseline(TASK, Peers(TASK, MODEL), settings.batch, device, seconds)
    print("peers", baseline, flush=True)
    members, batches = [], []
    for count in (1, 4, 16, 64, 128):
        members.append(measure(MODEL, population(count), settings, device, seconds))
        print(members[-1], flush=True)
    muon = dataclasses.replace(settings, optimizer="muon")
    with_muon = [measure(MODEL, population(count), muon, device, seconds) for count in (1, 32)]
    print("muon", with_muon, flush=True)
    for batch in (128, 256):
        batches.append(measure(MODEL, population(1), dataclasses.replace(settings, batch=batch), device, seconds))
        print(batch, batches[-1], flush=True)
    single, best = members[0], max(members, key=lambda found: found.model_steps_per_s)
    limits = ceilings(device)
    return {
        "peer_steps_per_s": baseline.steps_per_s,
        "single_steps_per_s": single.steps_per_s,
        "population_model_steps_per_s": best.model_steps_per_s,
        "population_members": best.members,
        "with_muon": {str(found.members): found.model_steps_per_s for found in with_muon},
        "compile_s": [{"members": found.members, "seconds": found.compile_s} for found in [*members, *with_muon]],
        "ceilings": limits,
        "single": shares(single, limits, settings, device),
        "population": shares(best, limits, settings, device),
        "cost_of_members": [row(found, found.members, settings.batch) for found in members],
        "cost_of_batch": [
            row(found, 1, batch) for found, batch in zip([single, *batches], (64, 128, 256), strict=True)
        ],
    }


def population(members: int) -> list[Member]:
    return [Member(TASK, seed) for seed in range(members)]


def row(found: Speed, members: int, batch: int) -> dict[str, float]:
    return {"members": members, "batch": batch, "ms_per_step": 1000 / found.steps_per_s, "gib": found.gib}


def shares(found: Speed, limits: dict[str, float], settings: Settings, device: torch.device) -> dict[str, Any]:
    """Which part of the ceilings was reached, and which kernels the time went to."""
    tokens, width, layers = settings.batch * TASK.length, MODEL.width, MODEL.layers
    flops = 6 * layers * tokens * (12 * width**2 + TASK.length * width)  # causal attention: half of the square
    silent = tokens - settings.batch * TASK.positions  # those that do not answer leave the last block early
    flops -= 6 * 9 * width**2 * silent
    # Bytes that the kernels of a block must move for a token, as they are cut: stream in 32 bits, the rest in 16.
    # Forward 80, backward 134 bytes for each unit of width. The optimizer reads and writes 38 bytes a parameter.
    moved = 214 * layers * tokens * width + 38 * 12 * layers * width**2
    per_s = found.model_steps_per_s
    return {
        "members": found.members,
        "share_of_bf16_peak": flops * per_s / limits["tflops"] / 1e12,
        "share_of_bandwidth": moved * per_s / limits["terabytes_per_s"] / 1e12,
        "time_by_kernel": by_kind(kernels(MODEL, population(found.members), settings, device)),
    }


class Quality:
    """Trains one seed after another in one program, and measures the error on held-out prompts."""

    def __init__(self, steps: int, precision: Literal["bf16", "tf32", "fp32"], device: torch.device) -> None:
        self.settings, self.device = Settings(steps=steps, precision=precision), device
        begin = time.perf_counter()
        self.trained = Population.of(MODEL, population(1), self.settings, device)
        self.advance = prepare(self.trained)
        torch.cuda.synchronize()
        self.compile_s = time.perf_counter() - begin
        self.prompts = TASK.sample(HELD_OUT, seed=10**6, device=device, dtype=torch.float32)

    def run(self, seed: int, every: int = 1000) -> dict[str, Any]:
        fresh = Population.of(MODEL, [Member(TASK, seed)], self.settings, self.device)
        self.trained.state.restore(fresh.state.tensors())
        self.trained.generators[0].set_state(fresh.generators[0].get_state())
        spent, curve = 0.0, []
        for done in range(every, self.settings.steps + 1, every):
            begin = time.perf_counter()
            for _ in range(every):
                self.advance()
            torch.cuda.synchronize()
            spent += time.perf_counter() - begin
            curve.append({"step": done, "seconds": spent, "error": self.error()})
            if done % (4 * every) == 0:
                print(seed, done, f"{spent:.1f} s", curve[-1]["error"], flush=True)
        print(seed, curve[-1], flush=True)
        return {"seed": seed, "compile_s": self.compile_s, "as_trained": self.error(as_trained=True), "curve": curve}

    @torch.no_grad()
    def error(self, as_trained: bool = False) -> float:
        """At t = 40, in 32 bits, as a user loads the weights, or in the precision of training."""
        layout, rows = self.trained.layout, self.trained.state.parameters
        tensors = layout.tensors(layout.low_and_high(rows)) if as_trained else layout.full(rows)
        found = [
            (TASK.read(functional_call(self.trained.network, tensors, (TASK.encode(x, y),))) - y)[:, -1].square()
            for x, y in zip(self.prompts.x.split(256), self.prompts.y.split(256), strict=True)
        ]
        return float(torch.cat(found).mean()) / TASK.power


def quality(device: torch.device, seeds: list[int]) -> dict[str, Any]:
    bench = Quality(STEPS, "bf16", device)
    found = [bench.run(seed) for seed in seeds]
    times = {f"seconds_to_{goal}": [first(run["curve"], error) for run in found] for goal, error in GOALS.items()}
    return {**times, "quality": found}


def first(curve: list[dict[str, float]], error: float) -> float | None:
    """Seconds until the error was first reached."""
    return next((round(at["seconds"], 1) for at in curve if at["error"] <= error), None)


def floors(device: torch.device, precisions: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Seed 0 in other precisions, for as many steps; bf16 is in `quality`."""
    found = dict(known.get("floors", {}))
    for precision in precisions:
        found[precision] = Quality(STEPS, precision, device).run(0)  # pyright: ignore[reportArgumentType]
    return {"floors": found}


def whole(device: torch.device) -> dict[str, Any]:
    """Seed 0 as a user trains it: looks at the device, metrics, and a checkpoint every thousand steps."""
    with tempfile.TemporaryDirectory() as folder:
        run = train(TASK, MODEL, STEPS, out=folder, device=device, progress=False)
        size = runs.Folder(run.path).state.stat().st_size
    return {"whole": {"steps": STEPS, "seconds_with_compilation": run.seconds, "checkpoint_mb": size / 1e6}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=["speed", "quality", "floors", "whole"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--precisions", nargs="+", default=["tf32", "fp32"])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of speed")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    device = torch.device("cuda")
    for part in options.parts:
        written = options.out if options.out.exists() else RESULT
        known = json.loads(written.read_text()) if written.exists() else {}
        if part == "speed":
            found = speed(device, options.seconds)
        elif part == "quality":
            found = quality(device, options.seeds)
        elif part == "whole":
            found = whole(device)
        else:
            found = floors(device, options.precisions, known)
        names = [f"floors, {name}" for name in options.precisions] if part == "floors" else [part]
        stamp = {"provenance": {**known.get("provenance", {}), **dict.fromkeys(names, runs.provenance(device))}}
        options.out.write_text(json.dumps({**known, **found, **stamp}, indent=1) + "\n")
        told = {key: value for key, value in found.items() if not key.startswith(("quality", "floors"))}
        print(json.dumps(told, indent=1), flush=True)


if __name__ == "__main__":
    main()
