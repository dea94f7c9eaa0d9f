"""The lists of controls, how answers to them are scored, and the files of the benchmark."""

import functools
import json
from collections import Counter

import numpy as np
import pytest
import torch

from algoscope import algorithms as known
from algoscope import cli, files, runs
from algoscope.algorithms import Algorithm
from algoscope.controls import (
    Answer,
    Coin,
    Control,
    DecayingRate,
    FixedMomentum,
    GaussSeidel,
    Mixed,
    PrincipalComponents,
    controls_of,
    score,
)
from algoscope.controls.catalog import FAMILIES, SETS
from algoscope.controls.control import STAGES
from algoscope.controls.measuring import Files, Part, measured, merged, part_of
from algoscope.controls.scoring import of_stages
from algoscope.tasks import LinearRegression, Task
from algoscope.trace import Prompts

CONTROLS = functools.cache(controls_of)
TASK = LinearRegression(dim=3, examples=8)
SIZES = {
    "regression": {"listed": 300, "unlisted": 450, "null": 200, "by hand": 50},
    "graphs": {"listed": 60, "unlisted": 15, "null": 30, "by hand": 8},
    "search": {"listed": 60, "unlisted": 30, "null": 40},
    "streams": {"listed": 60, "unlisted": 20, "null": 30},
}


@functools.cache
def steps_on_the_list(task: Task) -> set:
    one = task.sample(1, seed=0)
    return {(each.name, step) for each in task.algorithms() for step in each.trace(one).stages}


def steps_of(control: Control) -> set:
    assert control.algorithm is not None
    one = control.task.sample(1, seed=0)
    return {(control.algorithm.name, step) for step in control.algorithm.trace(one).stages}


@pytest.mark.parametrize("family", FAMILIES)
def test_there_are_as_many_controls_as_promised(family):
    counts = Counter(control.kind for control in CONTROLS(family))
    assert counts.keys() == SIZES[family].keys()
    assert all(counts[kind] >= least for kind, least in SIZES[family].items())
    assert {control.family for control in CONTROLS(family)} == {family}


def test_the_held_out_set_shares_no_prompts_with_the_other():
    held_out = [control for family in FAMILIES for control in CONTROLS(family, "held-out")]
    assert 200 <= len(held_out) <= 300
    seen = {(control.task, control.seed) for family in FAMILIES for control in CONTROLS(family)}
    assert not seen & {(control.task, control.seed) for control in held_out}
    kinds = Counter(control.kind for control in held_out)
    assert kinds.keys() == {"listed", "unlisted", "null", "by hand"}
    own = (PrincipalComponents, GaussSeidel, DecayingRate, FixedMomentum, known.Mean, Mixed, Coin)
    assert {type(control.algorithm) for control in held_out} >= {*own}


@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_planted_is_on_the_list_or_off_it_as_is_said(family, chosen):
    for control in CONTROLS(family, chosen):
        if control.kind in ("listed", "by hand"):
            assert steps_of(control) <= steps_on_the_list(control.task), control
        if control.kind != "unlisted":
            assert not control.left_out
        elif control.left_out:
            assert control.algorithm is not None
            assert control.algorithm.method == control.left_out
            assert control.compared
            assert control.left_out not in {each.method for each in control.compared}
        else:
            assert not steps_of(control) & steps_on_the_list(control.task), control


@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_line_gives_its_control_back(family, chosen):
    controls = CONTROLS(family, chosen)
    lines = [control.line() for control in controls]
    assert len(set(lines)) == len(lines)
    for control, line in zip(controls, lines, strict=True):
        if '"tensor [' in line:
            with pytest.raises(ValueError, match="plain fields"):
                Control.read(line)
            continue
        assert Control.read(line).line() == line
        if control.task.family != "regression" or "Preconditioned" not in line:  # which is equal to itself alone
            assert Control.read(line) == control


@pytest.mark.usefixtures("as_users_run_it")
def test_a_control_must_have_an_algorithm_or_a_network():
    with pytest.raises(ValueError, match="algorithm must be given"):
        Control(TASK, "listed", "Newton", 0)
    with pytest.raises(ValueError, match="kind must be one of"):
        Control(TASK, "elsewhere", "Newton", 0, known.Newton(2))  # pyright: ignore[reportArgumentType]


# Variants against loops over textbook formulas


PROMPTS = TASK.sample(4, seed=0)


def by_prefix(predict) -> np.ndarray:
    """What a formula of X, y and the query predicts, at every prefix of every prompt."""
    x, y = PROMPTS.x.numpy(), PROMPTS.y.numpy()
    return np.array([[predict(own[:t], to[:t], own[t]) for t in range(len(to))] for own, to in zip(x, y, strict=True)])


