"""A verdict in words: one paragraph, whose first sentence says it in short."""

import math
from collections.abc import Sequence

from algoscope.trace import Stage
from algoscope.verdict import SHOWN, Pair, StageVerdict, Verdict, str_last

MANY = 3  # methods that are tied, by name


def in_words(verdict: Verdict) -> str:
    """One paragraph; its first sentence says it in short."""
    held = [found for found in verdict.stages if not found.null]
    if not held:
        return f"No stage beats the null: none of the {len(verdict.algorithms)} algorithms was found."
    sentences = [
        _summary(verdict, held),
        _excluded(verdict, held),
        *_closest(verdict, held),
        *_open(verdict, held),
        _empty(verdict),
        _rates(verdict),
        _rest(verdict, held),
    ]
    return " ".join(dict.fromkeys(sentence for sentence in sentences if sentence))


def _summary(verdict: Verdict, held: Sequence[StageVerdict]) -> str:
    """Where the method that is named most often is, how fast it advances, and whether that is all."""
    method, own = _leading(verdict, held)
    sure = [_sure(found) for found in own]
    alone = all(len(verdict.named_at(found)) == 1 for found in own)
    tied = "" if alone or min(sure) else ", tied with others"
    incomplete = all(found.misfit.incomplete for found in own) and not min(sure)
    rest = "; no known algorithm fully explains them" if incomplete else ""
    (_, law), speed = verdict.law_of(method), ""
    if law is not None and law.law == "linear" and law.low > 0:
        speed = f", about {law.growth:.2g} step{'' if f'{law.growth:.2g}' == '1' else 's'} a stage"
    elif law is not None and law.law == "exponential" and law.low > 1:
        speed = f", {law.growth:.2g} times as many steps at each stage"
    return f"{_are(verdict, own, min(sure))} {method}{speed}{tied}{rest}."


def _leading(verdict: Verdict, held: Sequence[StageVerdict]) -> tuple[str, list[StageVerdict]]:
    """The method that is named most often, and where: alone, if that is so at half of these stages or more."""
    method = verdict.methods[0]
    own = [found for found in held if method in verdict.named_at(found)]
    alone = [found for found in own if len(verdict.named_at(found)) == 1]
    return method, alone if 2 * len(alone) >= len(own) else own


SURE = ("closest", "family", "certain")  # ever more so
VERBS = {"closest": ("is closest to", "are closest to"), "certain": ("computes", "compute")}
VERBS["family"] = ("is in the family of", "are in the family of")


def _sure(found: StageVerdict) -> int:
    return SURE.index("certain" if found.certain else "family" if found.family else "closest")


def _are(verdict: Verdict, stages: Sequence[StageVerdict], sure: int) -> str:
    """The first words of a sentence about some stages."""
    where = _where(verdict, stages)
    return f"{where[0].upper()}{where[1:]} {VERBS[SURE[sure]][len(stages) > 1]}"


def _where(verdict: Verdict, found: Sequence[StageVerdict]) -> str:
    return spans([each.stage for each in found], verdict.trace.stages)


def _excluded(verdict: Verdict, held: Sequence[StageVerdict]) -> str:
    """The methods that experiments exclude at half of the stages or more, those first that come closest."""
    words = []
    for method in sorted(verdict.known_methods, key=lambda each: -_closeness(verdict, each, held)):
        stages = [found for found in held if found.excludes(method)]
        if 2 * len(stages) < len(held) or not stages:
            continue
        absent = [each for found in stages for each in found.tested.experiments if each.outcome == "absent"]
        own = [each for each in absent if verdict.method_of(each.algorithm) == method]
        best = max(own, key=lambda each: each.own)
        where = "" if len(stages) == len(held) else f"{_where(verdict, stages)}; "
        slope, low, high = (f"{number:.2f}".replace("-0.00", "0.00") for number in best.slope[:3])
        words.append(f"{method} ({where}{best.law}: slope {slope}, 95% CI {low} to {high})")
    more = f" and {len(words) - MANY} more methods" if len(words) > MANY else ""
    return f"Excluded by experiment: {', '.join(words[:MANY])}{more}." if words else ""


def _closeness(verdict: Verdict, method: str, held: Sequence[StageVerdict]) -> float:
    """Of the closest step of a method, on average over some stages."""
    own = [match for name, match in verdict.matches[verdict.measure].items() if verdict.method_of(name) == method]
    places = [verdict.trace.stages.index(found.stage) for found in held]
    best = [max(float((match.sign * match.similarity[i]).nan_to_num(-math.inf).max()) for match in own) for i in places]
    return sum(best) / len(best)


def _empty(verdict: Verdict) -> str:
    empty = [found for found in verdict.stages if found.null and found.informative and not found.tested.excluded]
    right = [found for found in verdict.stages if not found.informative]
    barred = [found for found in verdict.stages if found.null and found.tested.excluded]
    words = f"No algorithm beats the null at {_where(verdict, empty)}." if empty else ""
    if barred:
        words += f" At {_where(verdict, barred)} experiments exclude all that beat the null."
    if right:
        reason = "nearly all answers are right, or the same for every query: they cannot tell algorithms apart"
        words += f" At {_where(verdict, right)} {reason}."
    return words.strip()


def _closest(verdict: Verdict, held: Sequence[StageVerdict]) -> list[str]:
    """One sentence for all stages of which the same is said."""
    groups: dict[tuple[tuple[str, ...], int], list[StageVerdict]] = {}
    for found in held:
        methods = tuple(sorted(verdict.named_at(found), key=verdict.methods.index))
        groups.setdefault((methods, _sure(found)), []).append(found)
    summarized = _leading(verdict, held)
    return [_sentence(verdict, methods, sure, stages, summarized) for (methods, sure), stages in groups.items()]


