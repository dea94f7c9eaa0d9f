"""What the study of AlgoFormer measures, on answers that are known."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as SklearnLeastSquares
from sklearn.linear_model import Ridge as SklearnRidge

import algoscope as ag
from algoscope.models import AlgoFormer, Looped, Transformer
from algoscope.randomness import normal, stream
from algoscope.studies.algoformer import candidates, controls, costs, loops, measures, names, references
from algoscope.studies.algoformer.measures import per_example, summary
from algoscope.studies.constructions.controls import CONTROLS, RATE, identified
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression

FEATURES = RepresentationRegression(dim=3, examples=8)


def fresh(model, task):
    network = model.build(task.inputs, task.outputs, task.length, stream("weights", 0))
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2))
    return network


def test_the_states_of_a_chain_are_one_example():
    task = ChainOfThought(dim=3, examples=4, depth=2)
    prompts = task.sample(6, seed=0)
    values = torch.randn(prompts.y.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    off = ((values - prompts.y).numpy() ** 2).reshape(6, 5, 2 * 3).mean(-1)
    np.testing.assert_allclose(per_example(values, prompts, task).numpy(), off / task.power)
    told = summary(per_example(values, prompts, task))
    assert told["last"]["error"] == pytest.approx(off[:, -1].mean())
    assert told["mean"]["error"] == pytest.approx(off[:, 1:].mean())


@pytest.mark.parametrize("kind", [AlgoFormer, Looped])
def test_answers_after_loops_are_those_of_a_network_with_that_many(kind):
    network, prompts = fresh(kind(heads=1, width=8, loops=4, scored_loops=2), FEATURES), FEATURES.sample(5, seed=0)
    found = measures.after_loops(network, FEATURES, prompts, (1, 4, 9))
    for k, values in zip((1, 4, 9), found, strict=True):
        network.run_loops(k)
        torch.testing.assert_close(values, ag.predict(network, FEATURES, prompts))


def test_five_hundred_loops_in_bounded_memory():
    """Nothing of a loop is alive two loops later."""
    network, prompts = fresh(AlgoFormer(heads=1, width=8, loops=4), FEATURES), FEATURES.sample(5, seed=0)
    left_behind, alive = [], []

    def count(module, given, left):
        left_behind.extend(weakref.ref(part) for part in left)
        alive.append(sum(part() is not None for part in left_behind))

    network.blocks[1].register_forward_hook(count)
    (found,) = measures.after_loops(network, FEATURES, prompts, (500,))
    assert len(alive) == 500
    assert max(alive) <= 6  # what one loop hands to the next, in terms
    assert bool(found.isfinite().all())


def test_known_methods_on_features_are_those_of_scikit_learn():
    task = RepresentationRegression(dim=3, examples=8, noise=0.5)
    prompts = task.sample(4, seed=0)
    found = dict(references.answers(task, prompts))
    for b in range(4):
        phi, y = task.features(prompts.x[b]).numpy(), prompts.y[b].numpy()
        ridge = SklearnRidge(alpha=0.25, fit_intercept=False).fit(phi[:8], y[:8])
        assert float(found["ridge on features"][b, 8]) == pytest.approx(ridge.predict(phi[8:])[0])
        weights = np.linalg.lstsq(phi[:8], y[:8], rcond=None)[0]
        assert float(found["least squares on features"][b, 8]) == pytest.approx(float(phi[8] @ weights))


@pytest.mark.parametrize(
    "task",
    [
        AutoregressiveRepresentation(dim=4, examples=10, noise=0.3),
        RepresentationRegression(dim=4, examples=10, noise=1.0),
    ],
    ids=lambda task: type(task).__name__,
)
def test_the_right_penalty_has_the_least_error(task):
    prompts, right = task.sample(800, seed=0), references.right_penalty(task)
    errors = []
    for penalty in (right / 10, right, right * 10):
        values = ag.algorithms.OnFeatures(ag.algorithms.Ridge(penalty), task).trace(prompts).values[0]
        errors.append(float(per_example(values, prompts, task)[:, 1:].mean()))
    assert errors[1] == min(errors)


CHAINS = ChainOfThought(dim=4, examples=7, depth=2)
ASKED = (
    LinearRegression(dim=4, examples=7),
    LinearRegression(dim=4, examples=7, noise=0.5),
    RepresentationRegression(dim=4, examples=7),
    RepresentationRegression(dim=4, examples=7, noise=0.5),
    AutoregressiveRepresentation(dim=4, examples=7, noise=0.3),
    CHAINS,
)


def biased(values, prompts, task):
    """By how many standard errors what is left of the targets goes along with bounded functions of what was given."""
    shape = prompts.target_columns.shape
    off = (prompts.target_columns - values.reshape(shape))[..., 0]
    given = [torch.ones_like(off), torch.tanh(values.reshape(shape)[..., 0]), torch.tanh(prompts.x[..., 0])]
    given.append(torch.tanh(prompts.target_columns[..., 0].roll(1, dims=1)))
    if task.noise:  # and another fit of the same examples
        given.append(torch.tanh(references.least(replace(task, noise=0.1), prompts).reshape(shape)[..., 0]))
    along = torch.stack([off * each for each in given])[:, :, 1:]
    along = torch.where(off[:, 1:].abs().mean(0) > 1e-6, along, 0.0)  # where all is known rounding is left
    return (along.mean(1) / (along.std(1) / len(off) ** 0.5).clamp(min=1e-12)).abs().max()


@pytest.mark.parametrize("task", ASKED, ids=str)
def test_what_is_left_of_the_best_answer_goes_along_with_nothing_that_was_given(task):
    """As is so of an expectation, given all that. Twice the right penalty is 12 standard errors off or more."""
    prompts = task.sample(20_000, seed=0)
    assert biased(references.least(task, prompts), prompts, task) < 5


def test_an_activation_of_the_best_weights_is_not_the_best_answer():
    prompts = CHAINS.sample(20_000, seed=0)
    fitted = ag.algorithms.OnFeatures(ag.algorithms.OrdinaryLeastSquares(), CHAINS).trace(prompts).values[0]
    assert biased(fitted, prompts, CHAINS) > 20
    best, plain = (per_example(each, prompts, CHAINS).mean(0) for each in (references.least(CHAINS, prompts), fitted))
    assert (best[1:4] < 0.99 * plain[1:4]).all()
    assert best[4:].max() < 1e-12  # as many chains as a state has coordinates tell all


def test_the_least_error_is_measured_on_the_prompts_of_the_models(monkeypatch):
    """Those of a textbook's posterior mean, on average over the examples, in the same parts of the prompts."""
    task, sizes = LinearRegression(dim=3, examples=5, noise=0.5), measures.SIZES["smoke"]
    monkeypatch.setattr(measures, "CHUNK", 30)
    found, prompts = measures.least(task, "smoke"), task.sample(sizes.tested, seed=0)
    by_hand = np.zeros((sizes.tested, 5))
    for b, (x, y) in enumerate(zip(prompts.x.numpy(), prompts.y.numpy(), strict=True)):
        for t in range(1, 6):
            weights = np.linalg.solve(x[:t].T @ x[:t] + 0.25 * np.eye(3), x[:t].T @ y[:t])
            by_hand[b, t - 1] = (x[t] @ weights - y[t]) ** 2 / task.power
    assert found["summary"]["last"]["error"] == pytest.approx(by_hand[:, -1].mean())
    assert found["summary"]["mean"]["error"] == pytest.approx(by_hand.mean())
    assert found["summary"]["mean"]["parts"] == pytest.approx(by_hand.mean(1).reshape(20, -1).mean(1))
    assert len(found["beside"]["t"]) == 6
    assert (found["summary"]["mean"]["n"], found["beside"]["n"]) == (sizes.tested, sizes.prompts)


