"""Steps brought to the size at which a stage is read: several targets against scikit-learn, one against a formula."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as Judge
from torch import Tensor

import algoscope as ag
from algoscope.matching.calibration import BLOCKS, Calibration, blocks
from algoscope.models import Transformer
from algoscope.reading import fit, open_model
from algoscope.reading.probe import fitting_prompts

BATCH = 203  # blocks of different sizes


def read_and_columns(task: ag.Task, algorithm: ag.Algorithm) -> tuple[Tensor, Tensor]:
    """What probes read from the stages of an untrained network, and the steps of an algorithm."""
    network = Transformer(layers=1, heads=1, width=8).build(
        task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0)
    )
    prompts = task.sample(BATCH, seed=0)
    read = fit(open_model(network, task), fitting_prompts(task, 200, seed=1)).read(prompts)
    steps = algorithm.trace(prompts).values
    return read, steps.reshape(-1, *prompts.target_columns.shape).movedim(0, 2)


@pytest.fixture(scope="module")
def of_several_targets() -> tuple[Tensor, Tensor]:
    task = ag.tasks.ChainOfThought(dim=3, examples=3, depth=2)
    return read_and_columns(task, ag.algorithms.OnFeatures(ag.algorithms.GradientDescent(3, rate=0.05), task))


@pytest.fixture(scope="module")
def of_one_target() -> tuple[Tensor, Tensor]:
    return read_and_columns(ag.tasks.LinearRegression(dim=3, examples=8), ag.algorithms.GradientDescent(3))


def parts(block: int) -> tuple[Tensor, Tensor]:
    """Which prompts a calibration is for, and which it is fitted to: all, for prompts of no block."""
    inside = blocks(BATCH) == block
    return (inside, ~inside) if block < BLOCKS else (~inside, ~inside)


def test_blocks_are_runs_of_about_one_size():
    assert blocks(BATCH).diff().min() == 0
    assert blocks(BATCH).bincount().tolist() == [41, 41, 40, 41, 40]


@pytest.mark.parametrize("block", range(BLOCKS + 1))
def test_several_targets_are_calibrated_as_scikit_learn_does(of_several_targets, block):
    read, columns = of_several_targets
    calibrate, (inside, fitted) = Calibration(read, columns, blocks(BATCH)), parts(block)
    for stage, wanted in enumerate(read[:, fitted].flatten(1, 2).numpy()):
        found = calibrate(stage, columns[inside], block)
        for step, ours in enumerate(found.unbind(2)):
            judge = Judge().fit(columns[fitted, :, step].flatten(0, 1).numpy(), wanted)
            expected = judge.predict(columns[inside, :, step].flatten(0, 1).numpy())
            np.testing.assert_allclose(ours.flatten(0, 1).numpy(), expected, atol=1e-8)
        np.testing.assert_allclose(calibrate.nothing(stage, block).numpy(), wanted.mean(0), atol=1e-10)


@pytest.mark.parametrize("block", range(BLOCKS + 1))
def test_one_target_gets_a_factor_at_each_position(of_one_target, block):
    read, columns = of_one_target
    calibrate, (inside, fitted) = Calibration(read, columns, blocks(BATCH)), parts(block)
    steps, rest = columns[inside].numpy(), columns[fitted, ..., 0].numpy()
    for stage, wanted in enumerate(read[:, fitted, :, 0].numpy()):
        with np.errstate(invalid="ignore"):
            factors = (wanted[..., None] * rest).sum(0) / np.square(rest).sum(0)
        expected = np.where(np.isnan(factors), 0.0, factors)[..., None] * steps  # a step that is zero stays zero
        np.testing.assert_allclose(calibrate(stage, columns[inside], block).numpy(), expected, atol=1e-12)
        assert calibrate.nothing(stage, block).tolist() == [0.0]


@pytest.mark.parametrize("targets", ["of_one_target", "of_several_targets"])
def test_some_columns_are_calibrated_as_among_all(targets, request):
    read, columns = request.getfixturevalue(targets)
    calibrate = Calibration(read, columns, blocks(BATCH))
    for part in (slice(1, 3), [3, 0]):
        assert torch.equal(calibrate(1, columns[:, :, part], 2, part), calibrate(1, columns, 2)[:, :, part])
    assert torch.equal(calibrate(1, columns), calibrate(1, columns, BLOCKS))


def test_an_exact_planted_step_comes_back_as_that_step(of_one_target, of_several_targets):
    """In a unit that depends on the position; and with its coordinates mixed and shifted."""
    _, columns = of_one_target
    units = torch.arange(1, columns.shape[1] + 1)[:, None] / 10.0
    _, vectors = of_several_targets
    mixed = vectors[:, :, 2] @ torch.tensor([[2.0, 1, 0], [0, -1, 1], [1, 0, 1]], dtype=torch.float64) + 0.5
    for own, planted in ((columns, units * columns[:, :, 2]), (vectors, mixed)):
        calibrate, block = Calibration(planted[None], own, blocks(BATCH)), blocks(BATCH)
        for k in range(BLOCKS):
            found = calibrate(0, own[block == k], k)[:, :, 2]
            torch.testing.assert_close(found, planted[block == k], rtol=0, atol=1e-10)
