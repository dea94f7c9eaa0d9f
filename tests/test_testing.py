"""Each broken contract is named in one line."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import algoscope as ag
from algoscope import testing
from algoscope.algorithms import Newton
from algoscope.models import Transformer
from algoscope.randomness import normal
from algoscope.tasks import Connectivity, LinearRegression

TASK = LinearRegression(dim=2, examples=4)
Line: Any = LinearRegression  # what is wrong on purpose is no type of it
AnyTask: Any = ag.Task


@dataclass(frozen=True)
class Noisy(Line):
    def draw(self, batch, generators, dtype=torch.float64, dims=None):
        x, y = super().draw(batch, generators, dtype, dims)
        return x, y + torch.rand(y.shape).to(y)


@dataclass(frozen=True)
class Shared(Line):
    def draw(self, batch, generators, dtype=torch.float64, dims=None):
        return super().draw(batch, generators[:1], dtype, dims)


@dataclass(frozen=True)
class Rounded(Line):
    def draw(self, batch, generators, dtype=torch.float64, dims=None):
        x, y = super().draw(batch, generators, dtype, dims)
        return x.float(), y.float()


@dataclass(frozen=True)
class Whole(Line):
    def draw(self, batch, generators, dtype=torch.float64):
        return super().draw(batch, generators, dtype)


@dataclass(frozen=True)
class Named(Line):
    def algorithms(self):
        return [Newton(3), Newton(4)]


@dataclass(frozen=True)
class Foreign(Line):
    def algorithms(self):
        return [ag.algorithms.Hops(3)]


@dataclass(frozen=True)
class Listed(Line):
    symmetries: Any = "add targets"


@dataclass(frozen=True)
class Read(Line):
    reader: Any = "linear"


class Undecorated(Line):
    nonzero: int = 3


@dataclass(frozen=True)
class Plain(AnyTask):
    """With its own tokens: y first, then x."""

    leak: bool = False
    forget: bool = False

    length = property(lambda self: 4)
    inputs = property(lambda self: 2)
    outputs = property(lambda self: 1)
    answers = slice(None)
    power = property(lambda self: 1.0)
    gradual = False

    def draw(self, batch, generators, dtype=torch.float64, dims=None):
        return normal(generators, batch, 4, 1, dtype=dtype), normal(generators, batch, 4, dtype=dtype)

    def encode(self, x, y):
        earlier = torch.nn.functional.pad(y[:, :-1], (1, 0))
        return torch.stack([x[..., 0], y if self.leak else earlier], -1)

    def decode(self, tokens):
        y = torch.nn.functional.pad(tokens[:, 1:, 1], (0, 1))
        return ag.Prompts(tokens[..., :1] * (not self.forget), y, 0.0, 1.0)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Noisy(2, 4), "Noisy.draw must take all randomness from its generators"),
        (Shared(2, 4), "Shared.draw must share prompts out evenly"),
        (Rounded(2, 4), "Rounded.draw must keep to the dtype torch.float64, got torch.float32"),
        (Whole(2, 4), "Whole.draw fails with TypeError: .*dims"),
        (Named(2, 4), "Named.algorithms must have different names"),
        (Foreign(2, 4), "Foreign.algorithms must be of the family of the task, Hops is not"),
        (Read(2, 4), "Read.reader must be a Reader, or None"),
        (Listed(2, 4), "Listed.symmetries must be a tuple of symmetries"),
        (Undecorated(2, 4), "Undecorated.class must be decorated with @dataclass"),
        (Plain(leak=True), "Plain.encode must not show a target up to the token that answers: target 0 does"),
        (Plain(forget=True), "Plain.decode must give back the x that was encoded"),
        ("linear", "str must extend Task"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("as_users_run_it")
def test_a_broken_task_is_named(task, message):
    with pytest.raises(testing.ContractError, match=message) as told:
        testing.check_task(task)
    assert "\n" not in str(told.value)


@dataclass(frozen=True)
class NoDecode(Line):
    decode = AnyTask.decode

    def algorithms(self):
        return []


@pytest.mark.usefixtures("as_users_run_it")
def test_a_task_may_have_no_decode_and_no_algorithms_and_is_told_where_they_are_needed():
    testing.check_task(Plain())
    task = NoDecode(2, 4)
    testing.check_task(task)
    with pytest.raises(ValueError, match="NoDecode must have a method decode, so that algorithms can be planted"):
        ag.controls.Planted(Newton(3), task)(torch.zeros(1, task.length, task.inputs))
    network = testing.build(Transformer(1, 1, 4), task)
    with pytest.raises(ValueError, match=r"algorithms must be given: NoDecode names none"):
        ag.identify(network, task, prompts=20, fit_on=20)


@dataclass(frozen=True)
class Broken(ag.Algorithm):
    how: str
    steps: int = 2

    def trace(self, prompts):
        trace = Newton(self.steps).trace(prompts)
        values, stages = trace.values, trace.stages
        match self.how:
            case "single":
                values = values.float()
            case "ahead":
                values = values + 0 * values + prompts.y.mean(1, keepdim=True)
            case "batch":
                values = values + prompts.y[:, :1].mean(0) * torch.arange(prompts.positions).clamp(max=1)
            case "random":
                values = values + torch.rand(())
            case "late":
                stages = tuple(range(1, self.steps + 2))
            case "wrong weights":
                return replace(trace, name=self.name, values=values + 1)
            case "inplace":
                prompts.x.add_(1)
        return ag.Trace(self.name, values, stages, prompts)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("single", "Broken.trace must be in float64, got torch.float32"),
        ("ahead", "Broken.trace must not know what is asked: the value at 0 depends on its target"),
        ("batch", "Broken.trace must treat a sequence alike in any batch"),
        ("random", "Broken.trace must be the same each time"),
        ("late", "Broken.stages must be the steps 0..K"),
        ("wrong weights", "Broken.weights must be those behind the values"),
        ("inplace", "Broken.trace must not change its prompts"),
    ],
)
def test_a_broken_algorithm_is_named(how, message):
    with pytest.raises(testing.ContractError, match=message):
        testing.check_algorithm(Broken(how), TASK)


def test_an_algorithm_of_another_family_is_named():
    with pytest.raises(testing.ContractError, match=r"Newton.family must be that of the task, 'graphs'"):
        testing.check_algorithm(Newton(3), Connectivity(nodes=5))


@dataclass(frozen=True)
class BrokenSymmetry(ag.Symmetry):
    how: str

    def change(self, prompts, generator):
        found = replace(prompts, y=-prompts.y)
        match self.how:
            case "random":
                found = replace(prompts, y=torch.rand(prompts.y.shape).to(prompts.y))
            case "short":
                found = replace(prompts, x=prompts.x[:, 1:], y=prompts.y[:, 1:])
            case "inplace":
                prompts.y.neg_()
        if self.how == "stages":
            return ag.symmetries.Change((prompts, found), lambda answers: (answers[1][0], answers[0][0]))
        if self.how == "empty":
            return ag.symmetries.Change((prompts, found), lambda answers: (answers[0], answers[0]))
        return ag.symmetries.Change((prompts, found), lambda answers: (answers[1], -answers[0]))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("random", "BrokenSymmetry.change must take all randomness from its generator"),
        ("short", "BrokenSymmetry.change must keep the shapes"),
        ("inplace", "BrokenSymmetry.change must not change its prompts"),
        ("stages", "BrokenSymmetry.law must give two tensors"),
        ("empty", "BrokenSymmetry.law must be one that answers can break"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_a_broken_symmetry_is_named(how, message):
    with pytest.raises(testing.ContractError, match=message):
        testing.check_symmetry(BrokenSymmetry(how), TASK)
    testing.check_symmetry(BrokenSymmetry("as it should be"), TASK)


@dataclass(frozen=True)
class Promising(ag.Algorithm):
    def keeps(self, symmetry):
        return True

    def trace(self, prompts):
        return replace(Newton([3], start=1e-3).trace(prompts), name=self.name, stages=(0,))


def test_a_law_that_is_promised_and_broken_is_named():
    with pytest.raises(testing.ContractError, match=r"Promising.keeps must not promise what it breaks: scale inputs"):
        testing.check_algorithm(Promising(), TASK)


class BrokenNetwork(ag.models.Network):
    stages = ("only",)

    def __init__(self, how, inputs, outputs):
        super().__init__()
        self.how, self.blocks = how, torch.nn.ModuleList()
        self.layer = torch.nn.Linear(inputs, outputs)

    def run(self, tokens, keep=()):
        outputs = self.layer(tokens)
        match self.how:
            case "batch":
                outputs = outputs + tokens.mean()
            case "single":
                outputs = outputs.float()
            case "narrow":
                outputs = outputs[..., :0]
        return outputs, {"only": outputs} if "only" in keep or self.how == "all states" else {}


@dataclass(frozen=True)
class BrokenModel(ag.models.Model):
    how: str

    def build(self, inputs, outputs, length, generator):
        if self.how == "global":
            return BrokenNetwork(self.how, inputs, outputs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0 if self.how == "fixed" else generator.initial_seed())
            return BrokenNetwork(self.how, inputs, outputs)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("global", "BrokenModel.build must take all randomness from its generator"),
        ("fixed", "BrokenModel.build must draw layer.weight anew for another generator"),
        ("batch", "BrokenNetwork.run must treat a sequence alike in any batch"),
        ("single", "BrokenNetwork.run must compute in float64"),
        ("narrow", "BrokenNetwork.run must give outputs"),
        ("all states", "BrokenNetwork.run must show no state that is not asked for"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_a_broken_model_is_named(how, message):
    with pytest.raises(testing.ContractError, match=message):
        testing.check_model(BrokenModel(how), TASK)
