"""The main job on a laptop: train a transformer on in-context linear regression, and find out what it has learned."""

from dataclasses import dataclass, replace
from pathlib import Path

from algoscope import runs
from algoscope.instrument import Instrument
from algoscope.training import LAPTOP, Curriculum, Run, load, train
from algoscope.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Demo:
    run: Run
    verdict: Verdict
    title: str
    command: str

    def save(self) -> Path:
        """Writes the verdict and its page into the run folder, and returns the page."""
        folder = runs.Folder(self.run.path)
        for suffix in ("json", "html"):
            self.verdict.save(folder.report(suffix), title=self.title, command=self.command)
        return folder.report("html")


def run(out: Path, steps: int | None = None, seed: int = 0, prompts: int = 1000, progress: bool = True) -> Demo:
    """Trains the laptop model, unless it is there already, and identifies it."""
    settings = LAPTOP.settings
    if steps is not None:  # the rest follows from that
        settings = replace(settings, steps=steps, warmup=None, curriculum=Curriculum(dims=1))
    instrument, rate = Instrument(LAPTOP.task, prompts=prompts, fit_on=prompts, seed=seed), LAPTOP.learning_rate
    done = train(
        LAPTOP.task, LAPTOP.model, seed=seed, learning_rate=rate, out=out, progress=progress, settings=settings
    )
    verdict = instrument.identify(load(done.path), progress=progress)
    sizes = f"{LAPTOP.task.dim} dimensions, {LAPTOP.task.examples} examples"
    title = f"A transformer of {LAPTOP.model.layers} layers on linear regression, {sizes}"
    typed = f"--out {out} --seed {seed} --prompts {prompts}" + (f" --steps {steps}" if steps is not None else "")
    return Demo(done, verdict, title, f"algoscope demo {typed}")
