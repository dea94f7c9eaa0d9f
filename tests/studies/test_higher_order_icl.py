"""What the study measures, on models whose answer is known."""

from pathlib import Path

import pytest
import torch

from algoscope.algorithms import Newton, OrdinaryLeastSquares
from algoscope.controls import Planted
from algoscope.models import Transformer
from algoscope.reading import LinearProbe, fit, open_model
from algoscope.reading.probe import fitting_prompts
from algoscope.studies import study
from algoscope.studies.higher_order_icl.measures import TABLES, forgetting, newton_in_32_bits, patched, progress, table
from algoscope.studies.higher_order_icl.published import beside_published, table_of
from algoscope.tasks import LinearRegression
from algoscope.trace import Trace

TASK = LinearRegression(dim=3, examples=8)


def test_least_squares_forgets_nothing_and_online_descent_does():
    reading = fit(
        open_model(Planted(OrdinaryLeastSquares(), TASK, reader=LinearProbe(1)), TASK),
        fitting_prompts(TASK, 200, seed=0),
    )
    rows = forgetting(reading, TASK.sample(50, seed=0))
    gaps = {row["gap"] for row in rows}
    assert gaps == set(range(1, 5))
    assert all(row["error"] < 1e-2 for row in table({"rows": rows}, "rows", stage="the model"))
    online = [row["error"] for row in table({"rows": rows}, "rows", stage="online gradient descent")]
    assert online[0] < 1e-12  # its last step solves the latest example
    assert online[-1] > 0.05


def test_an_answer_patched_in_after_the_last_layer_is_the_answer():
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


def test_newton_in_32_bits_is_newton_until_rounding_takes_over():
    prompts = LinearRegression(dim=20, examples=40).sample(20, seed=0)
    exact, rounded = Newton(24, start="2/frobenius").trace(prompts), newton_in_32_bits(prompts, 24)
    assert rounded.stages == tuple(range(1, 25))
    off = (rounded.values - exact.select(rounded.stages).values).square().mean(1) / 20
    assert float(off[:10].max()) < 1e-8
    assert float(off[:, 2:].max()) < 1e-8
    assert float(off[23, 1]) > 1.0  # S of rank one is on the edge of convergence: r = −1, and rounding doubles


def test_cells_stand_beside_the_published_ones():
    stages = ["embedding", *(f"layer {k}" for k in range(1, 13))]
    flat = [[0.5, 0.5]] * len(stages)
    found = {"steps": [1, 100], "similarity": flat, "low": flat, "high": flat}
    model = {"published": {"stages": stages, "maps": {TABLES["gd"]: found}}}
    cells = list(beside_published(model, "gd"))
    assert len(cells) == 24
    assert cells[0] == {"layer": 1, "step": 1, "theirs": 0.99, "off": -0.49, "similarity": 0.5, "low": 0.5, "high": 0.5}
    assert (len(table_of("newton")), len(table_of("gd"))) == (23 * 12, 31 * 12)
    model["published"]["stages"] = stages[:5]
    assert not list(beside_published(model, "gd"))


RESULTS = Path(__file__).parents[2] / "results" / "higher-order-icl"


@pytest.fixture(scope="module")
def numbers():
    return study.read(RESULTS)[1]["runs"]


def test_the_paper_scale_models_are_as_good_as_the_paper_s(numbers):
    assert [len(numbers[run]) for run in ("transformer", "ill-conditioned", "one head")] == [3, 3, 3]
    for model in numbers["transformer"].values():
        assert model["provenance"]["device"].startswith("cuda")
        *_, errors = model["verdict"]["errors_by_position"]["the model"].values()
        assert errors[40] <= 1e-3
        assert errors[20] <= 0.04
    for model in numbers["ill-conditioned"].values():
        assert model["published"]["maps"]["least squares"]["low"][-1][0] >= 0.98