@pytest.mark.parametrize("task", [RepresentationRegression(dim=3, examples=8), ChainOfThought(20, 40)], ids=str)
def test_gradient_descent_at_one_rate_diverges_nowhere(task):
    problems = task.problems(task.sample(2000 if task.outputs == 1 else 150, seed=0))
    largest = max(float(np.linalg.svd(each.x[:, :-1].numpy(), compute_uv=False).max()) ** 2 for each in problems)
    assert candidates.steady_rate(task) * largest < 2


def test_closed_forms_on_x_are_among_the_candidates():
    prompts = FEATURES.sample(3, seed=0)
    on_x = next(each for each in candidates.candidates(FEATURES) if each.name == "OrdinaryLeastSquares")
    judge = SklearnLeastSquares(fit_intercept=False).fit(prompts.x[1, :8].numpy(), prompts.y[1, :8].numpy())
    found = on_x.trace(prompts).values[0, 1, 8]
    assert float(found) == pytest.approx(judge.predict(prompts.x[1, 8:].numpy())[0])


@pytest.mark.parametrize("task", [FEATURES, LinearRegression(3, 8, noise=0.1), ChainOfThought(3, 4, 2)], ids=str)
def test_candidates_have_names_of_their_own_and_a_path_of_ridge_regressions(task):
    listed = [each.name for each in candidates.candidates(task)]
    assert len(set(listed)) == len(listed)
    assert sum(name.startswith("Ridge(") for name in listed) == 25
    assert "Mean" in listed
    longest = [each for each in candidates.candidates(task) if "rate=safe" in each.name and "(1" not in each.name]
    assert longest[0].trace(task.sample(2, seed=0)).stages[-1] == 2**20


