"""How a step of a population runs on its device.

On a CPU it runs as it is written, unless it is asked to compile. On a GPU the parts of the network (its blocks once
for all: they have one form) and the optimizer are compiled, and the whole step — sampling, forward, backward,
optimizer — is recorded once as a CUDA graph and then replayed: the host only starts it.
"""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import nn

from algoscope.models.kernels import deferred_grads
from algoscope.training.population import Population

WARM_UP = 3  # steps before recording, in which compilers compile and libraries choose


def prepare(population: Population) -> Callable[[], None]:
    """A function that advances the population by one step; calling this does not."""
    settings, on_gpu = population.settings, population.device.type == "cuda"
    if not on_gpu and not settings.compile:
        return population.step
    if on_gpu and population.device.index is not None:
        torch.cuda.set_device(population.device)  # graphs and kernels go to the current one
    if settings.compile:
        _compile(population)
    before = {name: tensor.clone() for name, tensor in population.state.tensors().items()}
    draws = [generator.get_state() for generator in population.generators]
    deferred = deferred_grads.own_buffers() if population.layout.deferred_grads else contextlib.nullcontext()
    # A program for each form of a part: more than the compiler allows unless asked.
    with _products(settings.precision), torch._dynamo.config.patch(recompile_limit=64), deferred:
        if on_gpu:
            advance = _record(population)
        else:
            population.step()
            advance = population.step
    population.state.restore(before)
    for generator, state in zip(population.generators, draws, strict=True):
        generator.set_state(state)
    return advance


def _compile(population: Population) -> None:
    network = population.network
    others = (part for part in network.children() if not isinstance(part, nn.ModuleList))
    for part in (*network.blocks, *others):
        part.compile(dynamic=False, fullgraph=True)
    ends = ((network, name) for name in network.ends)
    for owner, name in (*ends, (population, "encode"), (population, "score")):
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False, fullgraph=True))
    population.optimizer.compile()


def _record(population: Population) -> Callable[[], None]:
    """A CUDA graph of a step."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            population.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    for generator in population.generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        population.step()
    return graph.replay


@contextlib.contextmanager
def _products(precision: str) -> Iterator[None]:
    """Matrix products in tf32 where that is the precision, else in full; a recorded step keeps the choice. In bf16 an
    LSTM, which has no 16-bit form here, uses tf32.
    """
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision in ("bf16", "tf32")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