def principal_components(x, y, query):
    if not len(y):
        return 0.0
    values, vectors = np.linalg.eigh(x.T @ x)
    top = vectors[:, values.argsort()[::-1][:2]]
    return query @ top @ np.linalg.lstsq(x @ top, y, rcond=1e-12)[0]


def gauss_seidel(x, y, query):
    s, b, w = x.T @ x, x.T @ y, np.zeros(x.shape[1])
    for _ in range(2 if len(y) else 0):
        for j in range(len(w)):
            w[j] += (b[j] - s[j] @ w) / s[j, j]
    return query @ w


def decaying_rate(x, y, query):
    w = np.zeros(x.shape[1])
    for k in range(5):
        w = w - 0.04 / (k + 1) * (x.T @ x @ w - x.T @ y)
    return query @ w


def decaying_safe_rate(x, y, query):
    w, largest = np.zeros(x.shape[1]), np.linalg.norm(x, 2) ** 2 if len(y) else 1.0
    for k in range(5):
        w = w - 1 / largest / (k + 1) * (x.T @ x @ w - x.T @ y)
    return query @ w


def fixed_momentum(x, y, query):
    w = before = np.zeros(x.shape[1])
    rate = 1 / np.linalg.norm(x, 2) ** 2 if len(y) else 1.0
    for _ in range(6):
        w, before = w - rate * (x.T @ x @ w - x.T @ y) + 0.3 * (w - before), w
    return query @ w


@pytest.mark.parametrize(
    ("algorithm", "formula"),
    [
        (PrincipalComponents(2), principal_components),
        (GaussSeidel((2,)), gauss_seidel),
        (DecayingRate((5,), rate=0.04), decaying_rate),
        (DecayingRate((5,)), decaying_safe_rate),
        (FixedMomentum((6,), momentum=0.3), fixed_momentum),
    ],
)
def test_variants_follow_their_formulas(algorithm, formula):
    values = algorithm.trace(PROMPTS).values
    assert values.shape == (1, *PROMPTS.y.shape)
    np.testing.assert_allclose(values[0].numpy(), by_prefix(formula), rtol=1e-9, atol=1e-9)


def test_several_steps_are_those_one_by_one():
    for kind in (GaussSeidel, DecayingRate, FixedMomentum):
        together = kind((0, 1, 4)).trace(PROMPTS).values
        apart = [kind((step,)).trace(PROMPTS).values[0] for step in (0, 1, 4)]
        assert torch.allclose(together, torch.stack(apart), atol=1e-12)


PAIR = known.Newton((3,)), known.ConjugateGradients((2,))


def test_a_mixture_is_the_mean_of_its_steps():
    parts = [each.trace(PROMPTS).values[0].numpy() for each in PAIR]
    mixed = Mixed(PAIR).trace(PROMPTS)
    assert mixed.stages == (0,)
    np.testing.assert_allclose(mixed.values[0].numpy(), (parts[0] + parts[1]) / 2, rtol=1e-12)


def test_a_coin_follows_the_sign_of_the_first_coordinate_and_no_target():
    parts = [each.trace(PROMPTS).values[0].numpy() for each in PAIR]
    first = PROMPTS.x[:, 0, 0].numpy()
    assert {*np.sign(first)} == {-1.0, 1.0}
    values = Coin(PAIR).trace(PROMPTS).values[0].numpy()
    for row, sign in enumerate(first):
        np.testing.assert_allclose(values[row], parts[int(sign >= 0)][row], rtol=1e-12)
    opposite = Prompts(PROMPTS.x, -PROMPTS.y, power=3.0)
    np.testing.assert_allclose(Coin(PAIR).trace(opposite).values[0].numpy(), -values, rtol=1e-9, atol=1e-12)


def test_mixtures_and_coins_are_named_by_their_steps():
    assert Mixed(PAIR).name == "Mixed(Newton 3, ConjugateGradients 2)"
    assert Mixed(PAIR).method == "Mixed"
    assert Coin((known.Newton((1,)), known.Newton((6,), start="1/spectral"))).method == "Newton"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Mixed((known.Newton((3,)),)), "at least two"),
        (lambda: Coin((*PAIR, known.OrdinaryLeastSquares())), "must be two, got 3"),
        (lambda: Mixed((known.Newton(3), PAIR[1])).trace(PROMPTS), "Newton keeps several"),
    ],
)
def test_what_cannot_be_mixed_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()


# Scores


