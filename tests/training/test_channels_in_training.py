"""Graphs beyond the capacity of a model feed the heuristic, those within it the algorithm (Ye et al. 2026, Figure 4).

At the paper's size, 4,096 graphs and 10,000 steps at a rate of .1, the shares of the two channels are .79 and .19
without a limit, and .98 and .00 with diameters of at most 3. This is a smaller and shorter training.
"""

import torch

from algoscope.models import Disentangled
from algoscope.reading import channels, exact_match
from algoscope.tasks import Connectivity
from algoscope.training import Member, Settings
from algoscope.training.population import Population

GRAPHS = 512


def test_restricting_the_diameter_moves_the_weights_from_the_heuristic_to_the_algorithm():
    members = [Member(Connectivity(8, largest=limit, collection=GRAPHS), 0, 1.0) for limit in (None, 3)]
    options = {"batch": GRAPHS, "optimizer": "sgd", "warmup": 0, "clip": 1e9}
    population = Population.of(Disentangled(1), members, Settings(steps=500, **options), torch.device("cpu"))
    assert bool((weights_of(population).error > 0.95).all())
    for _ in range(500):
        population.step()
    found = weights_of(population)
    free, limited = range(2)
    assert 0.65 < float(found.algorithm_share[free]) < 0.85
    assert 0.15 < float(found.heuristic_share[free]) < 0.35
    assert float(found.algorithm_share[limited]) > 0.92
    assert float(found.heuristic_share[limited]) < 0.05
    chains = Connectivity(8, "two chains").sample(400, seed=0, dtype=torch.float32)
    network = Disentangled(1).build(8, 8, 8, torch.Generator())
    matched = []
    for weight in population.layout.full(population.state.parameters)["blocks.0.weight"]:
        network.load_state_dict({"blocks.0.weight": weight})
        with torch.no_grad():
            matched.append(float(exact_match(network(chains.x) > 0, chains.y).double().mean()))
    assert matched[free] < 0.05
    assert matched[limited] > 0.8


def weights_of(population: Population):
    return channels(population.layout.full(population.state.parameters)["blocks.0.weight"], 8)
