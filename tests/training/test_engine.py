"""A step that is compiled is the step that is written, and what was set for it is set back."""

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch._dynamo.utils import counters

from algoscope.models import Transformer
from algoscope.tasks import LinearRegression
from algoscope.training import Curriculum, Member, Settings
from algoscope.training.engine import prepare
from algoscope.training.population import Population

CPU = torch.device("cpu")
MEMBERS = [Member(LinearRegression(dim=2, examples=3), seed, 3e-3) for seed in range(2)]
SETTINGS = Settings(steps=30, batch=4, warmup=5, precision="fp64", curriculum=Curriculum(1, 2, 3), log_every=10)


def both() -> tuple[list[dict[str, torch.Tensor]], int]:
    """States fresh, prepared, and after 20 steps: of the step as it is written, then of the compiled one. And how many
    parts were compiled.

    The compiler traces it and cuts it into its parts; it does not make machine code of them, which takes half a minute.
    """
    torch.compile = functools.partial(torch.compile, backend="aot_eager")
    model, states = Transformer(layers=2, heads=2, width=8), []
    for compiled in (False, True):
        population = Population.of(model, MEMBERS, replace(SETTINGS, compile=compiled).on(CPU, MEMBERS[0].task), CPU)
        states.append({name: tensor.clone() for name, tensor in population.state.tensors().items()})
        step = prepare(population)
        states.append({name: tensor.clone() for name, tensor in population.state.tensors().items()})
        for _ in range(20):
            step()
        states.append(population.state.tensors())
    return states, counters["stats"]["unique_graphs"]


def test_a_compiled_step_is_the_written_one_and_preparing_it_changes_nothing():
    """In a process of its own: a compiler cannot see through the checks of types that tests have switched on."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        (_, _, written, fresh, prepared, compiled), parts = pool.submit(both).result()
    assert parts >= 5  # a block, the ends of the network, encoding, scores, the optimizer
    assert all(torch.equal(prepared[name], fresh[name]) for name in fresh)
    assert int(compiled["step"]) == 20
    assert not torch.equal(compiled["parameters"], fresh["parameters"])
    for name in ("parameters", "losses"):
        torch.testing.assert_close(compiled[name], written[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("precision", "matrices", "recurrent"),
    [("fp32", "highest", False), ("tf32", "high", True), ("bf16", "highest", True), ("fp64", "highest", False)],
)
def test_a_precision_is_that_of_every_product_while_a_step_is_prepared(monkeypatch, precision, matrices, recurrent):
    """An LSTM on a GPU asks cuDNN, which has a switch of its own."""
    seen = []

    def look(_: Population) -> None:
        seen.append((torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32))

    def nothing(_: object) -> None:
        pass

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    monkeypatch.setattr("algoscope.training.engine._compile", nothing)
    population = Population.of(Transformer(1, 1, 8), MEMBERS, replace(SETTINGS, precision=precision, compile=True), CPU)
    monkeypatch.setattr(population, "step", lambda: look(population))
    prepare(population)
    assert seen == [(matrices, recurrent)]
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before
