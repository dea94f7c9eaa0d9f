"""What the reference side costs at the size of the paper, and how that compares with the peers' way of computing it.

The published scripts restart every method for every number of steps, and loop over sequences and prefixes in Python.
Here that is done on a slice of the prompts, in the same run and on the same machine, and scaled by the number of
sequences.

    python -m benchmarks.reference_side            writes results/benchmarks/reference.json
"""

import json
import resource
import time
from pathlib import Path

import torch

from algoscope.algorithms import (
    ConjugateGradients,
    GradientDescent,
    Newton,
    OnlineGradientDescent,
    OrdinaryLeastSquares,
)
from algoscope.matching import compare
from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts

SEQUENCES, SLICE = 1280, 1
NEWTON_STEPS = list(range(25))
GRADIENT_STEPS = [0, *(2**k for k in range(13))]
CONJUGATE_STEPS = list(range(41))


def ours(prompts: Prompts) -> dict[str, float]:
    """Seconds for all traces, and for the comparison of each with each by each measure, with bootstrap."""
    begin = time.perf_counter()
    methods = [Newton(NEWTON_STEPS), GradientDescent(GRADIENT_STEPS), ConjugateGradients(CONJUGATE_STEPS)]
    methods = [*methods, OnlineGradientDescent(), OrdinaryLeastSquares()]
    traces = [method.trace(prompts) for method in methods]
    spent = {"traces": time.perf_counter() - begin}
    for measure in ("errors", "distance", "weights"):
        begin = time.perf_counter()
        for a in traces:
            for b in traces:
                compare(a, b, measure=measure)
        spent[measure] = time.perf_counter() - begin
    return spent


def peers(prompts: Prompts) -> float:
    """Seconds for the same traces: a fresh run for every number of steps, prefix and sequence."""
    begin = time.perf_counter()
    for x, y in zip(prompts.x, prompts.y, strict=True):
        for t in range(1, prompts.positions):
            seen, targets = x[:t], y[:t]
            for steps in NEWTON_STEPS:
                newton(seen, targets, steps)
            for steps in GRADIENT_STEPS:
                gradient_descent(seen, targets, steps)
            for steps in CONJUGATE_STEPS:
                conjugate_gradients(seen, targets, steps)
            online_gradient_descent(seen, targets)
            torch.linalg.lstsq(seen, targets[:, None], driver="gelsd")
    return time.perf_counter() - begin


def newton(x: torch.Tensor, y: torch.Tensor, steps: int) -> torch.Tensor:
    s = x.T @ x
    inverse = s / torch.linalg.norm(s @ s.T)
    for _ in range(steps):
        inverse = 2 * inverse - inverse @ s @ inverse
    return inverse @ x.T @ y


def gradient_descent(x: torch.Tensor, y: torch.Tensor, steps: int) -> torch.Tensor:
    s, b, w = x.T @ x, x.T @ y, torch.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(steps):
        w = w - 0.01 * (s @ w - b)
    return w


def conjugate_gradients(x: torch.Tensor, y: torch.Tensor, steps: int) -> torch.Tensor:
    s, r, w = x.T @ x, x.T @ y, torch.zeros(x.shape[1], dtype=x.dtype)
    p, squared = r, r @ r
    for _ in range(steps):
        if squared < 1e-20:
            break
        length = squared / (p @ s @ p)
        w, r = w + length * p, r - length * (s @ p)
        squared, before = r @ r, squared
        p = r + squared / before * p
    return w


def online_gradient_descent(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    w = torch.zeros(x.shape[1], dtype=x.dtype)
    for example, target in zip(x, y, strict=True):
        w = w - (example @ w - target) / (example @ example) * example
    return w


def main() -> None:
    task = LinearRegression(dim=20, examples=40)
    prompts = task.sample(SEQUENCES, seed=0)
    spent = ours(prompts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    slow = peers(task.sample(SLICE, seed=1)) * SEQUENCES / SLICE
    spent["in all"] = sum(spent.values())
    result = {
        "what": "Newton 0..24, GD on 0 and 2^0..2^12, CG 0..40, OGD and OLS on 1,280 sequences of 41 positions, d = 20",
        "ratio_traces": round(slow / spent["traces"]),
        "ratio_traces_and_comparisons_by_errors": round(slow / (spent["traces"] + spent["errors"])),
        "share_of_60_s": {part: round(seconds / 60, 2) for part, seconds in spent.items()},
        "share_of_4_gib": round(peak / 4, 2),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    path = Path("results/benchmarks/reference.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
