"""Every construction is saved and loaded, trains further from its exact solution and is drawn, like any other model."""

import html
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import algoscope as ag
from algoscope.algorithms import GradientDescent, OnFeatures
from algoscope.constructions import Written
from algoscope.constructions.written import WRITTEN
from algoscope.instrument import Instrument
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.tasks.graphs import Connectivity
from algoscope.training import Configuration

PAIRS, FEATURES, CHAINS = LinearRegression(2, 3), RepresentationRegression(2, 3, depth=2), ChainOfThought(2, 3, 2)
SERIES = AutoregressiveRepresentation(2, 4, 2, 1, gain=0.3)
# A task with tokens of the right form, what the function is given, and a rate at which AdamW keeps the answers. What a
# blank token holds comes back e^40 times as large, so those that have one bear next to nothing: at FRAGILE only weights
# that are zero change at all, and these are what matters.
SOLID, FRAGILE = 1e-9, 1e-22
CASES = {
    "sum_of_tokens": (AutoregressiveRepresentation(2, 3, 2), (2, 4), SOLID),
    "newton": (PAIRS, (2, 3, 2, 1e-2), SOLID),
    "moments": (PAIRS, (2, 3, (0.1, -0.01)), SOLID),
    "recursion": (PAIRS, (2, 3, 0.0, ((0.0, 0.0, 0.0, 0.1), (1.0, -0.1, 0.2, 0.1))), SOLID),
    "gradient_descent": (PAIRS, (2, 3, 2, 0.05), FRAGILE),
    "representation_regression": (FEATURES, (FEATURES.features.matrices(), 3, 2, 0.05), FRAGILE),
    "autoregression": (SERIES, (SERIES.features.matrices(), 2, 4, 2, 0.05), FRAGILE),
    "chain_of_thought": (CHAINS, (2, 3, 2, 2, 0.05), FRAGILE),
    "looped_newton": (PAIRS, (2, 3, 2, 1e-2), FRAGILE),
    "decoder_gradient_descent": (PAIRS, (2, 3, 2, 0.05), FRAGILE),
    "causal_newton": (PAIRS, (2, 3, 1, 1e-2), SOLID),
    "connectivity": (Connectivity(8, largest=3), (8, 1), SOLID),
}
EVERY = pytest.mark.parametrize("name", CASES)
OPTIONS = {"batch": 4, "precision": "fp64", "optimizer": "adamw", "curriculum": None, "log_every": 5}


def train(out, name, rate):
    task, given, _ = CASES[name]
    return ag.train(task, Written(name, given), 5, learning_rate=rate, out=out, device="cpu",
                    warmup=0, checkpoint_every=5, **OPTIONS)  # fmt: skip


def answers(network, name):
    """At the last token, where all of them answer."""
    task = CASES[name][0]
    prompts = task.sample(6, seed=0)
    with torch.no_grad():
        return network(task.encode(prompts.x, prompts.y))[:, -1]


def test_all_constructions_are_here():
    functions = {name for name in ag.constructions.__all__ if name.islower()}
    assert set(CASES) == set(WRITTEN) == functions - {"anatomy", "beyond_reach", "binary_search", "quasi_orthogonal"}


@EVERY
def test_it_is_saved_and_loaded(name, tmp_path):
    _, given, _ = CASES[name]
    run, exact = train(tmp_path, name, 1e-300), WRITTEN[name](*given)
    network = ag.load(run.path)
    assert Configuration.read(run.path).model == Written(name, given)
    torch.testing.assert_close(answers(network, name), answers(exact, name), rtol=1e-12, atol=1e-14)
    assert network.places == exact.places
    assert network.stages == exact.stages


@EVERY
def test_training_begins_at_the_exact_solution_and_small_steps_keep_it(name, tmp_path):
    _, given, rate = CASES[name]
    network, exact = ag.load(train(tmp_path, name, rate).path), WRITTEN[name](*given)
    pairs = zip(network.parameters(), exact.parameters(), strict=True)
    moved = max(float((a - b).detach().abs().max()) for a, b in pairs)
    assert 0 < moved <= 6 * rate  # five steps of AdamW
    kept, right = answers(network, name), answers(exact, name)
    assert float((kept - right).norm()) <= 1e-4 * float(right.norm())


@pytest.mark.parametrize("name", [name for name in CASES if name != "connectivity"])
def test_it_is_identified_and_drawn(name, tmp_path):
    task, given, _ = CASES[name]
    descent = GradientDescent(3)
    known = [descent if isinstance(task, LinearRegression) else OnFeatures(descent, task)]
    network = ag.load(train(tmp_path, name, 1e-300).path)
    verdict = Instrument(task, known, 20, 20, others=(), positions=task.positions - 1).identify(network)
    page = verdict.save(tmp_path / "page.html").read_text()
    assert all(stage in page for stage in WRITTEN[name](*given).stages if stage != "norm")
    assert html.escape(verdict.text) in page


def test_the_command_line_identifies_it(tmp_path):
    path = train(tmp_path, "causal_newton", 1e-15).path
    program = [str(Path(sys.executable).with_name("algoscope")), "identify", str(path)]
    few = ["--prompts", "30", "--fit-on", "30"]
    done = subprocess.run([*program, *few], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (path / "report.html").exists()


@pytest.mark.usefixtures("as_users_run_it")
def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="function must be one of 'sum_of_tokens'"):
        Written("sorting", (1,))
    with pytest.raises(ValueError, match="arguments in order, not by name"):
        Written("newton", {"dim": 2, "examples": 3})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="the task has"):
        Written("causal_newton", (2, 3, 1, 1e-3)).build(5, 1, 9, torch.Generator())
