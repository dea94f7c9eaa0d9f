"""The figures of the study, from its numbers. Some compare all models, others show the one that the reader chooses."""

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt

from algoscope.report import charts
from algoscope.studies.claim import Numbers
from algoscope.studies.graph_connectivity import published
from algoscope.studies.graph_connectivity.claims import FREE, LARGE, LIMITED, LONGER
from algoscope.studies.graph_connectivity.findings import LONG, reach
from algoscope.studies.graph_connectivity.measures import BEYOND, CHAINS, CLIQUES, RANDOM, WITHIN, chains
from algoscope.studies.plans import Plan, Rows, curves, drawn
from algoscope.studies.shares import wilson

CHANNELS = ("algorithm", "heuristic")
CENTER = ("weights-free", "weights-limited", "shares", "chains")
LAWS = ("Hops", "Tripling", "Squaring", "LabelPropagation")
STRONGEST = 0.5  # where colors end: the algorithm's weights are larger, the heuristic's about half of it


def figures(numbers: Numbers) -> dict[str, alt.LayerChart]:
    """By name; those that tell the story come first."""
    made = drawn(numbers, PLANS, ACROSS)
    return {name: made[name] for name in (*ACROSS, *PLANS) if name in made}


def models(numbers: Numbers) -> Iterator[tuple[str, str, Numbers]]:
    """Every model with the name of its run and its seed."""
    for run, seeds in numbers.items():
        yield from ((run, seed, model) for seed, model in seeds.items())


