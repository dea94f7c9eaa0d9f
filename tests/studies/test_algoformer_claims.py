"""What the study of AlgoFormer concludes from its numbers, on numbers whose answer is known."""

import pytest
import torch

from algoscope.models import AlgoFormer
from algoscope.studies import study
from algoscope.studies.algoformer import findings, names, plan
from algoscope.studies.algoformer.claims import CLAIMS
from algoscope.studies.algoformer.figures import figures, over_least


def model_of(error, beyond=1.0, noise=0, **more):
    """Errors that differ from prompt to prompt by 10%, in the same way but for `noise`."""
    spread = {"error": error, "low": 0.9 * error, "high": 1.1 * error, "n": 100}
    common, own = (torch.randn(20, generator=torch.Generator().manual_seed(seed)) for seed in (1, noise))
    spread["parts"] = (error * (1 + 0.1 * common + (0.1 * own if noise else 0.0))).tolist()
    parts = {"parts": [beyond * part for part in spread["parts"]], "parts_trained": spread["parts"]}
    rises = {"last": {"ratio": beyond, "low": 0.9 * beyond, "high": 1.1 * beyond, "n": 100, **parts}}
    ends = {names.TWICE: rises, names.MOST: rises}
    return {"summary": {"last": spread, "mean": spread}, "by_loop": {"beyond": ends}, "dim": 20, **more}


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [(0.1, 0.2, "holds"), (0.2, 0.1, "fails"), (0.1, 0.101, "undecided"), (2.0, 4.0, "undecided")],
)
def test_errors_are_compared_seed_by_seed(own, other, verdict):
    numbers = {
        "a": {str(seed): model_of(own) for seed in range(3)},
        "b": {str(seed): model_of(other, noise=2) for seed in range(3)},
    }
    found = findings.ratio("a", "b", at_most=1.0)(numbers)
    assert found is not None
    assert found.verdict == verdict
    assert len(found.values) == 3
    assert findings.ratio("a", "none", at_most=1.0)(numbers) is None


def test_a_rise_beyond_training_is_told():
    numbers = {"few": {"0": model_of(0.1, 5.0)}, "many": {"0": model_of(0.1, 1.0)}}
    assert findings.each(findings.beyond(names.TWICE), "few", at_most=1.1)(numbers).verdict == "fails"  # pyright: ignore
    found = findings.steadier("few", "many", at_least=1.0)(numbers)
    assert found is not None
    assert found.verdict == "holds"
    assert found.values[0].value == pytest.approx(5.0)
    assert findings.steadier("many", "few", at_least=1.0)(numbers).verdict == "fails"  # pyright: ignore


def test_rises_of_two_models_are_compared_on_the_same_parts():
    """Half of the prompts are twenty times as hard for both: their rises differ by 30% on each, and no more."""
    hard = torch.where(torch.arange(20) % 2 == 0, 1.0, 20.0)
    one = {"parts": (2.6 * hard).tolist(), "parts_trained": hard.tolist(), "n": 20}
    other = {"parts": (2.0 * hard).tolist(), "parts_trained": hard.tolist(), "n": 20}
    value = findings.over(one, other)
    assert value.value == pytest.approx(1.3)
    assert 1.29 < value.low <= value.high < 1.31


def test_numbers_that_depend_on_sizes_are_judged_at_the_paper_s():
    rows = [{"model": names.ALGOFORMER, "parameters": 2.4e6}]
    judge = findings.cost(names.ALGOFORMER, "parameters", at_least=2e6)
    assert judge({names.COSTS: {"0": {"costs": rows, "dim": 5}}}) is None
    assert judge({names.COSTS: {"0": {"costs": rows, "dim": 20}}}).verdict == "holds"  # pyright: ignore
    assert findings.absolute(model_of(1e-4)).value == pytest.approx(2e-3)  # pyright: ignore
    assert findings.absolute(model_of(1e-4) | {"dim": 5}) is None


def test_a_control_that_is_named_wrongly_fails():
    for kept, alarms, verdict in ((6, 0, "holds"), (5, 0, "fails"), (6, 1, "fails")):
        counts = {"kept": kept, "named": 3, "expected": 6, "alarms": alarms, "wrong": 0}
        assert findings.named("x")({"x": {"0": {"named": counts}}}).verdict == verdict  # pyright: ignore
    counts = {"kept": 0, "named": 0, "expected": 0, "alarms": 1, "wrong": 0}
    assert findings.named("x")({"x": {"0": {"named": counts}}}).verdict == "fails"  # pyright: ignore


