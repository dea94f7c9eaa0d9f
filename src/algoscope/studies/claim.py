"""What a study claims, what was found about it, and how that is judged."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from algoscope.matching.statistics import Estimate

Numbers = Mapping[str, Any]
Value = Estimate  # of one model; n are prompts


@dataclass(frozen=True)
class Finding:
    """What was found about a claim: a value for each seed, and whether they all agree. No values: what was
    measured speaks for or against it without a number of this kind.

    `whole` is what they say together, where that was judged; `bounds` are those by which.
    """

    values: tuple[Value, ...]
    verdict: Literal["holds", "fails", "undecided"]
    whole: Value | None = None
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @staticmethod
    def judged(values: Sequence[Value], at_least: float = -math.inf, at_most: float = math.inf) -> "Finding":
        """It holds if every seed's interval lies between the bounds, and fails if every one lies outside."""
        inside = all(at_least <= value.low and value.high <= at_most for value in values)
        outside = all(value.high < at_least or value.low > at_most for value in values)
        verdict = "holds" if inside else "fails" if outside else "undecided"
        return Finding(tuple(values), verdict, bounds=(at_least, at_most))

    def undecided(self) -> "Finding":
        """The same, where something stands in the way of judging it."""
        return replace(self, verdict="undecided")

    def together(self) -> Value:
        """One value for all: by default the mean over seeds, and a range that holds all their intervals."""
        values = self.values
        mean = sum(value.value for value in values) / len(values)
        low, high = min(value.low for value in values), max(value.high for value in values)
        return self.whole or Value(mean, low, high, min(value.n for value in values))

    def bound(self) -> str:
        """In words."""
        words = zip(("at least", "at most"), self.bounds, strict=True)
        return " and ".join(f"{word} {bound:.3g}" for word, bound in words if math.isfinite(bound))


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper in our words. `find` judges it by the numbers of a study; None where they do not tell."""

    id: str
    sentence: str
    where: str
    find: Callable[[Numbers], Finding | None]
    paper: float | str | None = None
    convention: str = ""
    headline: bool = False  # shown first
    what: str = ""  # the numbers count
    why: str = ""  # what a difference may come from, at paper scale

    def record(self, numbers: Numbers) -> dict[str, Any]:
        described = {
            name: getattr(self, name) for name in ("id", "sentence", "where", "convention", "headline", "what", "why")
        }
        found = self.find(numbers)
        if found is None or not found.values:
            blank = dict.fromkeys(("ours", "low", "high", "n", "seeds", "bound"))
            return {**described, "paper": self.paper, **blank, "verdict": found.verdict if found else "not run"}
        ours, low, high, n = found.together()
        seeds = [value.value for value in found.values]
        numbers = {"ours": ours, "low": low, "high": high, "n": n, "seeds": seeds}  # n is of each seed
        return {**described, "paper": self.paper, **numbers, "bound": found.bound(), "verdict": found.verdict}