def planted(kind: str, algorithm: Algorithm, **known: object) -> Control:
    return Control(TASK, kind, "x", 0, algorithm, **known)  # pyright: ignore[reportArgumentType]


NEWTON, GRADIENT = planted("listed", known.Newton((1, 2))), planted("listed", known.GradientDescent((1, 3)))
MIXED = planted("unlisted", Mixed((known.Newton((1,)), known.ConjugateGradients((2,)))))
FAR = planted("unlisted", Mixed((known.Newton((1,)), known.Newton((5,)))))
SLOW = planted("unlisted", known.GradientDescent((1, 3), rate=0.007))
SHUFFLED = planted("null", known.Newton((1, 2)))
EVERY = [NEWTON, GRADIENT, MIXED, FAR, SLOW, SHUFFLED]


def stages_of(model) -> list[str]:
    return list(model.stages)


def always_newton(model, task) -> dict[str, Answer]:
    return {stage: Answer("Newton", True) for stage in stages_of(model)}


def silent(model, task) -> dict[str, Answer]:
    return {stage: Answer(None, False) for stage in stages_of(model)}


def the_truth(model, task) -> dict[str, Answer]:
    if model.shuffled:
        return {}
    listed = {each.name for each in task.algorithms()}
    answers = {}
    for stage, step in model.stages.items():
        certain = model.algorithm.name in listed
        steps = ((model.algorithm.name, step),) if certain else ()
        method = model.algorithm.method
        answers[stage] = Answer(method, method != "Mixed", steps, certain)
    return answers


def test_the_truth_is_always_right():
    rates = score(the_truth, EVERY)["regression"]
    assert {rates["planted"][name]["rate"] for name in rates["planted"] if name != "models"} == {1.0}
    assert rates["certain_when_absent"]["rate"] == rates["wrong_step_when_absent"]["rate"] == 0
    assert rates["false_alarms"]["rate"] == 0
    assert rates["planted"]["models"] == 2


def test_one_answer_to_all_is_as_often_right_as_it_is_the_truth():
    rates = score(always_newton, EVERY)["regression"]
    own = rates["planted"]
    assert (own["sure"]["rate"], own["certain"]["rate"], own["planted_among_the_kept"]["rate"]) == (1.0, 0.0, 0.0)
    assert own["right_when_certain"]["rate"] == 0.5
    assert own["exact_when_certain"]["rate"] is None
    assert rates["by_algorithm"]["Newton"]["right_when_certain"]["rate"] == 1.0
    assert rates["certain_when_absent"]["rate"] == pytest.approx(3 / 4)  # of a mixture of Newton's steps it is right
    assert rates["wrong_step_when_absent"]["rate"] == 0  # it names a method, and no step
    assert rates["certain_when_absent_by_algorithm"]["Newton"]["rate"] == 0
    assert rates["certain_when_absent"]["low"] < 3 / 4
    assert rates["false_alarms"]["rate"] == 1


def test_who_is_silent_is_never_wrong():
    rates = score(silent, EVERY)["regression"]
    assert rates["planted"]["sure"]["rate"] == rates["certain_when_absent"]["rate"] == 0
    assert rates["false_alarms"]["rate"] == 0
    assert rates["planted"]["right_when_certain"]["rate"] is None


def test_a_step_that_equals_the_planted_one_is_right_and_others_are_not():
    """The first steps of gradient descent at all rates are multiples of each other, and of conjugate gradients' not."""

    def says(name: str, step: int):
        return of_stages(SLOW, {"layer 1": Answer("x", True, ((name, step),), True)})[0]

    assert says("GradientDescent", 1)["right"]
    assert says("GradientDescent", 1)["exact"]
    for name, step in (("GradientDescent", 2), ("ConjugateGradients", 1), ("GradientDescent", 10**6), ("Nothing", 1)):
        assert not says(name, step)["right"]


def test_a_step_that_has_become_a_closed_form_goes_by_its_name():
    solved = planted("listed", known.Newton((2, 40)))
    answers = {f"layer {k}": Answer("OrdinaryLeastSquares", True, (("OrdinaryLeastSquares", 0),), True) for k in (1, 2)}
    assert [row["right"] for row in of_stages(solved, answers)] == [False, True]


def test_a_method_is_given_what_it_asks_for():
    seen = {}

    def asks(model, task, algorithms, seed) -> dict[str, Answer]:
        seen.update(names={each.method for each in algorithms}, seed=seed)
        return {}

    left_out = planted("unlisted", known.Newton((1, 2)), left_out="Newton")
    rates = score(asks, [left_out])["regression"]
    assert seen["seed"] == 0
    assert "Halley" in seen["names"]
    assert "Newton" not in seen["names"]
    assert rates["certain_when_absent"]["stages"] == 2