def one_layer(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    for _, seed, model in models(numbers):
        if model["model"] == "disentangled" and model["layers"] == 1:
            yield seed, model


def _weights(numbers: Numbers, run: str) -> Rows:
    """The matrix of the first seed, entry by entry."""
    for model in list(numbers.get(run, {}).values())[:1]:
        for entries in model["weights"].values():
            for i, row in enumerate(entries):
                yield from ({"row": i + 1, "column": j + 1, "value": value} for j, value in enumerate(row))


def _shares(numbers: Numbers) -> Rows:
    """Each seed is a dot."""
    for run, _, model in models(numbers):
        if model["model"] == "disentangled" and model["chance"] == 0.2 and model["layers"] == 1:
            for part in CHANNELS:
                share = model["channels"][-1][part]
                yield {"row": run, "series": part, "x": share, "low": share, "high": share}


def _answered(numbers: Numbers, kinds: tuple[str, ...], wanted: str) -> Rows:
    """Exact match of every seed of the runs of a model."""
    for run, _, model in models(numbers):
        if model["model"] != wanted or (wanted == "disentangled" and (model["chance"] != 0.2 or model["layers"] != 1)):
            continue
        for row in model["answers"]:
            if row["graphs"] in kinds or (row["graphs"].startswith(CHAINS) and CHAINS in kinds):
                yield {"row": run, "series": row["graphs"], "x": row["exact"], "low": row["low"], "high": row["high"]}


def _by_chance(numbers: Numbers, edges: int) -> Rows:
    """Exact match on two chains by the chance of an edge, the mean over seeds beside the paper's."""
    for limit in (3, 4, None):
        words, ours = "no limit" if limit is None else f"limit {limit}", {}
        for _, model in one_layer(numbers):
            if model["largest"] == limit and not model["beyond"]:
                found = next(row for row in model["answers"] if row["graphs"] == chains(edges))
                ours.setdefault(model["chance"], []).append(found["exact"])
        if len(ours) > 1:
            yield from _spread(words, ours)
            yield from (
                {"series": words, "by": "paper", "x": x, "y": y} for x, y in published.chains(edges, limit).items()
            )


def _answered_by_chance(numbers: Numbers) -> Rows:
    """Exact match on random graphs of p = .2, by the chance of an edge in training."""
    ours: dict[str, dict[float, list[float]]] = {}
    for _, model in one_layer(numbers):
        if model["largest"] in (3, 4) and not model["beyond"]:
            for row in model["answers"]:
                if row["graphs"] in (RANDOM, WITHIN, BEYOND):
                    words = f"{row['graphs']}, limit {model['largest']}"
                    ours.setdefault(words, {}).setdefault(model["chance"], []).append(row["exact"])
    for words, curve in ours.items():
        if len(curve) > 1:
            yield from _spread(words, curve)


def _shares_by_chance(numbers: Numbers) -> Rows:
    for limit in (3, 4, None):
        for part in CHANNELS:
            ours: dict[float, list[float]] = {}
            for _, model in one_layer(numbers):
                if model["largest"] == limit and not model["beyond"]:
                    ours.setdefault(model["chance"], []).append(model["channels"][-1][part])
            words = "no limit" if limit is None else f"limit {limit}"
            if len(ours) > 1:
                yield from _spread(f"{part}, {words}", ours)


def _by_beyond(numbers: Numbers) -> Rows:
    """By the share of graphs beyond capacity: the channels, and exact match on two chains, beside the paper's."""
    ours: dict[str, dict[float, list[float]]] = {}
    for _, model in one_layer(numbers):
        if model["largest"] == 3 and model["chance"] == 0.2:
            found = {part: model["channels"][-1][part] for part in CHANNELS}
            found["exact match"] = next(row["exact"] for row in model["answers"] if row["graphs"] == LONG)
            for name, value in found.items():
                ours.setdefault(name, {}).setdefault(model["beyond"], []).append(value)
    if not ours or len(ours["algorithm"]) < 2:
        return
    for name, curve in ours.items():
        yield from _spread(name, curve)
    for name, column in (("algorithm", "algorithm_share"), ("exact match", "exact")):
        yield from ({"series": name, "by": "paper", "x": x, "y": y} for x, y in published.mixtures(column).items())


def _spread(series: str, curve: dict[float, list[float]]) -> Rows:
    """The mean over seeds, and how far they spread."""
    for x, found in sorted(curve.items()):
        yield {"series": series, "x": x, "y": sum(found) / len(found), "low": min(found), "high": max(found)}


def _reach_by_steps(numbers: Numbers) -> Rows:
    """How far a model knows everything, on the way of its training, beside the paper's."""
    for run, _, model in models(numbers):
        standard = model["model"] == "standard"
        if model["layers"] > 1 and model.get("along"):
            for row in model["along"]:
                found = reach(enough=0.95 if standard else 0.99)(row)
                if found is not None:
                    value, low, high = (max(end, 0.0) for end in found[:3])  # below 0 it does not even know itself
                    yield {"series": run, "x": row["step"], "y": value, "low": low, "high": high}
            name = "standard" if standard else f"{model['layers']} layers"
            if standard == (model["largest"] is not None):  # the paper's curves are of these
                yield from ({"series": run, "by": "paper", "x": x, "y": y} for x, y in published.reach(name).items())


def _channels_by_steps(numbers: Numbers) -> Rows:
    """The shares of both channels in the weights of a model of one layer, over training, beside the paper's."""
    for run in (FREE, LIMITED):
        ours: dict[str, dict[float, list[float]]] = {}
        for model in numbers.get(run, {}).values():
            for row in model.get("along", ()):
                for part in CHANNELS:
                    ours.setdefault(part, {}).setdefault(float(row["step"]), []).append(row["channels"][0][part])
        for part, curve in ours.items():
            words = f"{part}, {run.removeprefix('1 layer, ')}"
            yield from _spread(words, curve)
            theirs = published.training(4).get(words, {})
            yield from ({"series": words, "by": "paper", "x": x, "y": y} for x, y in theirs.items())


def _errors_by_steps(numbers: Numbers) -> Rows:
    """What the two channels leave of each layer's weights, over training."""
    for run, seed, model in models(numbers):
        if model.get("along") and model["largest"] is None and seed == "0":
            for row in model["along"]:
                for stage in row.get("channels", ()):
                    words = f"{run.partition(',')[0]}, {stage['stage']}"
                    yield {"series": words, "x": row["step"], "y": stage["error"]}
            for words, figure, series in (
                ("1 layer, layer 1", 3, "projection error"),
                *((f"3 layers, layer {k}", 8, f"projection error of layer {k}") for k in (1, 2, 3)),
            ):
                if words.startswith(run.partition(",")[0]):
                    curve = published.training(figure)[series]
                    yield from ({"series": words, "by": "paper", "x": x, "y": y} for x, y in curve.items())


def _unlimited_by_steps(numbers: Numbers) -> Rows:
    """What the paper's standard transformer knows over training on all graphs, beside the paper's."""
    kinds = {RANDOM: RANDOM, LONGER: CHAINS, CLIQUES: CLIQUES}
    for model in numbers.get(LARGE[1], {}).values():
        for row in model.get("along", ()):
            for found in row["answers"]:
                if found["graphs"] in kinds:
                    ends = {"low": found["low"], "high": found["high"]}
                    yield {"series": kinds[found["graphs"]], "x": row["step"], "y": found["exact"], **ends}
        for words, curve in published.training(1).items():
            yield from ({"series": words, "by": "paper", "x": x, "y": y} for x, y in curve.items())


def _equivariance_by_steps(numbers: Numbers) -> Rows:
    """How alike the states of the last layer are with the nodes in another order, over training."""
    for run, _, model in models(numbers):
        if model.get("along") and model["layers"] > 1:
            for row in model["along"]:
                last = row["equivariance"][-1]
                yield {"series": run, "x": row["step"], "y": last["cosine"], "low": last["low"], "high": last["high"]}


def _standard_by_steps(numbers: Numbers, kinds: tuple[str, ...], figure: int) -> Rows:
    """Exact match of a standard transformer over training, beside the paper's."""
    for run, _, model in models(numbers):
        if model["model"] == "standard":
            words = run.rpartition(", ")[2]
            for row in model.get("along", ()):
                for found in row["answers"]:
                    if found["graphs"] in kinds:
                        ends = {"low": found["low"], "high": found["high"]}
                        yield {"series": words, "x": row["step"], "y": found["exact"], **ends}
            if model.get("along"):
                theirs = published.training(figure).get(words, {})
                yield from ({"series": words, "by": "paper", "x": x, "y": y} for x, y in theirs.items())


def _by_distance(model: Numbers) -> Rows:
    for row in model["by_distance"]:
        if row["distance"] != "apart":
            numbers = {"x": row["distance"], "y": row["accuracy"], "low": row["low"], "high": row["high"]}
            yield {"series": row["graphs"], **numbers}


def _stage(stage: str) -> str:
    """In words that sort: the embedding is layer 0."""
    return "0" if stage == "embedding" else stage.removeprefix("layer ")


def _map(model: Numbers, name: str) -> Rows:
    trace = model["traces"][RANDOM]
    found = trace["maps"][name]
    for i, stage in enumerate(trace["stages"]):
        for j, step in enumerate(found["steps"]):
            none = found["none"][i]
            marks = {"best": step == found["best"][i] and not none, "tie": step in found["ties"][i], "none": none}
            yield {"stage": _stage(stage), "step": step, **marks,
                   **{part: found[part][i][j] for part in ("similarity", "low", "high")}}  # fmt: skip


def _levels(model: Numbers) -> Rows:
    """How near each stage comes to each algorithm, at its best step."""
    trace = model["traces"][RANDOM]
    for i, stage in enumerate(trace["stages"]):
        for name, found in trace["maps"].items():
            j = max(range(len(found["steps"])), key=found["similarity"][i].__getitem__)
            share = found["similarity"][i][j]
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
    return lambda model: _blocks(model, layer), lambda rows: charts.matrix(rows, title, "over the largest", 1.0)


def _equivariance(model: Numbers) -> Rows:
    for k, row in enumerate(model["equivariance"]):
        yield {"series": "cosine", "x": k, "y": row["cosine"], "low": row["low"], "high": row["high"]}


def _patched(model: Numbers) -> Rows:
    for k, row in enumerate(model.get("patched", ())):
        answers = {"y": row["survives"], "low": row["low"], "high": row["high"]}
        yield {"series": "of the foreign answer survives", "x": k, **answers}
        others = {"y": row["flips"], "low": row["flips_low"], "high": row["flips_high"]}
        yield {"series": "of answers about other nodes change", "x": k, **others}


def _written(run: str, title: str) -> Plan:
    return lambda numbers: _weights(numbers, run), lambda rows: charts.matrix(rows, title, "weight", STRONGEST)


def _map_of(name: str, title: str) -> Plan:
    return lambda model: _map(model, name), lambda rows: charts.similarity_map(rows, "layer", "step", title, "answers")


def _dots(x: str, title: str, legend: str) -> Callable[[list[dict[str, Any]]], alt.LayerChart]:
    return lambda rows: charts.dots(rows, x, title, legend)


TITLES = {"Hops": "hops", "Tripling": "tripling", "Squaring": "squaring", "LabelPropagation": "label propagation"}
ACROSS: dict[str, Plan] = {
    "weights-free": _written(FREE, "W, trained on all graphs (Fig. 3)"),
    "weights-limited": _written(LIMITED, "W, trained on diameters up to 3"),
    "shares": (_shares, _dots("share of the weights", "The two channels, a dot a seed (Fig. 4)", "channel")),
    "chains": (
        lambda numbers: _answered(numbers, (CHAINS, WITHIN), "disentangled"),
        _dots("exact match", "Graphs about which all is right (Fig. 5, 6, 12)", "graphs"),
    ),
    "beyond": (
        _by_beyond,
        curves("share of training graphs beyond capacity", "share", "Beyond capacity (Fig. 6)", legend="of"),
    ),
    "shares-by-chance": (
        _shares_by_chance,
        curves("chance of an edge", "share of the weights", "Channels by density", legend="channel"),
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
    "standard-by-steps": (
        _unlimited_by_steps,
        curves("steps", "exact match", "Standard, all graphs, over training (Fig. 1)", log_x=True, legend="graphs"),
    ),
    "chains-by-steps": (
        lambda numbers: _standard_by_steps(numbers, (LONGER,), 7),
        curves("steps", "exact match", "Standard: two chains over training (Fig. 7)", log_x=True, legend="with"),
    ),
    "cliques-by-steps": (
        lambda numbers: _standard_by_steps(numbers, (CLIQUES,), 11),
        curves("steps", "exact match", "Standard: two cliques over training (Fig. 11)", log_x=True, legend="with"),
    ),
    "arms": (
        lambda numbers: _answered(numbers, (CHAINS, CLIQUES, WITHIN), "standard"),
        _dots("exact match", "Standard transformers, a dot a seed (Fig. 7, 11)", "graphs"),
    ),
}  # fmt: skip
PLANS: dict[str, Plan] = {
    "by-distance": (
        _by_distance,
        curves("hops apart", "right answers", "Right answers by distance", domain=(0.0, 1.0), legend="graphs"),
    ),
    **{f"map-{name}": _map_of(name, f"Same answers: {TITLES[name]}") for name in LAWS},
    "levels": (_levels, _dots("same answers", "Every algorithm at its best step", "algorithm")),
    **{f"blocks-{layer}": _blocks_of(layer) for layer in (1, 2, 3)},
    "equivariance": (_equivariance, curves("layer", "cosine", "With the nodes in another order (Fig. 8, 10)")),
    "patched": (_patched, curves("after layer", "share", "One node's state from another graph", legend="share")),
}