@pytest.mark.parametrize(
    ("task", "prompts"), [(RepresentationRegression(dim=5, examples=12), 250), (ChainOfThought(7, 16, 2), 80)], ids=str
)
def test_what_is_planted_is_found_on_the_study_s_own_list(monkeypatch, task, prompts):
    """A prompt of a chain asks for many numbers, so that few prompts will do."""
    monkeypatch.setitem(controls.SIZES, "smoke", measures.Sizes(80, 40, 20, prompts, 12))
    found = controls.planted(task, "smoke")
    assert found["named"]["kept"] == found["named"]["expected"] == 2 * len(controls.planted_steps(task))
    assert found["named"]["expected"] == (16 if task.inputs > 6 else 14)  # of fewer, six steps have solved the problem
    assert found["named"]["wrong"] == 0


def test_loops_at_which_nothing_is_found():
    task = RepresentationRegression(dim=7, examples=16)
    method, chance = (
        candidates.on_features(task, ag.algorithms.ConjugateGradients(list(range(1, 6)))),
        stream("x", 0),
    )

    def show(tokens):
        values = method.trace(task.decode(tokens.double())).values.repeat_interleave(2, dim=2)[:, :, :-1, None]
        noise = normal([chance], 2, *values.shape[1:], dtype=values.dtype)
        return {f"loop {k + 1}": state for k, state in enumerate([*noise, *values])}

    verdict = loops.instrument_of(task, 150).identify(show, [f"loop {k}" for k in range(1, 8)], weights=False)
    found = loops.summary(verdict)
    assert [stage["null"] for stage in found["stages"]] == [True] * 2 + [False] * 5
    assert found["closest"]["ConjugateGradients on features"]["step"] == [None, None, 1, 2, 3, 4, 5]


def test_a_loop_that_is_a_step_of_gradient_descent_advances_by_one():
    found = loops.summary(identified(CONTROLS["gradient descent"], 200, 200)[1])
    closest = found["closest"][f"GradientDescent(rate={RATE})"]["step"]
    steps = dict(zip((stage["stage"] for stage in found["stages"]), closest, strict=True))
    assert [steps[f"loop {k}"] for k in (3, 4, 5)] == [3, 4, 5]


def test_operations_are_those_of_the_formula():
    """A block of width w costs 24w² a token and 4w for each pair of tokens; training costs three times as much."""
    width, task = 16, RepresentationRegression(dim=4, examples=6)
    length = task.length
    block = 24 * width**2 * length + 4 * width * length**2
    ends = 2 * width * length * (task.inputs + task.outputs)
    network = fresh(Transformer(layers=3, heads=2, width=width), task)
    assert costs.flops(network, task, training=False) == 3 * block + ends
    model = AlgoFormer(heads=2, width=width, loops=20, scored_loops=15)
    shares = [1 - k * block / ((k + 2) * block + ends) for k in (20, 200)]
    assert costs.outside(model, task, False, 20, 200) == pytest.approx(shares)
    assert costs.outside(model, task, True, 20) == [pytest.approx(16 / 36, abs=0.01)]


def test_errors_beyond_training_are_those_of_more_loops():
    network, prompts = (
        fresh(AlgoFormer(heads=1, width=8, loops=4, scored_loops=2), FEATURES),
        FEATURES.sample(60, seed=0),
    )
    kept = measures.grid(4, 30)
    assert {4, 8, 30} <= set(kept)
    found = measures.after_loops(network, FEATURES, prompts, kept)
    rises = measures.by_loop(network, FEATURES, prompts, replace(measures.SIZES["smoke"], loops=30))
    errors = {k: per_example(found[kept.index(k)], prompts, FEATURES)[:, -1] for k in kept}
    assert rises["error"] == pytest.approx([float(errors[k].mean()) for k in kept])
    for end, k in ((names.TWICE, 8), (names.MOST, 30)):
        rise = rises["beyond"][end]["last"]
        assert rise["ratio"] == pytest.approx(float(errors[k].mean() / errors[4].mean()))
        assert np.mean(rise["parts"]) == pytest.approx(float(errors[k].mean()))


def test_how_a_member_learned_ends_with_its_last_step(tmp_path):
    run = ag.train(
        [LinearRegression(2, 3)] * 2, Transformer(1, 1, 4), 7, [0, 1], out=tmp_path, device="cpu", log_every=1,
        checkpoint_every=7, curriculum=None,
    )  # fmt: skip
    found = run.learning(1, most=3)
    assert [record["step"] for record in found] == [1, 4, 7]
    assert {record["member"] for record in found} == {1}
    assert found[-1]["error"] == run.final[1]["error"]
