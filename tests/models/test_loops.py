"""Networks that loop: against plain loops, what training scores, and how far they run."""

import copy
import weakref
from dataclasses import replace

import battery
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
    network = build(replace(model, scored_loops=3))
    answers = network(TOKENS, every=True)
    assert len(answers) == 3
    for loops, answer in zip((2, 3, 4), answers, strict=True):
        network.run_loops(loops)
        torch.testing.assert_close(answer, network(TOKENS))


def test_truncated_gradients_do_not_flow_through_the_loops_before():
    """Only the scored loops are differentiated: as if what came before had been given."""
    model = AlgoFormer(heads=1, width=8, loops=4, scored_loops=1, truncated=True)
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
    model = AlgoFormer(heads=1, width=8, loops=3, scored_loops=2, truncated=truncated, loop_norm=normed)
    settings = Settings(steps=4, batch=5, precision="fp64", curriculum=None)
    population = Population.of(model, [Member(TASK, seed) for seed in range(members)], settings, torch.device("cpu"))
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
    with pytest.raises(ValueError, match="scored_loops must be at most loops = 3, got 4"):
        kind(heads=1, width=8, loops=3, scored_loops=4)
    with pytest.raises(ValueError, match="scored_loops must be an integer >= 1, got 0"):
        kind(heads=1, width=8, loops=3, scored_loops=0)
    with pytest.raises(ValueError, match="layers must be an integer >= 1, got 0"):
        kind(heads=1, width=8, layers=0)
    with pytest.raises(ValueError, match="truncated must be True or False, got 'yes'"):
        kind(heads=1, width=8, truncated="yes")
    with pytest.raises(ValueError, match="loops must be an integer >= 1, got -1"):
        kind(heads=1, width=8, loops=3).build(3, 2, 6, torch.Generator()).run_loops(-1)


def with_relative(network, wanted):
    """Whether keys go without what the first one has."""
    for part in network.modules():
        if isinstance(part, Attention):
            part.relative = wanted and part.kind == "softmax"
    return network


LOOPING = [model for model in battery.MODELS if isinstance(model, AlgoFormer | Looped)]
WINDOWED = [replace(LOOPING[0], mask=2), replace(LOOPING[0], mask="full", sink=True)]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("model", [*LOOPING, *WINDOWED], ids=str)
def test_keys_without_what_the_first_one_has_change_neither_answers_nor_gradients(model, members, monkeypatch):
    """In 64 bits, where they have all, against the plain form: the gradient that is not taken is zero."""
    monkeypatch.setattr(transformer, "COARSE", (torch.float64,))
    network, found = battery.scrambled(model), []
    named = dict(network.named_parameters())
    if members > 1:
        named = {name: torch.stack([tensor * (1 + 0.1 * i) for i in range(members)]) for name, tensor in named.items()}
    named = {name: tensor.detach().requires_grad_() for name, tensor in named.items()}
    shape = (members, 3, battery.LENGTH) if members > 1 else (3, battery.LENGTH)
    tokens = battery.draw_tokens(*shape).requires_grad_()
    for wanted in (True, False):
        with_relative(network, wanted)
        answers = torch.func.functional_call(network, named, (tokens,), {"every": True})
        inputs = (*named.values(), tokens)
        gradients = torch.autograd.grad(answers.square().sum(), inputs, materialize_grads=True, allow_unused=True)
        found.append((answers, *gradients))
    largest = max(float(each.detach().abs().max()) for each in found[1])
    for own, plain in zip(*found, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-9, atol=1e-11 * largest)


def in_16_bits(seed):
    """A network whose keys have many times in common what tells them apart, with its matrices in 16 bits."""
    network = battery.scrambled(Looped(heads=2, width=16, loops=3), seed)
    block, direction = network.get_submodule("blocks.0"), torch.eye(16, dtype=torch.float64)[0]
    block.get_parameter("attention_norm.bias").data += 10 * direction
    block.get_parameter("attention.queries_keys_values.weight").data[16:32] += 30 * direction  # of keys
    network.float()
    for part in block.modules():
        if isinstance(part, torch.nn.Linear):
            part.bfloat16()
    return network


def test_what_keys_have_in_common_costs_no_precision():
    """Answers and gradients against those of the same weights in 64 bits, over seeds."""
    off: dict[bool, list[torch.Tensor]] = {True: [], False: []}
    tokens = battery.draw_tokens(3, battery.LENGTH)
    for seed in range(8):
        network = in_16_bits(seed)
        exact = copy.deepcopy(network).double()
        answers, wanted = exact(tokens), torch.autograd.grad(exact(tokens).square().sum(), list(exact.parameters()))
        for relative, found in off.items():
            own = with_relative(network, relative)(tokens.float())
            gradients = torch.autograd.grad(own.square().sum(), list(network.parameters()), allow_unused=True)
            pairs = [(own, answers), *((a, b) for a, b in zip(gradients, wanted, strict=True) if a is not None)]
            difference, size = (sum(each.detach().double().square().sum() for each in part) ** 0.5 for part in (
                [a - b for a, b in pairs], [b for _, b in pairs]))  # fmt: skip
            found.append(difference / size)
    typical = {relative: float(torch.stack(found).median()) for relative, found in off.items()}
    assert typical[True] < typical[False] / 3


@pytest.mark.parametrize("members", [1, 3])
def test_loops_train_in_16_bits_with_such_keys(members):
    """As in 32 bits, but for rounding; the bias of keys stays where it was."""
    errors = {}
    for precision in ("bf16", "fp32"):
        settings = Settings(steps=60, batch=16, precision=precision, warmup=5, curriculum=None)
        own = [Member(TASK, seed, 1e-2) for seed in range(members)]
        model = Looped(heads=2, width=16, loops=3, scored_loops=2)
        population = Population.of(model, own, settings, torch.device("cpu"))
        for _ in range(60):
            population.step()
        errors[precision] = population.state.losses[:60].view(6, 10, members).mean(1)
        bias = population.layout.full(population.state.parameters)["blocks.0.attention.queries_keys_values.bias"]
        assert not bias.unflatten(-1, (3, -1))[..., 1, :].any()
    assert (errors["bf16"][-1] < 0.9 * errors["bf16"][0]).all()
    torch.testing.assert_close(errors["bf16"], errors["fp32"], rtol=0.02, atol=0.0)


@pytest.mark.parametrize(("attention", "wanted"), [("softmax", True), ("relu", False)])
def test_other_attention_keeps_its_keys(attention, wanted):
    parts = build(AlgoFormer(heads=1, width=8, attention=attention)).modules()
    assert [part.relative for part in parts if isinstance(part, Attention)] == [wanted] * 3
