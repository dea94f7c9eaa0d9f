"""Networks that loop: against plain loops, what training scores, and how far they run."""

import copy
import weakref

import pytest
import torch

import algoscope as ag
from algoscope.models import AlgoFormer, Looped, transformer
from algoscope.models.transformer import Attention, added
from algoscope.randomness import stream
from algoscope.training import Member, Settings
from algoscope.training.population import Population

TOKENS = torch.randn(3, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
TASK = ag.tasks.LinearRegression(dim=3, examples=4)


def build(model):
    network = model.build(3, 2, 6, torch.Generator().manual_seed(0)).double()
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2))
    return network


def test_the_looped_transformer_is_that_of_its_formula():
    """z ← norm(block(z + prompt)), from z = 0."""
    network = build(Looped(layers=2, heads=1, width=8, loops=3))
    prompt = network.embedded(TOKENS)
    z = torch.zeros_like(prompt)
    for _ in range(3):
        z = z + prompt
        for block in network.blocks:
            z = added(*block(z))
        z = network.loop_norm(z)
    torch.testing.assert_close(network(TOKENS), network.read_out(z))
    assert network.stages == ("embedding", "loop 1", "loop 2", "loop 3")


@pytest.mark.parametrize("injection", ["none", "prompt", "pre"])
def test_a_norm_may_end_every_loop(injection):
    """z ← norm(block(z + given)), from what pre left; without it, there are no weights for it."""
    network = build(AlgoFormer(heads=1, width=8, loops=3, injection=injection, loop_norm=True))
    assert network.loop_norm is not None
    prompt = network.embedded(TOKENS)
    z = pre = added(*network.blocks[0](prompt))
    for t in range(3):
        given = {"none": 0.0, "prompt": prompt, "pre": pre if t else 0.0}[injection]
        z = network.loop_norm(added(*network.blocks[1](z + given)))
    torch.testing.assert_close(network(TOKENS), network.read_out(network.norm(added(*network.blocks[2](z)))))
    plain = build(AlgoFormer(heads=1, width=8, loops=3, injection=injection))
    assert network.parameter_count == plain.parameter_count + 2 * 8
    torch.testing.assert_close(network.answers(TOKENS)[-1], network(TOKENS))


@pytest.mark.parametrize("model", [AlgoFormer(heads=1, width=8, loops=4), Looped(heads=1, width=8, loops=4)], ids=str)
def test_training_scores_the_answers_after_each_of_the_last_loops(model):
    network = build(model)
    network.scored = 3
    answers = network(TOKENS, every=True)
    assert len(answers) == 3
    for loops, answer in zip((2, 3, 4), answers, strict=True):
        network.run_loops(loops)
        torch.testing.assert_close(answer, network(TOKENS))


def test_truncated_gradients_do_not_flow_through_the_loops_before():
    """Only the scored loops are differentiated: as if what came before had been given."""
    model = AlgoFormer(heads=1, width=8, loops=4, scored=1, truncated=True)
    network = build(model)
    found = torch.autograd.grad(network.answers(TOKENS).square().sum(), list(network.blocks[1].parameters()))
    with torch.no_grad():
        state = network.run(TOKENS, ["loop 3"])[1]["loop 3"]
    answer = network.answer(network.end(network.loop(3, (state,), state)))
    exact = torch.autograd.grad(answer.square().sum(), list(network.blocks[1].parameters()))
    for a, b in zip(found, exact, strict=True):
        torch.testing.assert_close(a, b)
    network.truncated = False
    whole = torch.autograd.grad(network.answers(TOKENS).square().sum(), list(network.blocks[1].parameters()))
    assert not all(torch.allclose(a, b) for a, b in zip(whole, exact, strict=True))


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("normed", [False, True])
def test_the_loss_is_the_mean_over_the_scored_loops_and_the_error_that_of_the_last(truncated, members, normed):
    model = AlgoFormer(heads=1, width=8, loops=3, scored=2, truncated=truncated, loop_norm=normed)
    settings = Settings(steps=4, batch=5, precision="fp64", curriculum=None)
    population = Population(model, [Member(TASK, seed) for seed in range(members)], settings, torch.device("cpu"))
    x, y = population._draw(None)
    weights = population.layout.low_and_high(population.state.parameters)
    with torch.no_grad():
        loss, error = population.losses(weights, x, y, torch.tensor(TASK.positions))
    for k in range(members):
        network = model.build(TASK.inputs, TASK.outputs, TASK.length, stream("weights", k)).double()
        squares = []
        for loops in (2, 3):
            network.run_loops(loops)
            squares.append((TASK.read(network(TASK.encode(x[k], y[k]))) - y[k]).square().detach())
        assert float(loss[k]) == pytest.approx(float(torch.stack(squares).mean()), rel=1e-9)
        assert float(error[k]) == pytest.approx(float(squares[-1][:, -1].mean()), rel=1e-9)


