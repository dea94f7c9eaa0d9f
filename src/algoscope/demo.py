"""The main job in one minute: two procedures on the same prompts, stage against stage.

It takes Newton's method for the model and asks which step of gradient descent each of its steps looks like.
"""

from dataclasses import dataclass
from pathlib import Path

from algoscope.algorithms import GradientDescent, Newton
from algoscope.matching import Match, RateLaw, compare, rate_law
from algoscope.report import charts
from algoscope.tasks import LinearRegression

STEPS = sorted({0, *(round(2 ** (k / 2)) for k in range(25))})  # of gradient descent: two an octave, up to 4,096
STAGE, STEP = "step of Newton's method", "matching step of gradient descent"


@dataclass(frozen=True, eq=False)
class Demo:
    match: Match
    law: RateLaw
    files: list[Path]

    @property
    def verdict(self) -> str:
        """What the evidence says, and no more."""
        law, used = self.law, f"steps {self.law.used[0]} to {self.law.used[-1]}" if self.law.used else "no step"
        if law.law == "exponential":
            each = f"each further Newton step matches {law.growth:.2f} times as many gradient steps"
        elif law.law == "linear":
            each = f"each further Newton step matches {law.growth:.2f} more gradient steps"
        else:
            return f"The growth of the matching step is {law.law}: {law.reason}."
        return (
            f"Over {used} of Newton's method, {each} (95% interval {law.low:.2f} to {law.high:.2f}): {law.law} growth."
        )


def run(out: Path, sequences: int = 256, seed: int = 0) -> Demo:
    """Compares the two, fits the rate law and draws both."""
    prompts = LinearRegression(dim=20, examples=40).sample(sequences, seed=seed)
    match = compare(Newton(steps=20).trace(prompts), GradientDescent(STEPS).trace(prompts))
    law = rate_law(match)
    heat = charts.similarity_map(match.records(), STAGE, "step of gradient descent", "Similarity of errors")
    path = charts.growth(_growth(match, law), STAGE, STEP, f"Growth: {law.law}", logarithmic=True)
    return Demo(match, law, charts.save(charts.beside(heat, path), out / "newton-against-gradient-descent"))


def _growth(match: Match, law: RateLaw) -> list[dict[str, object]]:
    """The best step of each stage with the range of its ties, and the step that the law gives."""
    rows: list[dict[str, object]] = []
    for i, (stage, best, ties) in enumerate(zip(match.stages, match.best, match.ties, strict=True)):
        fitted = law.step(i - match.stages.index(law.used[0])) if stage in law.used else None
        numbers = [step for step in ties if isinstance(step, int)]
        rows.append({"stage": stage, "best": best, "low": min(numbers), "high": max(numbers), "law": fitted})
    return rows
