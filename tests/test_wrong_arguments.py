"""Wrong arguments of the Python interface are named, in one line."""

from typing import Any

import numpy as np
import pytest
import torch

import algoscope as ag
from algoscope.instrument import Instrument
from algoscope.models import Transformer
from algoscope.tasks import LinearRegression

TASK = LinearRegression(dim=2, examples=4)
any_ag: Any = ag  # for calls that a type checker would refuse
any_task: Any = TASK


DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]


class Mine(torch.nn.Module):
    """Someone's own network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Linear(2, 1)

    def forward(self, tokens):
        return self.layers(tokens)


@pytest.mark.parametrize(
    "call",
    [
        lambda: any_ag.algorithms.Newton(steps=3).trace(3),
        lambda: any_ag.algorithms.BinarySearch(lookups=3).trace("x"),
        lambda: any_ag.algorithms.InterpolationSearch(low="a"),
        lambda: any_ag.algorithms.SimHash(bits=2**31),
        lambda: any_ag.algorithms.Newton(steps=int),
        lambda: any_ag.algorithms.Newton(steps=np.arange(4.0)),
        lambda: any_ag.algorithms.GradientDescent(steps=3, rate=10**400),
        lambda: any_ag.algorithms.OnFeatures("x", TASK),
        lambda: any_ag.controls.Planted(any_ag.algorithms.Newton(3), "x"),
        lambda: any_ag.controls.Planted("x", TASK),
        lambda: any_ag.models.Transformer(sink="no"),
        lambda: any_ag.tasks.LinearRegression(dim=np.zeros(3)),
        lambda: any_ag.tasks.LinearRegression(dim=10**400),
        lambda: any_ag.tasks.LinearRegression(noise=10**400),
        lambda: any_task.sample(2, seed=0, device="vulkan"),
        lambda: any_task.sample(2, seed=0).to("xpu"),
        lambda: any_ag.Prompts(torch.ones(2, 3, 2, dtype=torch.int64), torch.ones(2, 3)),
        lambda: any_ag.Prompts(torch.ones(2, 3, 2, dtype=torch.complex64), torch.ones(2, 3)),
        lambda: any_ag.Prompts(torch.ones(2, 3, 2, device="meta"), torch.ones(2, 3)),
        lambda: any_ag.Prompts(np.ones((2, 3, 2)), torch.ones(2, 3)),
        lambda: any_ag.Trace("x", None, (1,), TASK.sample(2, 0)),
        lambda: any_ag.Trace("x", torch.ones(1, 2, 5), (1,), 3),
        lambda: any_ag.Trace("x", torch.ones(1, 2, 5), 1, TASK.sample(2, 0)),
        lambda: any_ag.algorithms.Newton(3).trace(TASK.sample(2, 0)).select(1),
        lambda: any_ag.algorithms.Newton(3).trace(TASK.sample(2, 0)).select([]),
        lambda: any_ag.identify(Mine(), TASK, algorithms=5, stages=["layers"], prompts=30, fit_on=30),
        lambda: any_ag.identify(Mine(), TASK, stages=["layers"], prompts=30, fit_on=30, confidence=1 - 1e-16),
        lambda: any_ag.compare(*[any_ag.algorithms.Newton(3).trace(TASK.sample(2, 0))] * 2, resamples=10**9),
        lambda: any_ag.train(TASK, any_ag.models.Transformer(), 10, out=None),
        lambda: any_ag.load("a\0b"),
        lambda: any_ag.training.Curriculum(interval=torch.ones(2, 2)),
        lambda: any_ag.training.Settings(steps=3, compile=torch.tensor([1, 2])),
        lambda: any_ag.training.train_population(Transformer(), [3], any_ag.training.Settings(steps=3)),
        lambda: any_ag.training.train_population(Transformer(), [any_ag.training.Member(TASK)], None),
        lambda: any_ag.train(TASK, Transformer(), 10, seed=range(10**12)),
        lambda: any_ag.tasks.NumberSearch(folder=3),
        lambda: any_ag.tasks.VectorSearch(path=3),
        lambda: any_ag.tasks.HardSearch(base=1e90),
        lambda: any_ag.tasks.LinearRegression(noise=1e308),
        lambda: any_ag.tasks.LinearRegression(dim=2, covariance=[[10**400, 0], [0, 1]]),
        lambda: any_ag.identify(Mine(), TASK, stages=5),
        lambda: any_ag.identify(Mine(), TASK, stages=iter([])),
        lambda: any_ag.algorithms.Newton(np.array(3)),
        lambda: any_ag.algorithms.Newton(2**63),
        lambda: any_ag.algorithms.Newton(range(10**12)),
        lambda: any_ag.algorithms.GradientDescent(iter([1, 2])),
        lambda: any_ag.algorithms.OnlineGradientDescent().trace(any_ag.tasks.UniformSearch().sample(2, 0)),
        lambda: any_ag.controls.Planted(any_ag.algorithms.Newton(3), TASK)(None),
        lambda: any_task.sample(2, 0).to(dtype=3),
        lambda: any_ag.load("1" * 400),
        lambda: any_ag.train(TASK, Transformer(), 10, progress=torch.ones(2)),
        lambda: any_ag.identify(Mine(), TASK, stages=["layers"], weights=torch.ones(2)),
        lambda: any_ag.tasks.LinearRegression(noise=2**64),
        lambda: any_ag.algorithms.Ridge(ridge=2**64),
        lambda: any_ag.models.Transformer(mlp_ratio=1e308),
        lambda: any_ag.training.Settings(steps=3, log_every=10**10, checkpoint_every=10**10),
        lambda: any_ag.Prompts(torch.ones(2, 3, 2).to(torch.float8_e4m3fn), torch.ones(2, 3)),
        lambda: any_ag.Trace("x", torch.ones(1, 2, 5, device="meta"), (1,), TASK.sample(2, 0)),
        lambda: any_ag.Trace(DEEP, torch.ones(1, 2, 5), (1,), TASK.sample(2, 0)),
        lambda: any_ag.models.Transformer(norm=DEEP),
        lambda: any_task.sample(2, seed=0, purpose=DEEP),
        lambda: any_task.sample(2, seed=0, device=DEEP),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_wrong_arguments_are_named_in_one_line(call):
    with pytest.raises(ValueError, match=r"^\w+ must|^\w+ takes") as refusal:
        call()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": 3}, "path must be"),
        ({"path": None}, "path must be"),
        ({"path": "icl-linear-regresion"}, "did you mean 'icl-linear-regression'"),
        ({"member": "0"}, "member must be"),
        ({"member": True}, "member must be"),
        ({"member": -1}, "member must be"),
        ({"member": 2}, "member must be between 0 and 1"),
        ({"member": 0.0}, "member must be"),
        ({"device": "abacus"}, "device must be"),
        ({"device": 3.5}, "device must be"),
        ({"step": "last"}, "step must be"),
        ({"step": 3}, "step must be one whose weights were saved"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_load_checks_its_arguments(tmp_path, arguments, words):
    model = Transformer(layers=1, heads=1, width=4)
    run = ag.train(TASK, model, 4, seed=[0, 1], batch=2, out=tmp_path, device="cpu", curriculum=None)
    with pytest.raises(ValueError, match=words):
        ag.load(**({"path": run.path} | arguments))


def test_a_decomposition_that_fails_is_one_clear_line():
    class Singular(ag.Algorithm):
        def trace(self, prompts: ag.Prompts) -> ag.Trace:
            return ag.Trace("Singular", torch.linalg.inv(torch.zeros(2, 2))[None], (0,), prompts)

    with pytest.raises(ValueError, match="linear algebra failed") as refusal:
        Instrument(TASK, [Singular()], 31, 31, others=())
    assert "\n" not in str(refusal.value)