def test_many_loops_need_no_more_memory():
    """Nothing of a loop is kept but what the next one is given."""
    network = AlgoFormer(heads=1, width=8, loops=2).build(3, 2, 6, torch.Generator())
    network.run_loops(500)
    left_behind, alive = [], []

    def count(module, given, left):
        left_behind.extend(weakref.ref(part) for part in left)
        alive.append(sum(part() is not None for part in left_behind))

    network.blocks[1].register_forward_hook(count)
    with torch.no_grad():
        outputs, kept = network.run(TOKENS.float(), ["loop 500"])
    assert len(alive) == 500
    assert max(alive) <= 6  # what one loop hands to the next, in terms
    assert list(kept) == ["loop 500"]
    assert bool(outputs.isfinite().all())


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("kind", [AlgoFormer, Looped])
def test_what_makes_no_sense_is_refused(kind):
    with pytest.raises(ValueError, match="loops must be an integer >= 1, got 0"):
        kind(heads=1, width=8, loops=0)
    with pytest.raises(ValueError, match="scored must be at most loops = 3, got 4"):
        kind(heads=1, width=8, loops=3, scored=4)
    with pytest.raises(ValueError, match="scored must be an integer >= 1, got 0"):
        kind(heads=1, width=8, loops=3, scored=0)
    with pytest.raises(ValueError, match="layers must be an integer >= 1, got 0"):
        kind(heads=1, width=8, layers=0)
    with pytest.raises(ValueError, match="truncated must be True or False, got 'yes'"):
        kind(heads=1, width=8, truncated="yes")
    with pytest.raises(ValueError, match="loops must be an integer >= 1, got -1"):
        kind(heads=1, width=8, loops=3).build(3, 2, 6, torch.Generator()).run_loops(-1)


def relative(network, wanted):
    for part in network.modules():
        if isinstance(part, Attention):
            part.relative = wanted
    return network


@pytest.mark.parametrize("model", [Looped(heads=2, width=8, loops=3), AlgoFormer(heads=2, width=8, loops=3)], ids=str)
def test_keys_that_go_without_what_the_first_one_has_change_neither_answers_nor_gradients(model, monkeypatch):
    """In 64 bits, where they have all, against the plain form: the gradient that is not taken is zero."""
    monkeypatch.setattr(transformer, "COARSE", (torch.float64,))
    network, found = build(model), []
    for wanted in (True, False):
        answers = relative(network, wanted)(TOKENS)
        found.append((answers, *torch.autograd.grad(answers.square().sum(), list(network.parameters()))))
    for own, plain in zip(*found, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-9, atol=1e-9)


def test_what_keys_have_in_common_costs_no_precision():
    """In 16 bits, where it is many times what tells them apart, against the same weights in 64."""
    network = build(Looped(heads=2, width=16, loops=3))
    block, direction = network.get_submodule("blocks.0"), torch.eye(16, dtype=torch.float64)[0]
    block.get_parameter("attention_norm.bias").data += 10 * direction
    block.get_parameter("attention.queries_keys_values.weight").data[16:32] += 100 * direction  # of keys
    network.float()
    for part in block.modules():
        if isinstance(part, torch.nn.Linear):
            part.bfloat16()
    exact, off = copy.deepcopy(network).double()(TOKENS), {}
    for wanted in (True, False):
        with torch.no_grad():
            off[wanted] = float((relative(network, wanted)(TOKENS.float()) - exact).abs().max() / exact.std())
    assert off[True] < 0.005
    assert off[False] > 0.01
    assert all(part.relative for part in build(AlgoFormer(heads=1, width=8)).modules() if isinstance(part, Attention))
