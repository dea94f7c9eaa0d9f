"""algoscope controls"""

import builtins
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from algoscope import arguments as checks
from algoscope import files
from algoscope.cli.options import parse_and_call
from algoscope.controls.catalog import FAMILIES, controls_of
from algoscope.controls.measuring import Files, Part, measured, merged, part_of
from algoscope.controls.scoring import Identify, summaries

RATES = {  # what is shown, and where it is among the rates of a family; the first two are what a verdict is judged by
    "off the list: certain of one step, and wrong": ("wrong_step_when_absent",),
    "off the list: sure of a step or a method, and wrong": ("certain_when_absent",),
    "false alarms where there is nothing": ("false_alarms",),
    "planted: sure of a step or a method": ("planted", "sure"),
    "planted: sure of one step": ("planted", "certain"),
    "planted: right where sure": ("planted", "right_when_certain"),
    "planted: the right step where sure of one": ("planted", "exact_when_certain"),
    "planted: the right step is kept": ("planted", "planted_among_the_kept"),
    "by hand: sure of a step or a method": ("by_hand", "sure"),
    "by hand: right where sure": ("by_hand", "right_when_certain"),
}
INCOMPLETE = "  no family is complete, so no rates are written; algoscope controls --merge joins the parts"


def run(arguments: builtins.list[str]) -> None:
    parse_and_call(main, "algoscope controls", arguments)


def main(
    family: Literal["all", "regression", "graphs", "search", "streams"] = "all",
    set: Literal["tuning", "held-out"] = "tuning",
    kind: Literal["all", "listed", "unlisted", "null", "by-hand"] = "all",
    part: int = 0,
    of: int = 1,
    merge: bool = False,
    list: bool = False,
    method: str = "identify",
    prompts: int = 1000,
    limit: int | None = None,
    out: Path = Path("results/controls"),
) -> None:
    """How often is a method right about models whose answer is known? A stopped run resumes.

    Rates are written once all models of a family are measured.

    Args:
        family: Of tasks.
        set: The models to improve a method by (tuning), or those to judge it by at the end (held-out).
        kind: Planted on the list of algorithms (listed) or off it (unlisted), nothing to find (null), or by hand.
        part: Which share of the models this process measures, from 0 on.
        of: How many processes share them.
        merge: Join the parts that were measured.
        list: Print the models, one line of JSON each, and stop.
        method: identify, or package.module:function, which is given a model and its task.
        prompts: Number of prompts that identify compares on; it fits its probes on as many others.
        limit: Measure the first few models and write nothing.
        out: Folder for the parts and the rates.
    """
    checks.integer("prompts", prompts, 2)
    checks.integer("of", of, 1, 10_000)
    checks.integer("part", part, 0, of - 1)
    families = [*FAMILIES] if family == "all" else [family]
    controls = [control for each in families for control in controls_of(each, set)]
    if kind != "all":
        controls = [control for control in controls if control.kind == kind.replace("-", " ")]
    if list:
        return print("\n".join(control.line() for control in controls))
    own = Identify(prompts) if method == "identify" else _function(method)
    where, chosen = Files(out, method, set), part_of(controls, part, of)
    if limit is not None:
        checks.integer("limit", limit, 1)
        return show(summaries(measured(own, chosen[:limit])))
    with files.output_folder(out):
        found = [] if merge else measured(own, chosen, Part(where, part, of, prompts))
        rates, complete = (summaries(found), []) if found and of > 1 else merged(where, families, prompts)
    show(rates)
    print(f"  {where.rates}: {', '.join(complete)}" if complete else INCOMPLETE)


def _function(name: str) -> Callable[..., Any]:
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise ValueError(f"method must be identify or such as package.module:function, got {name!r}")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as problem:
        raise ValueError(f"method {name!r} cannot be imported: {problem}") from None
    if not callable(found):
        raise ValueError(f"method must be a function: {module} has no function {function!r}")
    return found


def show(rates: Mapping[str, Mapping[str, Any]]) -> None:
    """Rates by family, and how many models there are of each kind."""
    table = Table(caption="% of stages before saturation (false alarms: of models), with 95% CI, and models")
    table.add_column("")
    for family in rates:
        table.add_column(family, justify="right")
    for words, path in RATES.items():
        cells = [_cell(own, path) for own in rates.values()]
        if any(cells):
            table.add_row(words, *cells)
    Console().print(table)


def _cell(own: Mapping[str, Any], path: tuple[str, ...]) -> str:
    found: Any = own
    for name in path:
        found = found.get(name, {})
    if found.get("rate") is None:
        return ""
    return f"{100 * found['rate']:.1f} ({100 * found['low']:.1f}–{100 * found['high']:.1f}) of {found['models']}"
