"""The instrument on steps of several coordinates, which a probe mixes and shifts."""

import pytest
import torch

import algoscope as ag
from algoscope.algorithms import ConjugateGradients, GradientDescent, OnFeatures
from algoscope.instrument import Instrument

CHAINS = ag.tasks.ChainOfThought(dim=4, examples=15, depth=2)


def chains(steps, rate=0.012):
    return OnFeatures(GradientDescent(steps, rate=rate), CHAINS)


def holding(algorithm, noise):
    """A function to states that are a mixed and shifted step, with noise."""

    def show(tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        whole = torch.nn.functional.pad(tokens, (0, 0, 0, 1)).unflatten(1, (16, 3))
        values = algorithm.trace(ag.Prompts(whole[:, :, :2].flatten(1, 2), whole[:, :, 1:].flatten(1, 2))).values
        generator = torch.Generator().manual_seed(int(tokens.abs().sum() * 1e6))
        mixing = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        states = torch.ones(len(values), *tokens.shape, dtype=torch.float64)
        noises = torch.randn(values.shape, generator=generator, dtype=torch.float64)
        states[:, :, list(CHAINS.answers)] = (values + noise * noises) @ mixing + 3
        return {f"layer {k + 1}": state for k, state in enumerate(states)}

    return show


@pytest.fixture(scope="module")
def of_chains() -> Instrument:
    others = [OnFeatures(known, CHAINS) for known in (ConjugateGradients(3), ag.algorithms.OrdinaryLeastSquares())]
    return Instrument(CHAINS, [chains(10), *others], 300, 300, others=())


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_steps_of_several_coordinates_with_a_mean_are_named_and_are_all_there_is(of_chains, noise):
    """A probe mixes and shifts them, which no other step explains."""
    verdict = of_chains.identify(holding(chains([1, 2, 3]), noise))
    assert [found.agreed for found in verdict.stages] == [((chains(10).name, step),) for step in (1, 2, 3)]
    assert all(found.certain for found in verdict.stages)
    if not noise:
        assert all(found.candidates[0].similarity > 1 - 1e-9 for found in verdict.stages)


def test_other_steps_of_several_coordinates_and_constants_are_not_claimed(of_chains):
    verdict = of_chains.identify(holding(chains([2, 3, 4], rate=0.006), 0.0))
    assert not any(found.misfit.noise for found in verdict.stages)
    constant = of_chains.identify(holding(chains([0]), 0.0))
    noise = of_chains.identify(holding(chains([0]), 1.0))
    assert all(found.null for found in (*constant.stages, *noise.stages))