def _open(verdict: Verdict, held: Sequence[StageVerdict]) -> list[str]:
    """What is known to be missing, and what is not known."""
    sentences = []
    more = [found for found in held if found.misfit.incomplete]
    if more:
        missed = [max(found.misfit.gain.value, 0.0) for found in more]
        share = f"{min(missed):.0%} to {max(missed):.0%}" if len(missed) > 1 else f"{missed[0]:.0%}"
        sentences.append(
            f"The match is incomplete: mixing known steps explains {share} of what the closest step misses of "
            f"{_where(verdict, more)}."
        )
    varied = [found for found in held if found.misfit.varies]
    if varied:
        sentences.append(f"Prompts differ in the step that they follow at {_where(verdict, varied)}.")
    apart: dict[tuple[str, tuple[str, ...]], list[StageVerdict]] = {}
    for found in held:
        own = {verdict.method_of(name) for name, _ in found.agreed}
        for name, left in found.separated.items():
            if not (found.certain and own & set(left)):
                apart.setdefault((name, left), []).append(found)
    for (name, left), own in apart.items():
        if len(left) <= MANY:
            verb = "is" if len(left) == 1 else "are"
            sentences.append(f"On {name}, {' and '.join(left)} {verb} closest at {_where(verdict, own)}.")
    broken = [found for found in held if not found.lawful]
    if broken:
        sentences.append(f"Experiments contradict the closest step at {_where(verdict, broken)}.")
    unclear = [found for found in held if not (found.misfit.noise or found.misfit.incomplete or found.misfit.varies)]
    if unclear:
        sentences.append(f"More prompts are needed to say whether that is all of {_where(verdict, unclear)}.")
    if verdict.unsolved:
        sentences.append(f"The model does not solve the changed prompts of: {', '.join(verdict.unsolved)}.")
    return sentences


def _sentence(
    verdict: Verdict,
    methods: tuple[str, ...],
    sure: int,
    stages: Sequence[StageVerdict],
    summarized: tuple[str, list[StageVerdict]],
) -> str:
    """What some stages are; where the summary has it already, only the steps."""
    method, *others = methods
    if len(others) >= MANY:
        return f"At {_where(verdict, stages)}, {len(methods)} methods are statistically tied, {method} among them."
    if others:
        return (
            f"At {_where(verdict, stages)}, {', '.join([method, *others[:-1]])} and {others[-1]} are statistically "
            "tied."
        )
    pairs = [verdict.named_at(found)[method] for found in stages]
    names = dict.fromkeys(own[0][0] for own in pairs)
    several = any(len(verdict.algorithms[name]) > 1 for name in names)
    steps = ", ".join(_steps(own) for own in pairs) if several else ""
    name = next(iter(names)) if len(names) == 1 else method
    many = "s" if len(stages) > 1 else ""
    if summarized == (method, list(stages)):
        own = "" if name == method else f" of {name}"
        return f"The step{many}{own} {'are' if many else 'is'} {steps}." if steps else ""
    which = f", step{many} {steps}" if steps else ""
    return f"{_are(verdict, stages, sure)} {name}{which}."


def _steps(pairs: Sequence[Pair]) -> str:
    """Those of the closest algorithm, in order."""
    own = [step for name, step in pairs if name == pairs[0][0]]
    return "/".join(str(step) for step in sorted(own, key=str_last)[:SHOWN])


def _rates(verdict: Verdict) -> str:
    """How the matching steps grow, for the algorithm of each method that is named most often."""
    growth = []
    often = [method for method in verdict.methods if 2 * verdict.count(method) >= verdict.count(verdict.methods[0])]
    for name, law in map(verdict.law_of, often):
        if law is None:
            continue
        times = f"{law.growth:.2f} ({verdict.confidence:.0%} CI {law.low:.2f} to {law.high:.2f})"
        where = spans(law.used, verdict.trace.stages)
        if law.law == "linear" and law.low > 0:
            growth.append(f"that of {name} grows by {times} a stage over {where}")
        elif law.law == "exponential" and law.low > 1:
            growth.append(f"that of {name} grows by a factor of {times} a stage over {where}")
    return f"The best-matching number of steps: {'; '.join(growth[:MANY])}." if growth else ""


def _rest(verdict: Verdict, held: Sequence[StageVerdict]) -> str:
    near = {verdict.method_of(each.name) for found in held for each in found.candidates} | set(verdict.methods)
    near |= {method for found in held for left in found.separated.values() for method in left}
    excluded = {verdict.method_of(name) for found in held for name in found.tested.excluded}
    rejected = [method for method in verdict.known_methods if method not in near | excluded]
    return f"Never among the closest: {', '.join(rejected)}." if rejected else ""


def spans(stages: Sequence[object], order: Sequence[Stage]) -> str:
    """Stages in words: "layers 3–9 and layer 12"."""
    places = sorted(order.index(stage) for stage in order if stage in stages)
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    words = []
    for run in runs:
        first, last = str(order[run[0]]), str(order[run[-1]])
        kind, _, number = last.rpartition(" ")
        if len(run) == 1:
            words.append(first)
        elif kind and first.startswith(f"{kind} "):
            words.append(f"{kind}s {first.removeprefix(kind).strip()}–{number}")
        else:
            words.append(f"{first} to {last}")
    return " and ".join(words)
