"""The paper's claims, and those that were made about it: what each says, where, and the bounds that judge it."""

from algoscope.studies.claim import Claim
from algoscope.studies.graph_connectivity.findings import (
    LONG,
    at_distance,
    channel,
    each,
    exact,
    first_step,
    given_time,
    lifts,
    lifts_on_average,
    reach,
    reaches,
    worst_error,
)
from algoscope.studies.graph_connectivity.measures import CLIQUES, PATHS, RANDOM, chains
from algoscope.studies.graph_connectivity.plan import (
    BOTH,
    KINDS,
    LEVELS,
    by_hand_name,
    deep_name,
    one_layer_name,
    standard_name,
)

FREE, LIMITED = one_layer_name(), one_layer_name(3)
NEAR = 0.03  # how near a share has to come to the paper's
WEIGHTS = "of the weights after training: no graphs are asked; all seeds learn from one set of graphs"
LONG_CHAINS = "two chains of 3 edges, all answers about a graph right"
LONGER = chains(9)  # in the paper's setting of 20 nodes
SPARSE = "Sparse graphs (p = .1) need no limit."
TOLERATED = "15% of graphs beyond capacity do no harm to two chains."
NOT_TOLERATED = "35% of graphs beyond capacity do harm."


def near(paper: float) -> dict[str, float]:
    return {"at_least": paper - NEAR, "at_most": paper + NEAR}


def of_chains(name: str, sentence: str, where: str, run: str, paper: float, **bounds: float) -> Claim:
    """About the share of two chains of 3 edges that is wholly right."""
    return Claim(
        name, sentence, where, each(exact(LONG), run, **bounds), paper, LONG_CHAINS, what="of two chains known"
    )


SHARES = tuple(
    Claim(
        f"{part}-{arm}",
        f"{'Without a limit' if arm == 'free' else 'With diameters of at most 3'}, the {part} holds {paper:.0%} of the "
        "weights.",
        "Fig. 4",
        each(channel(part), run, **near(paper)),
        paper,
        WEIGHTS,
        headline=part == "algorithm",
        what="of the weights",
    )
    for arm, run, part, paper in (
        ("free", FREE, "algorithm", 0.813),
        ("free", FREE, "heuristic", 0.169),
        ("limited", LIMITED, "algorithm", 0.987),
        ("limited", LIMITED, "heuristic", 0.007),
    )
)

LEVER = (
    Claim(
        "two-channels",
        "The two channels explain the weights.",
        "Fig. 3",
        each(channel("error"), FREE, at_most=0.2),
        0.136,
        "projection error of the model without a limit; the bound of .2 is ours",
    ),
    Claim(
        "lever",
        "Training on diameters of at most 3 lifts exact match on two chains from 0 to 1.",
        "Fig. 5",
        lifts(exact(LONG), LIMITED, FREE, at_least=0.8),
        1.0,
        f"{LONG_CHAINS}; with the limit less without, p = .2",
        headline=True,
        what="more of them known",
    ),
    of_chains("too-tight", "A limit of 2 is too tight.", "Fig. 5", one_layer_name(2), 0.05, at_most=0.3),
    of_chains("not-so-tight", "A limit of 4 still serves.", "Fig. 5", one_layer_name(4), 0.92, at_least=0.8),
    of_chains("sparse", SPARSE, "Fig. 5", one_layer_name(chance=0.1), 1.0, at_least=0.95),
    of_chains("tolerated", TOLERATED, "Fig. 6", one_layer_name(3, beyond=0.15), 0.999, at_least=0.95),
    of_chains("not-tolerated", NOT_TOLERATED, "Fig. 6", one_layer_name(3, beyond=0.35), 0.139, at_most=0.5),
    Claim(
        "heuristic-fed",
        "With 75% of graphs beyond capacity the algorithm's share falls below three quarters.",
        "Fig. 6",
        each(channel("algorithm"), one_layer_name(3, beyond=0.75), at_most=0.75),
        0.627,
        WEIGHTS,
    ),
)

