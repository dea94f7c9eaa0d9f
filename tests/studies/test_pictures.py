"""What is measured of pictures of numbers, where the answer is known."""

import pytest
import torch
from torch import nn

from algoscope.models import Index
from algoscope.models.index import IndexNetwork
from algoscope.reading import features
from algoscope.studies import study
from algoscope.studies.data_structures.claims import CLAIMS
from algoscope.studies.data_structures.findings import pictures_in_order
from algoscope.studies.data_structures.measures import measure
from algoscope.studies.data_structures.pictures import by_number
from algoscope.studies.data_structures.published import numbers as published
from algoscope.studies.data_structures.references import MODEL, RANGES, UNTRAINED, searches
from algoscope.studies.data_structures.trainings import FOUR, HITTERS, NUMBERS, one
from algoscope.studies.study import Training
from algoscope.tasks import NumberSearch, NumberStream, UniformSearch

TASK = NumberSearch(8, 20, queries=3, digits=2)
MODEL_OF_PICTURES = Index(2, layers=1, width=8, hidden=8, picture=(8, 16, 2, 2))


class Reader(nn.Module):
    """Stands for an encoder: knows the numbers, and turns them into given values."""

    def __init__(self, values) -> None:
        super().__init__()
        self.values = values

    def forward(self, tokens):
        return self.values[: len(tokens)].to(tokens.dtype)


def index(task, model: Index) -> IndexNetwork:
    return model.build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0))


def reading(values, prompts):
    network = index(TASK, MODEL_OF_PICTURES)
    network.encoder = Reader(torch.stack(values, -1))  # pyright: ignore[reportAttributeAccessIssue]
    return by_number(network, TASK, prompts)


def test_features_that_fall_with_the_number_are_as_good_as_any():
    prompts = TASK.sample(30, seed=0)
    number = prompts.x[..., 0]
    noise = torch.randn(number.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    exact, other = reading([-3 * number, 0 * number], prompts), reading([noise, 0 * noise], prompts)
    assert exact["in order"]["value"] == 1.0
    assert other["in order"]["value"] == pytest.approx(0.5, abs=0.1)
    assert pictures_in_order({"pictures": exact}) is not None
    assert pictures_in_order({}) is None
    for row in exact["features"]:
        turned = abs(row["value"])  # of two features, along their main direction, whose sign says nothing
        assert turned == pytest.approx(3 * row["number"], rel=1e-5, abs=1e-5)
        assert row["n"] == int((number == row["number"]).sum())


def test_features_are_those_of_the_encoder():
    network, prompts = index(TASK, MODEL_OF_PICTURES), TASK.sample(40, seed=0)
    found = features(network, TASK, prompts)
    assert found.shape == (40, TASK.length, 2)
    assert network.encoder is not None
    with torch.no_grad():
        own = network.encoder(TASK.encode(prompts.x, prompts.y)[35:36].float())
    torch.testing.assert_close(found[35:36], own)


@pytest.mark.usefixtures("as_users_run_it")
def test_only_an_index_of_pictures_has_features():
    task = UniformSearch(4)
    with pytest.raises(ValueError, match="model must be an Index of pictures"):
        features(index(task, Index(1, layers=1, width=8, hidden=8)), task, task.sample(2, seed=0))


def test_pictures_are_measured_with_digits_that_were_not_trained_with():
    training = one(NUMBERS, TASK, MODEL_OF_PICTURES, 10, 1e-3)
    found = measure(training, index(TASK, MODEL_OF_PICTURES), "smoke")
    test = NumberSearch(8, 20, queries=3, digits=2, split="test")
    numbers = by_number(index(TASK, MODEL_OF_PICTURES), test, test.sample(200, seed=0, purpose="study"))
    assert found["pictures"]["features"] == numbers["features"]
    assert {row["what"] for row in found["found"]} >= {MODEL, RANGES, UNTRAINED}
    assert RANGES not in searches(NumberSearch(7, 20, digits=2), 2)  # fewer points than cells


def test_runs_of_pictures_are_at_the_published_sizes():
    runs = {run.name: run for run in study.find("data-structures").runs["paper"]}
    tasks = {name: run.task for name, run in runs.items() if isinstance(run, Training)}
    mnist_files = {"folder": "$ALGOSCOPE_MNIST", "shift": 2}
    assert tasks[HITTERS] == NumberStream(100, 100, **mnist_files)
    assert tasks[NUMBERS] == tasks[f"{NUMBERS}, {FOUR}"] == NumberSearch(50, 200, queries=16, **mnist_files)
    assert {NUMBERS, HITTERS} <= {number.run for number in published()}
    ids = [claim.id for claim in CLAIMS]
    assert len(ids) == len(set(ids))
