"""algoscope study NAME"""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from algoscope.cli.options import parse_and_call
from algoscope.studies import study


def run(arguments: list[str]) -> None:
    parse_and_call(main, "algoscope study", arguments)


def main(
    name: Annotated[str, tyro.conf.Positional],
    scale: Literal["smoke", "laptop", "paper"] = "laptop",
    out: Path = Path("studies"),
    device: str | None = None,
    only: tuple[str, ...] = (),
    known: Path | None = None,
    at_once: int = 1,
) -> None:
    """Carry out a study: train and measure its models, judge its claims, build its page. Stopped, it goes on later.

    Args:
        name: Of the study; algoscope studies lists them.
        scale: Smoke takes seconds and means nothing, laptop minutes on two cores, paper a GPU.
        out: Folder for all that it makes.
        device: Such as cpu or cuda; by default a GPU if there is one.
        only: Names of the runs to carry out; by default all. Several processes can share the work in one folder.
        known: Folder of results to take as they are, such as results/algoformer; only what it lacks, or has of an
            earlier plan, is carried out.
        at_once: Runs that go on at a time, in processes of their own; a GPU takes a dozen small ones side by side.
    """
    found = study.find(name)
    page = study.carry_out(found, scale, out, device, only, known=known, at_once=at_once)
    claims = study.read(page.parent)[1]["claims"]
    judged = [claim for claim in claims if claim["verdict"] != "not run"]
    for claim in judged:
        ours = "" if claim["ours"] is None else f"{claim['ours']:.3g} ({claim['low']:.3g} – {claim['high']:.3g})"
        print(f"{claim['verdict']:>10}  {claim['id']}: {claim['sentence']} {ours}")
    if len(judged) < len(claims):
        print(f"\n  {len(claims) - len(judged)} more claims are about runs that were not made.")
    print(f"\n  {page}")