REACH = (
    *(
        Claim(
            f"by-hand-reach-{layers}",
            f"With W = I a model of {layers} layer{'s' * (layers > 1)} knows pairs up to {3**layers} hops apart, and "
            "no further.",
            "Thm. 4.3, 4.5, a control",
            each(reach(PATHS), by_hand_name(layers), at_least=float(3**layers), at_most=float(3**layers)),
            float(3**layers),
            "unions of paths",
        )
        for layers in (1, 2, 3)
    ),
    Claim(
        "reach-1",
        "A trained model of one layer reaches 3 hops.",
        "Fig. 12",
        each(reach(), LIMITED, at_least=3.0, at_most=3.0),
        3.0,
        "random graphs, 99% right at each distance",
    ),
    Claim(
        "no-further-1",
        "Trained within its capacity it says nothing about pairs that are further apart.",
        "Thm. 4.5, Fig. 12",
        each(at_distance(RANDOM, 1), LIMITED, at_most=0.1),
        0.0,
        "random graphs, right answers about pairs 4 hops apart",
    ),
    *(
        Claim(
            f"reach-{layers}",
            f"A trained model of {layers} layers reaches {3**layers} hops.",
            "Fig. 2",
            reaches(deep_name(layers)),
            float(3**layers),
            "unions of paths, 99% right at each distance; a shorter reach leaves it undecided, a longer one refutes it",
            why="the paper trains for 1,000,000 steps, ours are fewer.",
        )
        for layers in (2, 3)
    ),
    *(
        Claim(
            f"no-further-{layers}",
            f"A trained model of {layers} layers says nothing about pairs that are more than {3**layers} hops apart.",
            "Thm. 4.5, Fig. 2",
            each(at_distance(PATHS, 1), deep_name(layers), at_most=0.1),
            0.0,
            f"unions of paths, right answers about pairs {3**layers + 1} hops apart",
        )
        for layers in (2, 3)
    ),
    Claim(
        "two-channels-3",
        "The two channels explain the weights of each of three layers.",
        "Fig. 8",
        given_time(each(worst_error, deep_name(3), at_most=0.1)),
        0.065,
        "largest projection error",
        why="the paper trains for 1,000,000 steps, ours are fewer.",
    ),
    Claim(
        "limited-triples",
        "Trained within its capacity, the layer triples.",
        "ours",
        each(first_step("Tripling"), LIMITED, at_least=0.99),
        None,
        "random graphs",
        headline=True,
        what="of the answers are the same",
    ),
)


def small(norm: str, kind: str) -> tuple[str, str]:
    """The two arms of the reduced setting; "short" is a training that ends before they may meet again."""
    return standard_name(KINDS[kind], norm, True), standard_name(KINDS[kind], norm, False)


LARGE = tuple(standard_name(KINDS["large"], "before", limit) for limit in (True, False))
SETTING = "8 nodes, one layer of width 64, 8 seeds an arm at paper scale; mean over seeds by their spread; "
TIMES = {"small": "20,000 steps", "short": "3,000 steps"}
STANDARD = (
    *(
        Claim(
            f"{kind}-lever-{norm}",
            "The limit lifts exact match on two chains also for a small standard transformer "
            f"({LEVELS[norm]}, {TIMES[kind]}).",
            "ours, after Fig. 7",
            lifts_on_average(exact(LONG), *small(norm, kind), at_least=0.5),
            None,
            SETTING + TIMES[kind],
            headline=norm == "before",
            what="more of them known",
        )
        for norm in BOTH
        for kind in TIMES
    ),
    *(
        Claim(
            f"small-cliques-{norm}",
            f"The limit helps a small standard transformer with two cliques ({LEVELS[norm]}).",
            "ours, after Fig. 11",
            lifts_on_average(exact(CLIQUES), *small(norm, "small"), at_least=0.0),
            None,
            SETTING + TIMES["small"],
        )
        for norm in BOTH
    ),
    Claim(
        "standard-lever",
        "The limit lifts exact match on two chains of 10 nodes for the paper's standard transformer.",
        "Fig. 7",
        lifts_on_average(exact(LONGER), *LARGE, at_least=0.5),
        0.951,
        "20 nodes, two layers of width 512, pre-norm, 40,000 steps with Muon, one seed an arm",
        headline=True,
        what="more of them known",
        why="one seed an arm decides nothing: replications found that seeds differ.",
    ),
    *(
        Claim(
            f"standard-reach-{name}",
            f"The paper's standard transformer reaches 9 hops and no more, {words} the limit.",
            "Fig. 10",
            each(reach(enough=0.95), run, at_least=9.0, at_most=9.0),
            9.0,
            "random graphs, 95% right at each distance",
        )
        for name, words, run in zip(("limited", "free"), ("with", "without"), LARGE, strict=True)
    ),
)
CLAIMS = (*SHARES, *LEVER, *REACH, *STANDARD)
