"""The figures of the study, from its numbers. Some compare all models, others show the one that the reader chooses."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import altair as alt

from algoscope.report import charts, maps
from algoscope.studies.claim import Numbers
from algoscope.studies.graph_connectivity import published
from algoscope.studies.graph_connectivity.claims import FREE, LARGE, LIMITED, LONGER
from algoscope.studies.graph_connectivity.findings import LONG, reach
from algoscope.studies.graph_connectivity.measures import BEYOND, CHAINS, CLIQUES, RANDOM, WITHIN, chains
from algoscope.studies.graph_connectivity.plan import LIMITS, limit_name
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.shares import wilson

CHANNELS = ("algorithm", "heuristic")
CENTER = ("weights-free", "weights-limited", "shares", "chains")
OF = (*CHANNELS, "exact match")
STRONGEST = 0.5  # where colors end: the algorithm's weights are larger, the heuristic's about half of it


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; those that tell the story come first."""
    made = drawn(numbers, PLANS, ACROSS)
    return {name: made[name] for name in (*ACROSS, *PLANS) if name in made}


def models(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Every model with the name of its run."""
    for run, seeds in numbers.items():
        yield from ((run, model) for model in seeds.values())


def one_layer(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    for run, model in models(numbers):
        if model["model"] == "disentangled" and model["layers"] == 1:
            yield run, model


def _weights(numbers: Numbers, run: str) -> Rows:
    """The matrix of the first seed, entry by entry."""
    for model in list(numbers.get(run, {}).values())[:1]:
        for entries in model["weights"].values():
            for i, row in enumerate(entries):
                yield from ({"row": i + 1, "column": j + 1, "value": value} for j, value in enumerate(row))


def _shares(numbers: Numbers) -> Rows:
    """Each seed is a dot."""
    for run, model in one_layer(numbers):
        if model["chance"] == 0.2:
            for part in CHANNELS:
                share = model["channels"][-1][part]
                yield {"row": run, "series": part, "x": share, "low": share, "high": share}


def _answered(found: Iterator[tuple[str, Numbers]], kinds: tuple[str, ...]) -> Rows:
    """Exact match of every seed of the runs of a model."""
    for run, model in found:
        for row in model["answers"]:
            if row["graphs"] in kinds or (row["graphs"].startswith(CHAINS) and CHAINS in kinds):
                yield {"row": run, "series": row["graphs"], "x": row["exact"], "low": row["low"], "high": row["high"]}


def _spread(points: Iterator[tuple[str, float, float]]) -> Rows:
    """Of values of seeds by series and x: their mean, and how far they spread; no curve has one point only."""
    found: dict[str, dict[float, list[float]]] = {}
    for series, x, value in points:
        found.setdefault(series, {}).setdefault(x, []).append(value)
    for series, curve in found.items():
        for x, values in sorted(curve.items()) if len(curve) > 1 else ():
            yield {"series": series, "x": x, "y": sum(values) / len(values), "low": min(values), "high": max(values)}


def _theirs(series: str, curve: Mapping[Any, int | float]) -> Rows:
    yield from ({"series": series, "by": "paper", "x": x, "y": y} for x, y in curve.items())


def _exact(model: Numbers) -> dict[str, float]:
    return {row["graphs"]: row["exact"] for row in model["answers"]}


def _by_chance(numbers: Numbers, edges: int) -> Rows:
    """Exact match on two chains by the chance of an edge, the mean over seeds beside the paper's."""
    found = [model for _, model in one_layer(numbers) if not model["beyond"] and model["largest"] in LIMITS]
    points = ((limit_name(model["largest"]), model["chance"], _exact(model)[chains(edges)]) for model in found)
    yield from (ours := list(_spread(points)))
    for limit in LIMITS if ours else ():
        yield from _theirs(limit_name(limit), published.chains(edges, limit))


def _answered_by_chance(numbers: Numbers) -> Rows:
    """Exact match on random graphs of p = .2, by the chance of an edge in training."""
    found = [model for _, model in one_layer(numbers) if model["largest"] in (3, 4) and not model["beyond"]]
    yield from _spread(
        (f"{kind}, limit {model['largest']}", model["chance"], share)
        for model in found
        for kind, share in _exact(model).items()
        if kind in (RANDOM, WITHIN, BEYOND)
    )


def _by_beyond(numbers: Numbers) -> Rows:
    """By the share of graphs beyond capacity: the channels, and exact match on two chains, beside the paper's."""
    found = [model for _, model in one_layer(numbers) if model["largest"] == 3 and model["chance"] == 0.2]
    values = [{**model["channels"][-1], "exact match": _exact(model)[LONG]} for model in found]
    points = (
        (name, m["beyond"], row[name]) for m, row in zip(found, values, strict=True) for name in row if name in OF
    )
    yield from (ours := list(_spread(points)))
    for name, column in (("algorithm", "algorithm_share"), ("exact match", "exact")) if ours else ():
        yield from _theirs(name, published.mixtures(column))


def _reach_by_steps(numbers: Numbers) -> Rows:
    """How far a model knows everything, on the way of its training, beside the paper's."""
    for run, model in models(numbers):
        standard = model["model"] == "standard"
        if model["layers"] > 1 and model.get("along"):
            for row in model["along"]:
                found = reach(enough=0.95 if standard else 0.99)(row)
                value, low, high = (max(end, 0.0) for end in found[:3])  # below 0 it does not even know itself
                yield {"series": run, "x": row["step"], "y": value, "low": low, "high": high}
            if standard == (model["largest"] is not None):  # the paper's curves are of these
                yield from _theirs(run, published.reach("standard" if standard else f"{model['layers']} layers"))


def _channels_by_steps(numbers: Numbers) -> Rows:
    """The shares of both channels in the weights of a model of one layer, over training, beside the paper's."""
    for run in (FREE, LIMITED):
        named = {part: f"{part}, {run.removeprefix('1 layer, ')}" for part in CHANNELS}
        yield from _spread(
            (words, float(row["step"]), row["channels"][0][part])
            for part, words in named.items()
            for model in numbers.get(run, {}).values()
            for row in model.get("along", ())
        )
        for words in named.values() if run in numbers else ():
            yield from _theirs(words, published.training(4).get(words, {}))


def _errors_by_steps(numbers: Numbers) -> Rows:
    """What the two channels leave of each layer's weights, over training, beside the paper's."""
    theirs = {"1 layer, layer 1": (3, "projection error")}
    theirs |= {f"3 layers, layer {k}": (8, f"projection error of layer {k}") for k in (1, 2, 3)}
    for run, seeds in numbers.items():
        model = seeds.get("0", {})
        if model.get("along") and model["largest"] is None:
            size = run.partition(",")[0]
            for row in model["along"]:
                for stage in row.get("channels", ()):
                    yield {"series": f"{size}, {stage['stage']}", "x": row["step"], "y": stage["error"]}
            for words, (figure, series) in theirs.items():
                if words.startswith(size):
                    yield from _theirs(words, published.training(figure)[series])


def _equivariance_by_steps(numbers: Numbers) -> Rows:
    """How alike the states of the last layer are with the nodes in another order, over training."""
    for run, model in models(numbers):
        for row in model.get("along", ()) if model["layers"] > 1 else ():
            last = row["equivariance"][-1]
            yield {"series": run, "x": row["step"], "y": last["cosine"], "low": last["low"], "high": last["high"]}


def _standard_by_steps(numbers: Numbers, figure: int, named: Mapping[tuple[str, str], str]) -> Rows:
    """Exact match of the paper's standard transformer over training, by run and kind of graphs, beside the paper's."""
    for (run, kind), series in named.items():
        for model in numbers.get(run, {}).values():
            for row in model.get("along", ()):
                for found in (found for found in row["answers"] if found["graphs"] == kind):
                    ends = {"low": found["low"], "high": found["high"]}
                    yield {"series": series, "x": row["step"], "y": found["exact"], **ends}
            yield from _theirs(series, published.training(figure).get(series, {}))


def _by_distance(model: Numbers) -> Rows:
    for row in model["by_distance"]:
        if row["distance"] != "apart":
            numbers = {"x": row["distance"], "y": row["accuracy"], "low": row["low"], "high": row["high"]}
            yield {"series": row["graphs"], **numbers}


def _levels(model: Numbers) -> Rows:
    """How near each stage comes to each algorithm, at its best step."""
    trace = model["traces"][RANDOM]
    for i, stage in enumerate(trace["stages"]):
        for name, found in trace["maps"].items():
            share = max(found["similarity"][i])
            low, high = wilson(share, trace["n"])  # also where no graph fails
            yield {"row": stage, "series": name, "x": share, "low": low, "high": high}
        null = next(iter(trace["maps"].values()))["null"][i]
        yield {"row": stage, "series": "the null", "x": null, "low": null, "high": null}


def _blocks(model: Numbers, layer: int) -> Rows:
    """How strongly each block of the stream attends to each in the algorithm's channel, over the strongest."""
    channels = model.get("channels", ())
    if 1 < len(channels) >= layer:
        entries = channels[layer - 1]["A"]
        most = max(abs(value) for row in entries for value in row) or 1.0
        for i, row in enumerate(entries):
            yield from ({"row": i + 1, "column": j + 1, "value": value / most} for j, value in enumerate(row))


def _blocks_of(layer: int) -> Plan:
    title = f"Layer {layer}: which block attends to which (Fig. 9)"
    return lambda model: _blocks(model, layer), lambda rows: maps.matrix(rows, title, "over the largest", 1.0)


def _written(run: str, title: str) -> Plan:
    return lambda numbers: _weights(numbers, run), lambda rows: maps.matrix(rows, title, "weight", STRONGEST)


def _dots(x: str, title: str, legend: str) -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: charts.dots(rows, x, title, legend)


def _over_training(figure: int, named: Mapping[tuple[str, str], str], title: str, legend: str) -> Plan:
    draw = curves("steps", "exact match", f"Standard: {title} (Fig. {figure})", log_x=True, legend=legend)
    return lambda numbers: _standard_by_steps(numbers, figure, named), draw


ARMS = {"limit": LARGE[0], "no limit": LARGE[1]}
ACROSS: dict[str, Plan] = {
    "weights-free": _written(FREE, "W, trained on all graphs (Fig. 3)"),
    "weights-limited": _written(LIMITED, "W, trained on diameters up to 3"),
    "shares": (_shares, _dots("share of the weights", "The two channels, a dot a seed (Fig. 4)", "channel")),
    "chains": (
        lambda numbers: _answered((each for each in one_layer(numbers) if each[1]["chance"] == 0.2), (CHAINS, WITHIN)),
        _dots("exact match", "Graphs about which all is right (Fig. 5, 6, 12)", "graphs"),
    ),
    "beyond": (
        _by_beyond,
        curves("share of training graphs beyond capacity", "share", "Beyond capacity (Fig. 6)", legend="of"),
    ),
    **{
        f"chance-{edges}": (
            lambda numbers, edges=edges: _by_chance(numbers, edges),
            curves("chance of an edge", "exact match", f"Two chains of {edges} edges (Fig. 5)", legend="with"),
        )
        for edges in (2, 3)
    },
    "channels-by-steps": (
        _channels_by_steps,
        curves("steps", "share of the weights", "Channels over training (Fig. 4)", log_x=True, legend="channel"),
    ),
    "errors-by-steps": (
        _errors_by_steps,
        curves("steps", "projection error", "What the channels leave (Fig. 3, 8)", log_x=True, legend="layer"),
    ),
    "random-by-chance": (
        _answered_by_chance,
        curves("chance of an edge in training", "exact match", "Random graphs (Fig. 12)", legend="graphs"),
    ),
    "reach": (
        _reach_by_steps,
        curves("steps of training", "hops", "Reach (Fig. 2, 10)", log_x=True, legend="model"),
    ),
    "equivariance-by-steps": (
        _equivariance_by_steps,
        curves("steps", "cosine", "Nodes in another order, over training (Fig. 8, 10)", log_x=True, legend="model"),
    ),
    "standard-by-steps": _over_training(
        1,
        {(LARGE[1], kind): name for kind, name in ((RANDOM, RANDOM), (LONGER, CHAINS), (CLIQUES, CLIQUES))},
        "all graphs, over training",
        "graphs",
    ),
    "chains-by-steps": _over_training(
        7, {(run, LONGER): arm for arm, run in ARMS.items()}, "two chains over training", "with"
    ),
    "cliques-by-steps": _over_training(
        11, {(run, CLIQUES): arm for arm, run in ARMS.items()}, "two cliques over training", "with"
    ),
    "arms": (
        lambda numbers: _answered(
            (each for each in models(numbers) if each[1]["model"] == "standard"), (CHAINS, CLIQUES, WITHIN)
        ),
        _dots("exact match", "Standard transformers, a dot a seed (Fig. 7, 11)", "graphs"),
    ),
}
PLANS: dict[str, Plan] = {
    "by-distance": (
        _by_distance,
        curves("hops apart", "right answers", "Right answers by distance", domain=(0.0, 1.0), legend="graphs"),
    ),
    "levels": (_levels, _dots("same answers", "Every algorithm at its best step", "algorithm")),
    **{f"blocks-{layer}": _blocks_of(layer) for layer in (1, 2, 3)},
}
