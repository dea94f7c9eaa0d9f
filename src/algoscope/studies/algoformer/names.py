"""What the runs are called."""

STANDARD, LOOPED, ALGOFORMER = "standard", "looped", "AlgoFormer"
KINDS = (ALGOFORMER, LOOPED, STANDARD)
REPRESENTATION, AR_SERIES, CHAIN_OF_THOUGHT = "learned representation", "AR series", "chain of thought"
LOUD = "AR series, noise 1"  # as the text has it
MAIN = (REPRESENTATION, AR_SERIES, CHAIN_OF_THOUGHT)
NOISES = (0.0, 0.1, 1.0)
INJECTION = "none"  # the default of the study, chosen by measurement (docs/log.md)
OTHER_INJECTIONS = ("prompt", "pre")
NORMED, NORMED_INJECTIONS = "norm in the loop", ("none", "prompt")
TWICE, MOST = "twice", "most"  # as many loops as in training, and the most that are measured
COSTS = "costs"
DIM = 20  # of the paper's prompts: numbers that depend on sizes are judged there alone
FRESH = "by chance, AlgoFormer"  # untrained
VIEWS = {"last": "at the last number of examples", "mean": "mean over all numbers of examples"}
IN_WORDS = {
    REPRESENTATION: "regression on a learned representation",
    AR_SERIES: "AR(q) series on a learned representation",
    CHAIN_OF_THOUGHT: "chain of thought",
    LOUD: "AR(q) series on a learned representation with noise 1",
}


def run(kind: str, task: str, more: str = "") -> str:
    return f"{kind}, {task}" + (f", {more}" if more else "")


def linear(noise: float) -> str:
    return f"linear regression, noise {noise:g}"


def noisy(noise: float) -> str:
    """Regression with representation at a noise."""
    return f"{REPRESENTATION}, noise {noise:g}" if noise else REPRESENTATION


def injected(injection: str) -> str:
    return f"injection {injection}"


def normed(injection: str) -> str:
    return f"{injected(injection)}, {NORMED}" if injection != INJECTION else NORMED


def window(loops: int, scored: int) -> str:
    return f"{loops} loops, {scored} scored"


def longer(task: str) -> str:
    return f"{LONGER[task]:,} steps"


def longest(kind: str, task: str) -> str:
    steps, rate, _ = LONGEST[kind, task]
    return f"{steps:,} steps" + (f" at a rate of {rate:g}" if rate else "")


def lengths(kind: str, task: str) -> tuple[str, ...]:
    """What distinguishes runs that differ in how long they were trained, the shortest first."""
    more = (longer(task),) if task in LONGER else ()
    return ("", *more, *((longest(kind, task),) if (kind, task) in LONGEST else ()))


def planted(task: str) -> str:
    return f"planted, {task}"


def references(task: str) -> str:
    return f"known methods, {task}"


def least(task: str) -> str:
    return f"least possible, {task}"


# Steps that tell whether fewer are enough.
LONGER = {
    REPRESENTATION: 20_000,
    AR_SERIES: 15_000,
    CHAIN_OF_THOUGHT: 7_500,
    **{linear(noise): 10_000 for noise in NOISES},
}
# A third length, where two do not tell where errors end: its steps, their rate, if it is not the default (on linear
# regression 50,000 steps diverge at that: docs/log.md), and the seeds.
LONGEST = {(ALGOFORMER, linear(0.0)): (40_000, 1e-3, (0,)), (LOOPED, CHAIN_OF_THOUGHT): (20_000, None, (0, 1))}
TASKS = (*MAIN, LOUD, *map(linear, NOISES), *map(noisy, NOISES[1:]))
# Whose loops the instrument reads.
FOLLOWED = frozenset(
    run(kind, task, more) for kind in (LOOPED, ALGOFORMER) for task in TASKS for more in lengths(kind, task)
)
