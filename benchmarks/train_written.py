"""Does gradient descent keep an exact solution? Training from constructions, at rates from safe to ruinous.

    python -m benchmarks.train_written

takes three minutes, and prints for each construction and rate the normalized error after the last example, and how far
the answers have moved from those as written.
"""

import tempfile

import torch

import algoscope as ag
from algoscope.constructions import Written

CASES = {
    "causal_newton": ((3, 8, 8, 3e-4), 200, (1e-10, 1e-9, 1e-8)),
    "newton": ((3, 8, 8, 3e-4), 5, (1e-9, 1e-8)),
    "gradient_descent": ((2, 3, 2, 0.05), 5, (1e-17, 1e-16, 1e-15)),
    "looped_newton": ((2, 3, 2, 1e-2), 5, (1e-22, 1e-19, 1e-16)),
}  # what each is given, steps of AdamW, and rates
TESTED = 2000


@torch.no_grad()
def answers(network: torch.nn.Module, task: ag.tasks.LinearRegression) -> tuple[torch.Tensor, torch.Tensor]:
    """At the last token, and the targets."""
    prompts = task.sample(TESTED, seed=1)
    return network(task.encode(prompts.x, prompts.y))[:, -1, 0], prompts.y[:, -1]


def trained(name: str, rate: float, task: ag.tasks.LinearRegression) -> torch.nn.Module:
    given, steps, _ = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        run = ag.train(
            task, Written(name, given), steps, learning_rate=rate, out=folder, device="cpu",
            batch=64, precision="fp64", optimizer="adamw", curriculum=None, warmup=0, log_every=steps,
        )  # fmt: skip
        return ag.load(run.path)


def main() -> None:
    for name, (given, steps, rates) in CASES.items():
        task = ag.tasks.LinearRegression(*given[:2])
        exact, y = answers(getattr(ag.constructions, name)(*given), task)
        print(f"{name}{given}: error {float((exact - y).square().mean() / task.power):.3g} as written")
        for rate in rates:
            try:
                found, _ = answers(trained(name, rate, task), task)
            except (ValueError, FloatingPointError, RuntimeError) as error:
                print(f"  {steps} steps at {rate:g}: {error}")
                continue
            error, moved = float((found - y).square().mean() / task.power), float((found - exact).norm() / exact.norm())
            print(f"  {steps} steps at {rate:g}: error {error:.3g}, moved by {moved:.2g}", flush=True)


if __name__ == "__main__":
    main()