def test_the_plan_is_that_of_the_paper():
    runs = {run.name: run for run in plan.RUNS["paper"]}
    main = runs[names.run(names.ALGOFORMER, names.REPRESENTATION)]
    assert isinstance(main, study.Training)
    assert isinstance(main.model, AlgoFormer)
    sizes = (
        main.model.loops,
        main.model.scored_loops,
        main.model.pre,
        main.model.layers,
        main.model.post,
        main.model.width,
    )
    assert sizes == (20, 15, 1, 1, 1, 256)
    assert main.seeds == (0, 1, 2)
    corner = runs[names.run(names.ALGOFORMER, names.REPRESENTATION, names.window(50, 5))]
    assert isinstance(corner, study.Training)
    assert (corner.model.loops, corner.model.scored_loops) == (50, 5)  # pyright: ignore
    assert names.FOLLOWED & set(runs)
    normed = runs[names.run(names.ALGOFORMER, names.REPRESENTATION, names.normed("prompt"))]
    assert isinstance(normed, study.Training)
    assert (normed.model.loop_norm, normed.model.injection) == (True, "prompt")  # pyright: ignore
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def test_the_longest_training_on_file_is_judged():
    standard, own = (names.run(kind, names.CHAIN_OF_THOUGHT) for kind in (names.STANDARD, names.ALGOFORMER))
    more = names.longer(names.CHAIN_OF_THOUGHT)
    numbers = {standard: {"0": model_of(0.1)}, own: {"0": model_of(0.2)}}
    (claim,) = (claim for claim in CLAIMS if claim.id == "beats-standard-chain-of-thought")
    assert claim.record(numbers)["verdict"] == "fails"
    numbers[f"{own}, {more}"] = {"0": model_of(0.02)}
    assert claim.record(numbers)["verdict"] == "fails"  # the other is not on file: they are trained equally long
    numbers[f"{standard}, {more}"] = {"0": model_of(0.04)}
    found = claim.record(numbers)
    assert (found["verdict"], found["ours"]) == ("holds", pytest.approx(0.5))


@pytest.mark.parametrize(("ratio", "unharmed", "unstable"), [(0.9, "holds", "fails"), (2.0, "fails", "holds")])
def test_that_few_scored_loops_are_unstable_agrees_with_the_paper(ratio, unharmed, unstable):
    more = {"beyond-12-loops-10-scored": (12, 10), "beyond-12-loops-5-scored": (12, 5)}
    for (id, sizes), verdict in zip(more.items(), (unharmed, unstable), strict=True):
        run = names.run(names.ALGOFORMER, names.REPRESENTATION, names.window(*sizes))
        (claim,) = (claim for claim in CLAIMS if claim.id == id)
        assert claim.record({run: {"0": model_of(0.1, ratio)}})["verdict"] == verdict


@pytest.mark.parametrize(
    ("error", "noise", "verdict"), [(0.111, 0, "holds"), (0.1112, 0, "fails"), (0.111, 2, "undecided")]
)
def test_how_near_errors_are_to_the_least_possible(error, noise, verdict):
    """The bound is 1/.9: a tenth of the error is left. All seeds are compared with the one least error."""
    less, more = (
        names.run(names.STANDARD, names.CHAIN_OF_THOUGHT, steps) for steps in ("", names.longer(names.CHAIN_OF_THOUGHT))
    )
    own = {seed: model_of(error, noise=noise, config={"settings": {"steps": 300}}) for seed in ("0", "1")}
    short = model_of(0.2, config={"settings": {"steps": 100}})
    numbers = {less: {"0": short}, more: own, names.least(names.CHAIN_OF_THOUGHT): {"0": model_of(0.1)}}
    (claim,) = (claim for claim in CLAIMS if claim.id == "least-standard-chain-of-thought")
    told = claim.record(numbers)
    assert (told["verdict"], len(told["seeds"])) == (verdict, 2)
    assert noise or told["seeds"] == [pytest.approx(error / 0.1)] * 2
    assert claim.record({more: own})["verdict"] == "not run"
    rows = [(row["row"], row["series"], row["x"]) for row in over_least(numbers)]
    after = [("chain of thought, 300 steps", names.STANDARD, seed) for seed in told["seeds"]]
    assert rows == [("chain of thought, 100 steps", names.STANDARD, pytest.approx(2.0)), *after]


def test_without_numbers_there_are_no_figures():
    assert figures({}) == {}
