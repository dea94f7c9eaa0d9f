"""The runs of the study: which models are trained on which graphs, at each scale.

The chance of an edge is 1.6/n unless it is varied: both settings that the paper states have it, n = 8 with p = .2 and
n = 20 with p = .08. Seeds differ in their fresh weights, and in their graphs where these are drawn anew in each step.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from algoscope.constructions import connectivity
from algoscope.models import Disentangled, Transformer
from algoscope.studies.graph_connectivity.measures import DEGREE, SIZES, measured
from algoscope.studies.study import Case, Training
from algoscope.tasks import Connectivity
from algoscope.training import Settings

NODES, CAPACITY, CHANCE = 8, 3, 0.2  # of the models of one layer
GRAPHS = 4096  # in their fixed set
MORE = (0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75)  # shares of graphs beyond capacity
LIMITS = (None, 3, 4)
CHANCES = (CHANCE, 0.1, 0.14, 0.24, 0.28, 0.32, 0.36, 0.4)
LEVELS = {"before": "pre-norm", "after": "post-norm"}


def one_layer(
    seeds: tuple[int, ...],
    limit: int | None = None,
    chance: float = CHANCE,
    beyond: float = 0.0,
    steps: int = 2000,
    graphs: int = GRAPHS,
    checkpoint_steps: tuple[int, ...] = (),
) -> Training:
    """By plain gradient descent on a fixed set of graphs, as in the paper; fewer steps are as much longer.

    2,000 steps at a rate of .5 end where 10,000 at .1 do (docs/log.md).
    """
    task = Connectivity(NODES, chance=chance, largest=limit, beyond=beyond, collection=graphs)
    settings = Settings(
        steps=steps, batch=graphs, optimizer="sgd", warmup=0, clip=1e9, precision="fp32", compile=False,
        checkpoint_steps=checkpoint_steps,
    )  # fmt: skip
    return Training(
        one_layer_name(limit, chance, beyond), task, Disentangled(1), settings, min(1000 / steps, 0.5), seeds
    )


def one_layer_name(limit: int | None = None, chance: float = CHANCE, beyond: float = 0.0) -> str:
    known = "" if chance == CHANCE else f", p {chance:.2f}"
    if beyond:
        return f"1 layer{known}, {beyond:.0%} beyond"
    return f"1 layer{known}, {limit_name(limit)}"


def limit_name(limit: int | None) -> str:
    return "no limit" if limit is None else f"limit {limit}"


def deep(layers: int, nodes: int, steps: int, batch: int, limit: bool = False, rate: float = 1e-2) -> Training:
    """A disentangled transformer of more layers, trained on fresh graphs in each step.

    The paper's rate is 1e-3, for 1,000,000 steps: ours are fewer and longer.
    """
    task = Connectivity(nodes, chance=DEGREE / nodes, largest=3**layers if limit else None)
    settings = Settings(
        steps=steps,
        batch=batch,
        optimizer="adamw",
        precision="tf32",
        betas=(0.9, 0.999),
        checkpoint_steps=on_the_way(steps),
    )
    return Training(deep_name(layers, limit), task, Disentangled(layers), settings, rate)


def deep_name(layers: int, limit: bool = False) -> str:
    return f"{layers} layers, {limit_name(3**layers if limit else None)}"


def on_the_way(steps: int) -> tuple[int, ...]:
    """Four steps in each of the last three powers of ten, of which the last is the end."""
    return tuple(sorted({max(round(steps * 10 ** (-k / 4)), 1) for k in range(13)}))


def standard(
    kind: str,
    norm: Literal["before", "after"],
    limit: bool,
    size: Mapping[str, Any],
    settings: Settings,
    rate: float,
    seeds: tuple[int, ...] = (0,),
) -> Training:
    """A standard transformer with the paper's attention, one head, on fresh graphs in each step."""
    nodes, layers, width = (size[name] for name in ("nodes", "layers", "width"))
    model = Transformer(layers, 1, width, attention="relu", mask="full", norm=norm, positions="none")
    task = Connectivity(nodes, chance=DEGREE / nodes, largest=3**layers if limit else None)
    return Training(standard_name(kind, norm, limit), task, model, settings, rate, seeds)


