"""A verdict in words: one paragraph, whose first sentence says it in short."""

from collections.abc import Sequence

from algoscope.trace import Stage
from algoscope.verdict import StageVerdict, Verdict


def in_words(verdict: Verdict) -> str:
    """One paragraph; its first sentence says it in short."""
    held = [found for found in verdict.stages if not found.null]
    if not held:
        return f"No stage beats the null: none of the {len(verdict.algorithms)} algorithms was found."
    sentences = [
        _summary(verdict, held),
        *_closest(verdict, held),
        _empty(verdict),
        _rates(verdict),
        _rest(verdict, held),
    ]
    return " ".join(dict.fromkeys(sentence for sentence in sentences if sentence))


def _summary(verdict: Verdict, held: Sequence[StageVerdict]) -> str:
    """Where the algorithm that is named most often is, how fast it advances, and whether that is all."""
    if not verdict.named:
        return f"No single algorithm was found: kinds of evidence name different steps at {_where(verdict, held)}."
    name, own = _leading(verdict, held)
    certain = all(found.certain for found in own)
    alone = all(len(found.agreed) == 1 for found in own)
    tied = "" if alone or certain else ", tied with others"
    incomplete = all(not found.exact and found.mixture_gain[1] > 0 for found in own)
    rest = "; no known algorithm fully explains them" if incomplete else ""
    law, speed = verdict.laws.get(name), ""
    if law is not None and law.law == "linear" and law.low > 0:
        speed = f", about {law.growth:.2g} step{'' if f'{law.growth:.2g}' == '1' else 's'} a stage"
    return f"{_are(verdict, own, certain)} {name}{speed}{tied}{rest}."


def _leading(verdict: Verdict, held: Sequence[StageVerdict]) -> tuple[str, list[StageVerdict]]:
    """The algorithm that is named most often, and where: alone, if that is so at half of these stages or more."""
    name = verdict.named[0]
    own = [found for found in held if found.steps(name)]
    alone = [found for found in own if len(found.agreed) == 1]
    return name, alone if 2 * len(alone) >= len(own) else own


def _are(verdict: Verdict, stages: Sequence[StageVerdict], certain: bool) -> str:
    """The first words of a sentence about some stages."""
    where, many = _where(verdict, stages), len(stages) > 1
    verb = ("compute" if many else "computes") if certain else ("are closest to" if many else "is closest to")
    return f"{where[0].upper()}{where[1:]} {verb}"


def _where(verdict: Verdict, found: Sequence[StageVerdict]) -> str:
    return spans([each.stage for each in found], verdict.trace.stages)


def _empty(verdict: Verdict) -> str:
    empty = [found for found in verdict.stages if found.null and found.informative]
    right = [found for found in verdict.stages if not found.informative]
    words = f"No algorithm beats the null at {_where(verdict, empty)}." if empty else ""
    if right:
        words += f" At {_where(verdict, right)} too few answers are wrong to tell algorithms apart."
    return words.strip()


def _closest(verdict: Verdict, held: Sequence[StageVerdict]) -> list[str]:
    """One sentence for all stages of which the same is said, and whether that is all there is."""
    groups: dict[tuple[tuple[str, ...], bool], list[StageVerdict]] = {}
    for found in held:
        groups.setdefault((_names(verdict, found), found.certain), []).append(found)
    summarized = _leading(verdict, held) if verdict.named else None
    sentences = [_sentence(verdict, names, certain, stages, summarized) for (names, certain), stages in groups.items()]
    more = [found for found in held if not found.exact and found.mixture_gain[1] > 0]
    if more:
        missed = [found.mixture_gain[0] for found in more]
        share = f"{min(missed):.0%} to {max(missed):.0%}" if len(missed) > 1 else f"{missed[0]:.0%}"
        sentences.append(
            f"The match is incomplete: mixing known steps explains {share} of what the closest step misses of "
            f"{_where(verdict, more)}."
        )
    unclear = [found for found in held if not found.exact and not found.mixture_gain[1] > 0]
    if unclear:
        sentences.append(f"More prompts are needed to say whether that is all of {_where(verdict, unclear)}.")
    return sentences


def _names(verdict: Verdict, found: StageVerdict) -> tuple[str, ...]:
    """The algorithms that are agreed on; of equal steps, that of the algorithm which is named most often."""
    names = []
    for pair in found.agreed:
        equal = [pair, *(own for own, first in found.equal.items() if first == pair)]
        names.append(min((name for name, _ in equal), key=verdict.named.index))
    return tuple(sorted(dict.fromkeys(names), key=verdict.named.index))


def _sentence(
    verdict: Verdict,
    names: tuple[str, ...],
    certain: bool,
    stages: Sequence[StageVerdict],
    summarized: tuple[str, list[StageVerdict]] | None,
) -> str:
    """What some stages are; where the summary `said` so already, only the steps."""
    if not names:
        return f"At {_where(verdict, stages)} kinds of evidence name different steps."
    name, *others = names
    if others:
        return (
            f"At {_where(verdict, stages)}, {', '.join([name, *others[:-1]])} and {others[-1]} are statistically tied."
        )
    steps = ", ".join("/".join(str(step) for step in in_order(found.steps(name))) for found in stages)
    several = len(verdict.algorithms[name]) > 1
    if summarized == (name, list(stages)):
        return f"The step{'s are' if len(stages) > 1 else ' is'} {steps}." if several else ""
    which = f", step{'s' if len(stages) > 1 else ''} {steps}" if several else ""
    return f"{_are(verdict, stages, certain)} {name}{which}."


def _rates(verdict: Verdict) -> str:
    """How the matching steps grow."""
    growth = []
    often = [name for name in verdict.named if 2 * verdict.count(name) >= verdict.count(verdict.named[0])]
    for name, law in ((name, law) for name, law in verdict.laws.items() if name in often):
        times = f"{law.growth:.2f} ({verdict.confidence:.0%} CI {law.low:.2f} to {law.high:.2f})"
        where = spans(law.used, verdict.trace.stages)
        if law.law == "linear" and law.low > 0:
            growth.append(f"that of {name} grows by {times} a stage over {where}")
        elif law.law == "exponential" and law.low > 1:
            growth.append(f"that of {name} grows by a factor of {times} a stage over {where}")
    return f"The best-matching number of steps: {'; '.join(growth)}." if growth else ""


def _rest(verdict: Verdict, held: Sequence[StageVerdict]) -> str:
    near = {found.name for stage in held for kept in stage.candidates.values() for found in kept}
    rejected = [name for name in verdict.algorithms if name not in near and not any(f.steps(name) for f in held)]
    return f"Never among the closest: {', '.join(rejected)}." if rejected else ""


def in_order(steps: Sequence[Stage]) -> list[Stage]:
    """By their numbers."""
    return sorted(steps, key=lambda step: (isinstance(step, str), step if isinstance(step, int) else 0))


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
