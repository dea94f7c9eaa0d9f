"""What the study of AlgoFormer measures, on answers that are known."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as SklearnLeastSquares
from sklearn.linear_model import Ridge as SklearnRidge

import algoscope as ag
from algoscope.matching import compare
from algoscope.models import AlgoFormer, Looped, Transformer
from algoscope.randomness import normal, stream
from algoscope.studies.algoformer import candidates, controls, costs, findings, loops, measures, names, references
from algoscope.studies.algoformer.errors import per_example, summary
from algoscope.studies.constructions.controls import CONTROLS, RATE, said
from algoscope.tasks import AutoregressiveRepresentation, ChainOfThought, LinearRegression, RepresentationRegression
from algoscope.trace import Trace

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
    network, prompts = fresh(kind(heads=1, width=8, loops=4, scored=2), FEATURES), FEATURES.sample(5, seed=0)
    found = measures.after_loops(network, FEATURES, prompts, (1, 4, 9))
    for k, values in zip((1, 4, 9), found, strict=True):
        network.run_loops(k)
        torch.testing.assert_close(values, measures.answers(network, FEATURES, prompts))


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
        weights = np.linalg.lstsq(prompts.x[b, :8].numpy(), y[:8], rcond=None)[0]
        assert float(found["least squares on x"][b, 8]) == pytest.approx(float(prompts.x[b, 8].numpy() @ weights))


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
    assert (found["errors"]["n"], found["beside"]["n"]) == (sizes.tested, sizes.prompts)


def test_tuned_descent_is_better_than_any_of_its_kind_at_paper_s_lengths():
    task = LinearRegression(dim=3, examples=8, noise=1.0)
    prompts, chosen = task.sample(300, seed=0), references.tuned(task)
    own = float(per_example(chosen.trace(prompts).values[0], prompts, task)[:, 1:].mean())
    for steps in (5, 20):
        other = ag.algorithms.GradientDescent([steps], rate=0.01).trace(prompts).values[0]
        assert own <= 1.02 * float(per_example(other, prompts, task)[:, 1:].mean())


@pytest.mark.parametrize("task", [RepresentationRegression(dim=3, examples=8), ChainOfThought(20, 40)], ids=str)
def test_tuned_descent_and_descent_at_one_rate_diverge_nowhere(task):
    problems = task.problems(task.sample(2000 if task.outputs == 1 else 150, seed=0))
    largest = max(float(np.linalg.svd(each.x[:, :-1].numpy(), compute_uv=False).max()) ** 2 for each in problems)
    rate = references.tuned(task).rate
    assert isinstance(rate, float)
    assert rate * largest < 2
    assert references.steady_rate(task) * largest < 2


def test_methods_on_x_have_an_intercept():
    prompts = FEATURES.sample(3, seed=0)
    affine = next(each for each in candidates.candidates(FEATURES) if each.name == "OrdinaryLeastSquares on (1, x)")
    judge = SklearnLeastSquares().fit(prompts.x[1, :8].numpy(), prompts.y[1, :8].numpy())
    found = affine.trace(prompts).values[0, 1, 8]
    assert float(found) == pytest.approx(judge.predict(prompts.x[1, 8:].numpy())[0])


@pytest.mark.parametrize("task", [FEATURES, LinearRegression(3, 8, noise=0.1), ChainOfThought(3, 4, 2)], ids=str)
def test_candidates_have_names_of_their_own_and_a_path_of_ridge_regressions(task):
    listed = [each.name for each in candidates.candidates(task)]
    assert len(set(listed)) == len(listed)
    assert sum(name.startswith("Ridge(") for name in listed) == 25
    assert "Mean" in listed
    longest = [each for each in candidates.candidates(task) if "rate=safe" in each.name and "(1" not in each.name]
    assert longest[0].trace(task.sample(2, seed=0)).stages[-1] == 2**20


def answers_of(method, count=40):
    instrument = loops.instrument_of(FEATURES, count)
    return instrument, loops.compared_answers(instrument), instrument.traces[method].values[0]


def test_the_closed_form_that_answers_are_is_found():
    instrument, prompts, ridge = answers_of("Ridge(ridge=1.0) on features")
    rows = loops.fixed_point(torch.stack([0 * ridge, ridge]), prompts, instrument, (4, 200), trained=4)
    nearest = next(row for row in rows if row["loop"] == 200 and row["nearest"])
    assert nearest["to"] == "ridge 1"
    assert nearest["nearest_other"]
    assert nearest["mean"][0] == pytest.approx(0.0, abs=1e-12)
    assert nearest["nearer_mean"][1] > 0  # than least squares
    silent = next(row for row in rows if row["loop"] == 4 and row["to"] == "least squares")
    exact = ag.algorithms.OnFeatures(ag.algorithms.OrdinaryLeastSquares(), FEATURES).trace(prompts).values[0]
    assert silent["last"][0] == pytest.approx(float(exact[:, -1].square().mean()) / FEATURES.power, rel=1e-4)
    model = {"fixed_point": rows, "trained": 200, "summary": {"mean": {"error": 0.1}}}
    assert findings.each(findings.least_squares_nearest, "x", at_least=0.0)({"x": {"0": model}}).verdict == "fails"  # pyright: ignore
    assert loops.ridge(100.0) == "ridge 100"


def test_answers_stand_beside_the_null_and_the_mean():
    instrument, prompts, exact = answers_of("OrdinaryLeastSquares on features")
    mean = instrument.traces["Mean"].values[0]
    found = loops.answered(torch.stack([0 * exact, mean]), prompts, instrument, (1, 2))
    assert found["null"][0] == pytest.approx(1.0)
    assert found["similarity"]["Mean"][1] == pytest.approx(1.0)
    assert found["similarity"]["Mean"][0] == pytest.approx(found["null"][1])


@pytest.mark.parametrize("task", [RepresentationRegression(dim=5, examples=12), ChainOfThought(7, 16, 2)], ids=str)
def test_what_is_planted_is_found_on_the_study_s_own_list(monkeypatch, task):
    monkeypatch.setitem(controls.SIZES, "smoke", measures.Sizes(80, 40, 20, 150, 12))
    found = controls.planted(task, "smoke")
    assert found["named"]["kept"] == found["named"]["expected"] == 2 * len(controls.planted_steps(task))
    assert found["named"]["expected"] == (16 if task.inputs > 6 else 14)  # of fewer, six steps have solved the problem
    assert found["named"]["wrong"] == 0


def one_step_a_loop(method, task, prompts, still=0, early=0):
    """A planted step a loop, and then loops that stay where they are; before them, some that are there already."""
    trace = candidates.on_features(task, method).trace(prompts)
    end = trace.values[-1:]
    values = torch.cat([end.expand(early, -1, -1), trace.values, end.expand(still, -1, -1)])
    return Trace("planted", values, tuple(f"loop {k + 1}" for k in range(len(values))), prompts)


@pytest.mark.parametrize("still", [0, 6])
def test_a_planted_step_of_conjugate_gradients_a_loop_is_that_and_a_plateau_is_not_fitted(still):
    task = RepresentationRegression()
    prompts = task.sample(60, seed=0)
    planted = one_step_a_loop(ag.algorithms.ConjugateGradients(list(range(1, 9))), task, prompts, still)
    own = next(each for each in candidates.candidates(task) if each.name == "ConjugateGradients on features")
    match = compare(planted, own.trace(prompts), "errors", resamples=200)
    law = loops.law_by_loop(match, [True] * len(match.stages))
    assert law is not None
    assert law["law"] == "linear"
    assert law["growth"] == pytest.approx(1.0, abs=0.1)
    assert law["loops"] == len(law["used"]) == 8
    assert loops.law_by_loop(replace(match, b="GradientDescentPlusPlus"), [True] * len(match.stages)) is None


def test_loops_that_hold_nothing_are_told_so_and_have_no_part_in_laws():
    task = RepresentationRegression(dim=7, examples=16)
    method, chance = (
        candidates.on_features(task, ag.algorithms.ConjugateGradients(list(range(1, 6)))),
        stream("x", 0),
    )

    def show(tokens):
        values = method.trace(controls.prompts_of(task, tokens)).values.repeat_interleave(2, dim=2)[:, :, :-1, None]
        noise = normal([chance], 2, *values.shape[1:], dtype=values.dtype)
        return {f"loop {k + 1}": state for k, state in enumerate([*noise, *values])}

    found = loops.told(loops.instrument_of(task, 150).identify(show, [f"loop {k}" for k in range(1, 8)], weights=False))
    assert [stage["null"] for stage in found["stages"]] == [True] * 2 + [False] * 5
    law = found["laws"]["ConjugateGradients on features"]
    assert law["used"][0] == 3
    assert law["growth"] == pytest.approx(1.0, abs=0.15)


def test_loops_at_which_nothing_is_found_do_not_end_a_law():
    """There all steps are tied, the one of the last loop among them."""
    task = RepresentationRegression()
    prompts = task.sample(60, seed=0)
    planted = one_step_a_loop(ag.algorithms.ConjugateGradients(list(range(1, 9))), task, prompts, early=2)
    own = next(each for each in candidates.candidates(task) if each.name == "ConjugateGradients on features")
    match = compare(planted, own.trace(prompts), "errors", resamples=200)
    assert loops.law_by_loop(match, [True] * 10) is None
    assert loops.moving(match, [False] * 2 + [True] * 7 + [False]) == list(range(2, 9))  # it never arrives
    law = loops.law_by_loop(match, [False] * 2 + [True] * 8)
    assert law is not None
    assert (law["law"], law["used"]) == ("linear", tuple(range(3, 11)))
    assert law["growth"] == pytest.approx(1.0, abs=0.1)


def test_a_loop_that_is_a_step_of_descent_advances_by_one():
    told = loops.told(said(CONTROLS["gradient descent"], 200, 200)[1])
    law = told["laws"][f"GradientDescent(rate={RATE})"]
    assert list(law["used"]) == [1, 2, 3, 4]  # at 4, these few prompts cannot tell step 4 from that of the last loop
    assert 0.5 < law["low"] <= law["growth"] <= law["high"] < 2
    steps = dict(
        zip((s["stage"] for s in told["stages"]), told["closest"][f"GradientDescent(rate={RATE})"]["step"], strict=True)
    )
    assert [steps[f"loop {k}"] for k in (3, 4, 5)] == [3, 4, 5]


def test_operations_are_those_of_the_formula():
    """A block of width w costs 24w² a token and 4w for each pair of tokens; training costs three times as much."""
    width, task = 16, RepresentationRegression(dim=4, examples=6)
    length = task.length
    block = 24 * width**2 * length + 4 * width * length**2
    ends = 2 * width * length * (task.inputs + task.outputs)
    network = fresh(Transformer(layers=3, heads=2, width=width), task)
    assert costs.inference_flops(network, task) == 3 * block + ends
    model = AlgoFormer(heads=2, width=width, loops=20, scored=15)
    shares = [1 - k * block / ((k + 2) * block + ends) for k in (20, 200)]
    assert costs.outside(model, task, costs.inference_flops, 20, 200) == pytest.approx(shares)
    assert costs.outside(model, task, costs.training_flops, 20) == [pytest.approx(16 / 36, abs=0.01)]


def test_errors_beyond_training_are_those_of_more_loops():
    network, prompts = fresh(AlgoFormer(heads=1, width=8, loops=4, scored=2), FEATURES), FEATURES.sample(60, seed=0)
    kept = measures.grid(4, 30)
    assert {4, 8, 30} <= set(kept)
    found = measures.after_loops(network, FEATURES, prompts, kept)
    told = measures.by_loop(found, prompts, FEATURES, kept, 4)
    errors = {k: per_example(found[kept.index(k)], prompts, FEATURES) for k in kept}
    for end, k in ((names.TWICE, 8), (names.MOST, 30)):
        for view, part in (("last", slice(-1, None)), ("mean", slice(1, None))):
            ratio = float(errors[k][:, part].mean() / errors[4][:, part].mean())
            assert told["beyond"][end][view]["ratio"] == pytest.approx(ratio)
            assert np.mean(told["beyond"][end][view]["parts"]) == pytest.approx(float(errors[k][:, part].mean()))
    values = torch.tensor([[1.0, 1.0, 1.05, 1.2, 1.0]] * 2)
    assert measures.leaves(values, (3, 4, 5, 6, 7), 4) == 6
    assert measures.leaves(values[:, :3], (3, 4, 5), 4) is None


def test_how_a_member_learned_ends_with_its_last_step(tmp_path):
    run = ag.train(
        [LinearRegression(2, 3)] * 2, Transformer(1, 1, 4), 7, [0, 1], out=tmp_path, device="cpu", log_every=1,
        checkpoint_every=7, curriculum=None,
    )  # fmt: skip
    found = run.learning(1, most=3)
    assert [record["step"] for record in found] == [1, 4, 7]
    assert {record["member"] for record in found} == {1}
    assert found[-1]["error"] == run.final[1]["error"]
