"""What a network says about graphs, against what it must say."""

import math

import nodes
import pytest
import torch

import algoscope as ag
from algoscope.algorithms import AllConnected, Hops
from algoscope.constructions import connectivity
from algoscope.models import Disentangled, Transformer
from algoscope.reading import accuracy_by_distance, binarize, exact_match, logit_lens
from algoscope.tasks import Connectivity, LinearRegression


def test_accuracy_by_distance_is_that_of_a_plain_count():
    prompts = Connectivity(12, chance=0.12).sample(40, seed=0)
    said = torch.rand(prompts.y.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    found = accuracy_by_distance(said, prompts.x)
    distances = torch.stack([nodes.distances(x) for x in prompts.x])
    right = said == prompts.y.bool()
    for k in range(12):
        own = right[distances == k].double()
        assert int(found.pairs[k]) == len(own)
        assert math.isnan(float(found.accuracy[k])) if not len(own) else found.accuracy[k] == own.mean()
    assert found.apart == right[distances < 0].double().mean()
    assert found.pairs_apart == int((distances < 0).sum())


@pytest.mark.parametrize("hops", [0, 1, 3, 6])
def test_reach_is_how_far_hops_went(hops):
    prompts = Connectivity(16, "paths", parts=3).sample(50, seed=0)
    found = accuracy_by_distance(Hops([hops]).trace(prompts).values[0].bool(), prompts.x)
    assert found.reach() == hops
    assert found.apart == 1.0
    assert accuracy_by_distance(prompts.y.bool(), prompts.x).reach() == int(found.pairs.nonzero()[-1])
    assert accuracy_by_distance(torch.zeros_like(prompts.y).bool(), prompts.x).reach() == -1


def test_all_connected_is_wrong_about_what_is_apart():
    prompts = Connectivity(8).sample(30, seed=0)
    said = AllConnected().trace(prompts).values[0].bool()
    found = accuracy_by_distance(said, prompts.x)
    assert found.apart == 0.0
    assert bool((exact_match(said, prompts.y) == (prompts.y == 1).all(-1).all(-1)).all())


def test_a_graph_matches_only_as_a_whole():
    prompts = Connectivity(6).sample(4, seed=0)
    said = prompts.y.bool().clone()
    said[1, 2, 3] ^= True
    assert exact_match(said, prompts.y).tolist() == [True, False, True, True]


def test_the_lens_reads_the_steps_of_the_construction():
    """Each layer triples the reach, and the instrument's measure names the steps."""
    task = Connectivity(24, "paths", parts=2)
    prompts = task.sample(30, seed=0)
    trace = logit_lens(connectivity(24, 2), task, prompts)
    assert trace.stages == ("embedding", "layer 1", "layer 2")
    assert torch.equal(trace.values, ag.algorithms.Tripling(2).trace(prompts).values)
    match = ag.compare(trace, Hops(steps=23).trace(prompts), measure="agreement")
    assert match.best == (1, 3, 9)


@pytest.mark.parametrize("norm", ["before", "after"])
def test_the_lens_of_the_last_stage_is_what_the_network_says(norm):
    task = Connectivity(6, chance=0.3)
    model = Transformer(2, 1, 16, attention="relu", mask="full", norm=norm, positions="none")
    network, prompts = model.build(6, 6, 6, torch.Generator().manual_seed(0)).double(), task.sample(9, seed=0)
    trace = logit_lens(network, task, prompts)
    with torch.no_grad():
        expected = (network(prompts.x) > 0).double()
    assert torch.equal(trace.values[-1], expected)
    assert trace.stages == ("embedding", "layer 1", "layer 2")


def test_a_fitted_read_out_becomes_answers():
    task = Connectivity(8, largest=3)
    prompts = task.sample(40, seed=0)
    trace = ag.probe(connectivity(8, 1), task, prompts, fit_on=300)
    answers = binarize(trace)
    assert bool(((answers.values == 0) | (answers.values == 1)).all())
    assert torch.equal(answers.values, (trace.values > 0.5).double())


@pytest.mark.usefixtures("as_users_run_it")
def test_what_does_not_fit_is_named():
    task = Connectivity(5)
    network = Disentangled().build(5, 5, 5, torch.Generator())
    regression = LinearRegression(dim=3, examples=2)
    with pytest.raises(ValueError, match="tokens must be"):
        logit_lens(network, regression, regression.sample(1, seed=0))
    with pytest.raises(ValueError, match="prompts must be of the task"):
        logit_lens(network, task, Connectivity(6).sample(1, seed=0))
    with pytest.raises(ValueError, match=r"model must be a network of algoscope\.models"):
        logit_lens(torch.nn.Identity(), task, task.sample(1, seed=0))  # type: ignore[arg-type]