def standard_name(kind: str, norm: str, limit: bool) -> str:
    return f"{kind}, {LEVELS[norm]}, {'limit' if limit else 'no limit'}"


def arms(kind: str, norms: tuple[Literal["before", "after"], ...], *rest: Any, **more: Any) -> tuple[Training, ...]:
    """The two arms of the comparison, for each place of the norm."""
    return tuple(standard(kind, norm, limit, *rest, **more) for norm in norms for limit in (False, True))


def by_hand(layers: int, nodes: int) -> Case:
    """The control: Theorem 4.3 as a network, whose answer is known."""
    facts = {"model": "by hand", "layers": layers}
    return Case(by_hand_name(layers), lambda scale: facts | measured(connectivity(nodes, layers), nodes, SIZES[scale]))


def by_hand_name(layers: int) -> str:
    return f"by hand, {layers} layer{'s' if layers > 1 else ''}"


ADAMW = Settings(steps=1, batch=128, optimizer="adamw", weight_decay=1e-4, betas=(0.9, 0.999), precision="tf32")
MUON = replace(ADAMW, optimizer="muon")  # where time is short: a third of the steps or less (docs/log.md)
SMALL = {"nodes": NODES, "layers": 1, "width": 64}  # the reduced setting
LARGE = {"nodes": 20, "layers": 2, "width": 512}  # the paper's
BOTH: tuple[Literal["before", "after"], ...] = ("before", "after")
LONG = replace(
    MUON, steps=40_000, batch=1000, precision="bf16", checkpoint_steps=on_the_way(40_000)
)  # for the large ones
KINDS = {"small": "small standard", "short": "small standard, short", "large": "standard"}

SMOKE = (
    one_layer((0, 1), steps=20, graphs=64, checkpoint_steps=(5, 20)),
    one_layer((0, 1), 3, steps=20, graphs=64),
    one_layer((0,), 3, beyond=0.35, steps=20, graphs=64),
    standard(KINDS["small"], "before", False, {**SMALL, "width": 8}, replace(ADAMW, steps=10, batch=16), 1e-3),
    standard(KINDS["small"], "before", True, {**SMALL, "width": 8}, replace(ADAMW, steps=10, batch=16), 1e-3),
    by_hand(1, NODES),
)
LAPTOP = (
    one_layer((0, 1), checkpoint_steps=on_the_way(2000)),
    one_layer((0, 1), 3, checkpoint_steps=on_the_way(2000)),
    one_layer((0,), 2),
    one_layer((0,), 4),
    one_layer((0,), 3, beyond=0.15),
    one_layer((0,), 3, beyond=0.75),
    deep(2, 12, 3000, 64, rate=3e-2),
    *arms(KINDS["small"], ("before",), SMALL, replace(MUON, steps=1000), 3e-3, seeds=(0, 1, 2)),
    by_hand(1, NODES),
    by_hand(2, 12),
)
PAPER = (
    *(
        one_layer(
            (0, 1, 2), limit, chance, steps=10_000, checkpoint_steps=on_the_way(10_000) if chance == CHANCE else ()
        )
        for chance in CHANCES
        for limit in LIMITS
    ),
    one_layer((0, 1, 2), 2, steps=10_000),
    one_layer((0, 1, 2), 2, 0.28, steps=10_000),
    *(one_layer((0, 1, 2), 3, beyond=share, steps=10_000) for share in MORE),
    deep(2, 24, 100_000, 1000),
    deep(2, 24, 100_000, 1000, limit=True),
    deep(3, 64, 30_000, 1000),
    *arms(KINDS["short"], BOTH, SMALL, replace(ADAMW, steps=3000), 1e-3, seeds=tuple(range(8))),
    *arms(KINDS["small"], BOTH, SMALL, replace(ADAMW, steps=20_000), 1e-3, seeds=tuple(range(8))),
    *arms(KINDS["large"], ("before",), LARGE, LONG, 1e-3),
    *(by_hand(layers, nodes) for layers, nodes in ((1, NODES), (2, 24), (3, 64))),
)
RUNS = {"smoke": SMOKE, "laptop": LAPTOP, "paper": PAPER}
