"""A construction trains further, and is saved and loaded, like any other model."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import algoscope as ag
from algoscope.constructions import Written, causal_newton
from algoscope.training import Configuration

TASK, GIVEN = ag.tasks.LinearRegression(dim=2, examples=3), (2, 3, 1, 1e-3)
OPTIONS = {"batch": 4, "precision": "fp64", "optimizer": "adamw", "curriculum": None, "log_every": 5}


def train(out, rate):
    return ag.train(TASK, Written("causal_newton", GIVEN), 5, learning_rate=rate, out=out, device="cpu",
                    warmup=0, checkpoint_every=5, **OPTIONS)  # fmt: skip


def test_it_is_saved_and_loaded_with_its_positions_and_its_names(tmp_path):
    run, exact = train(tmp_path, 1e-15), causal_newton(*GIVEN)
    network = ag.load(run.path)
    assert Configuration.read(run.path).model == Written("causal_newton", GIVEN)
    prompts = TASK.sample(6, seed=0)
    tokens = TASK.encode(prompts.x, prompts.y)
    with torch.no_grad():
        torch.testing.assert_close(network(tokens), exact(tokens), rtol=1e-9, atol=1e-9)
    assert network.places == exact.places


def test_the_command_line_identifies_it(tmp_path):
    path = train(tmp_path, 1e-15).path
    program = [
        str(Path(sys.executable).with_name("algoscope")),
        "identify",
        str(path),
        "--prompts",
        "30",
        "--fit-on",
        "30",
    ]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (path / "report.html").exists()


def test_training_begins_where_it_is(tmp_path):
    run, exact = train(tmp_path, 1e-6), causal_newton(*GIVEN)
    pairs = zip(ag.load(run.path).parameters(), exact.parameters(), strict=True)
    moved = [float((a - b).detach().abs().max()) for a, b in pairs]
    assert 0 < max(moved) <= 6e-6  # five steps of AdamW


@pytest.mark.usefixtures("as_users_run_it")
def test_what_does_not_fit_is_named(tmp_path):
    with pytest.raises(ValueError, match="function must be one of 'newton'"):
        Written("sorting", (1,))
    with pytest.raises(ValueError, match="the task has"):
        Written("causal_newton", GIVEN).build(5, 1, 9, torch.Generator())
