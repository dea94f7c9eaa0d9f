"""What the study measures, on models whose answer is known."""

import pytest
import torch

from algoscope.algorithms import OrdinaryLeastSquares
from algoscope.controls import Planted
from algoscope.models import Transformer
from algoscope.reading import fit, open_model
from algoscope.reading.probe import fitting_prompts
from algoscope.studies.higher_order_icl.measures import forgetting, patched, progress, table
from algoscope.tasks import LinearRegression
from algoscope.trace import Trace

TASK = LinearRegression(dim=3, examples=8)


def test_least_squares_forgets_nothing_and_online_descent_does():
    reading = fit(open_model(Planted(TASK, OrdinaryLeastSquares(), width=1), TASK), fitting_prompts(TASK, 200, seed=0))
    rows = forgetting(reading, TASK.sample(50, seed=0), TASK)
    gaps = {row["gap"] for row in rows}
    assert gaps == set(range(1, 5))
    assert all(row["error"] < 1e-2 for row in table({"rows": rows}, "rows", stage="the model"))
    online = [row["error"] for row in table({"rows": rows}, "rows", stage="online gradient descent")]
    assert online[0] < 1e-12  # its last step solves the latest example
    assert online[-1] > 0.05


def test_an_answer_planted_after_the_last_layer_is_the_answer():
    network = Transformer(layers=3, heads=1, width=16).build(
        TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0)
    )
    rows = patched(network, TASK, prompts=20)
    assert [row["stage"] for row in rows] == ["layer 1", "layer 2", "layer 3"]
    assert rows[-1]["survives"] == pytest.approx(1.0, abs=1e-5)
    assert rows[0]["survives"] != pytest.approx(1.0, abs=1e-2)


def test_progress_is_the_error_at_the_last_position():
    prompts = TASK.sample(100, seed=0)
    values = torch.stack([torch.zeros_like(prompts.y), prompts.y / 2, prompts.y])
    rows = progress(Trace("three", values, (0, 1, 2), prompts))
    power = float(prompts.y[:, -1].square().mean()) / TASK.power
    assert [row["error"] for row in rows] == pytest.approx([power, power / 4, 0.0], rel=1e-4)
    assert rows[1]["better"] == pytest.approx(0.75 * power, rel=1e-4)
    assert rows[1]["low"] < rows[1]["error"] < rows[1]["high"]