def test_networks_by_hand_hold_the_steps_that_are_expected():
    """Their own stage that predicts, against the algorithm."""
    groups = {}
    for control in (*CONTROLS("regression"), *CONTROLS("graphs")):
        if control.kind == "by hand":
            groups.setdefault(control.group, control)
    assert groups.keys() == STAGES.keys()
    for control in groups.values():
        model, prompts = control.model(), control.task.sample(3, seed=1)
        assert set(control.steps) <= set(model.stages)
        assert [*control.before_saturation()] == [*control.steps]
        tokens = control.task.encode(prompts.x, prompts.y)
        with torch.no_grad():
            answers = control.task.read(model.run(tokens.double())[0])[:, -1].double()
        wanted = control.algorithm.trace(prompts).values[-1][:, -1].double()
        answers = (answers > 0).double() if control.task.labels else answers
        assert torch.allclose(answers, wanted, rtol=0.05, atol=0.05 * float(wanted.abs().max())), control.group


# The benchmark


def test_parts_share_the_controls_and_no_instrument():
    controls = CONTROLS("regression")
    parts = [part_of(controls, k, 2) for k in range(2)]
    assert sorted(each.line() for part in parts for each in part) == sorted(each.line() for each in controls)
    assert abs(len(parts[0]) - len(parts[1])) < 0.2 * len(controls)
    planted_on = [{(each.task, each.seed, each.left_out) for each in part if each.network is None} for part in parts]
    assert not planted_on[0] & planted_on[1]


def test_a_stopped_part_resumes_and_parts_are_merged(tmp_path, monkeypatch):
    controls = [NEWTON, GRADIENT, SLOW, SHUFFLED]
    monkeypatch.setattr("algoscope.controls.measuring.controls_of", lambda family, chosen: controls)
    where, asked = Files(tmp_path, "mine:judge", "tuning"), []

    def stops(model, task) -> dict[str, Answer]:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(model)
        return the_truth(model, task)

    with pytest.raises(KeyboardInterrupt):
        measured(stops, controls, Part(where, 0, 1, 10))
    assert merged(where, ["regression"], 10)[1] == []
    assert not where.rates.exists()
    with pytest.raises(ValueError, match="measured with 10 prompts, not 20"):
        measured(stops, controls, Part(where, 0, 1, 20))
    asked.append(None)
    found = measured(stops, controls, Part(where, 1, 2, 10))  # of another split, which knows what the first part has
    assert len(asked) == 3 + 2
    assert [each["kind"] for each in found] == ["listed", "listed", "unlisted", "null"]
    rates, complete = merged(where, ["regression"], 10)
    assert complete == ["regression"]
    assert files.read_json(where.rates)["rates"] == json.loads(json.dumps(rates))
    assert len(files.read_json(where.models)["regression"]) == len(controls)
    assert not where.parts()


def test_the_names_of_the_files():
    """Those of `identify` are what pages read."""
    folder = runs.CONTROLS.parent
    assert Files(folder, "identify", "tuning").rates == runs.CONTROLS
    assert Files(folder, "identify", "held-out").rates.name == "held-out.json"
    assert Files(folder, "mine:judge", "tuning").rates.name == "mine-judge-controls.json"


def test_the_command_lists_and_measures(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli.main(["controls", "--list", "--family", "graphs", "--kind", "by-hand"])
    lines = capsys.readouterr().out.splitlines()
    assert [Control.read(line).group for line in lines] == ["connectivity"] * 8
    cli.main(["controls", "--limit", "2", "--family", "streams", "--prompts", "50"])
    assert "planted: sure of one step" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    (tmp_path / "judging.py").write_text(
        "from algoscope.controls import Answer\ndef judge(model, task): return {'layer 1': Answer('Counting', True)}\n"
    )
    cli.main(["controls", "--limit", "2", "--family", "streams", "--method", "judging:judge"])
    assert "planted: right where sure" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--part", "2", "--of", "2"], "part must be an integer <= 1"),
        (["--method", "nothing"], "method must be identify or such as"),
        (["--method", "nothing_here:judge"], "cannot be imported"),
        (["--method", "json:nothing"], "has no function 'nothing'"),
        (["--family", "trees"], "family"),
        (["--limit", "0"], "limit must be an integer >= 1"),
    ],
)
def test_bad_options_are_refused_in_one_line(given, message, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["controls", *given])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
