"""Self-contained pages from the saved numbers of a verdict or a study: they load nothing, and need no model.

Everything that comes from a file is escaped by the templates, so that no file can run a script in a reader's browser.
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import vl_convert

from algoscope.report.figures import figures, leading, named, overview_of_members, title_of

ROOM = Path(__file__).parent
TALL = 450  # pixels: a figure of more is as wide as the page
LONG_TEXT, LONG_TABLE, MANY_CLAIMS = 800, 40, 100  # letters, rows, claims: what is longer is closed at first
VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided", "not run": "not run at this scale"}
Specs = Mapping[str, Any]


def page(record: Mapping[str, Any]) -> str:
    """The page. Beside the record of a verdict it may show "title", "controls", "command" and "provenance"."""
    stages, specs = record["stages"], _specs(figures(record))
    lead, _, rest = record["text"].partition(". ")
    kinds = list(stages[0]["candidates"])
    error = "share of wrong answers" if record["labels"] else "normalized error at the last position"
    numbers = {
        "prompts compared": f"{record['prompts']:,}",
        f"{error}, last stage": f"{stages[-1]['error']:.2g}",
        "stages that are one step": f"{sum(found['certain'] for found in stages)} of {len(stages)}",
    }
    columns = ["stage", error, "", "may be", *(title_of(kind).lower() for kind in kinds), "mixture gain"]
    linear = any(found["linearity"] is not None for found in stages)
    return _filled(
        "page.html",
        specs,
        title=record.get("title", "A model"),
        record=record,
        lead=lead + ("." if rest else ""),
        rest=rest,
        numbers=numbers,
        columns=[*columns, "linear in x"] if linear else columns,
        stages=[_stage(found, kinds, linear) for found in stages],
        overview=["overview"],
        others=[name for name in specs if name not in ("overview", "experiments")],
        names=list(record["matches"][record["measure"]]),
        first=leading(record),
        rates=_rates(record.get("controls"), record["family"]),
    )


def members_page(records: Mapping[str, Mapping[str, Any]], title: str, command: str) -> str:
    """Every member of a population; `records` are their verdicts, by the file of the page of each."""
    counts = Counter(leading(record) if named(record) else "none" for record in records.values())
    rows = []
    for k, (file, record) in enumerate(records.items()):
        first, last = record["text"].partition(". ")[0].rstrip(".") + ".", record["stages"][-1]
        certain = sum(found["certain"] for found in record["stages"])
        row = {"file": file, "name": f"member {k}", "verdict": first, "error": last["error"]}
        rows.append(row | {"certain": f"{certain} of {len(record['stages'])}"})
    lead = ", ".join(f"{name} in {count}" for name, count in counts.most_common())
    return _filled(
        "members.html",
        _specs({"members": overview_of_members(list(records.values()))}),
        title=title,
        lead=f"The algorithm that most stages may be, of {len(records)} members: {lead}.",
        rows=rows,
        command=command,
        provenance=next(iter(records.values())).get("provenance"),
    )


def study_page(results: Mapping[str, Any], figures: Mapping[str, alt.LayerChart], pages: Mapping[str, str]) -> str:
    """The page of a study; `pages` are the files of the pages of its models.

    Beside what was measured, `results` tells "title", "source", "about" and "found", its "models", the "choices" among
    them and the runs that are "missing", the "centerpiece" and the "tables".
    """
    counts = Counter(claim["verdict"] for claim in results["claims"])
    measured = [model for seeds in results["runs"].values() for model in seeds.values()]
    named = zip(results["models"], measured, strict=True)
    seconds = [model["seconds"] for model in measured]
    trained = sum(each["training"] > 0 for each in seconds)
    numbers = {
        **({"models trained": trained} if trained else {"models": len(measured)}),
        "minutes of training, summed over runs": f"{sum(s['training'] for s in seconds) / 60:.0f}",
        "minutes of measuring, summed over models": f"{sum(s['measuring'] for s in seconds) / 60:.0f}",
    }
    leads = results["centerpiece"].figures
    return _filled(
        "study.html",
        _specs(figures),
        title=results["title"],
        results=results,
        counts=", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict]),
        numbers=numbers,
        first=[name for name in figures if name in leads],
        others=[name for name in figures if name not in leads],
        main=next(((name, model["verdict"]["text"]) for name, model in named if "verdict" in model), None),
        pages=pages,
        sources=dict.fromkeys(_provenance(model["provenance"]) for model in measured),
    )


def _specs(made: Mapping[str, alt.LayerChart]) -> Specs:
    return {name: chart.properties(width="container").to_dict() for name, chart in made.items()}


def _stage(found: Mapping[str, Any], kinds: Sequence[str], linear: bool) -> dict[str, Any]:
    """A row of the evidence."""
    tag, name = ("none", "none") if found["null"] else ("near", "closest")
    if found["certain"]:
        tag, name = "sure", "certain"
    elif found.get("family"):
        tag, name = "sure", "family"
    closest = [found["candidates"][kind][0] if found["candidates"][kind] else None for kind in kinds]
    share, low, high = found["mixture_gain"]
    gain = f"{_share(share)} ({_share(low)} – {_share(high)})" if low is not None else ""
    if low is not None and low < -1:
        gain = "too few prompts"
    numbers = [*(_interval(each, "similarity") if each else "" for each in closest), gain]
    if linear:
        numbers.append(_share(found["linearity"]) if found["linearity"] is not None and not found["null"] else "")
    return {**found, "tag": tag, "name": name, "numbers": numbers}


def _rates(rates: Mapping[str, Any] | None, family: str) -> dict[str, Any]:
    """How often the instrument is right on models of this family whose answer is known, in words."""
    own = (rates or {}).get(family)
    if not own:
        return {}
    planted, alarms = own["planted"], own["false_alarms"]
    sure = "sure" if "sure" in planted else "certain"  # of a step or a method, or of a step alone
    found = {
        "Off the list: certain of one step, and wrong": own.get("wrong_step_when_absent"),
        f"Off the list: {sure} of something else": own.get("certain_when_absent"),
        f"Certain of one step, at the stages of {planted['models']} planted models before saturation": planted[
            "certain"
        ],
        "Sure of one step, or of a method": planted.get("sure"),
        f"Right, where {sure}": planted["right_when_certain"],
        "The planted step is among those kept": planted["planted_among_the_kept"],
        f"False alarms, of {alarms['models']} models with nothing to find": alarms,
    }
    return {words: rate for words, rate in found.items() if rate is not None}


def _filled(template: str, specs: Specs, **known: object) -> str:
    """A page that holds its charts, and all that draws them."""
    shared = {
        "style": (ROOM / "page.css").read_text(encoding="utf-8"),
        "script": (ROOM / "page.js").read_text(encoding="utf-8"),
        "library": _library(),
        "tall": TALL,
        "long_text": LONG_TEXT,
        "long_table": LONG_TABLE,
        "many_claims": MANY_CLAIMS,
    }
    return _templates().get_template(template).render(specs=specs, **shared, **known)


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOM), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    made.filters |= {"share": _share, "interval": _interval, "digits": _digits, "provenance": _provenance}
    return made


@functools.cache
def _library() -> str:
    """What draws the charts."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _provenance(found: Mapping[str, Any] | None) -> str:
    return " · ".join(f"{name} {value}" for name, value in (found or {}).items())


def _share(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}%}".replace("-0.0%", "0.0%")


def _digits(value: object) -> str:
    """Three digits of a number, and other things as they are."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _interval(found: Mapping[str, Any], middle: str) -> str:
    """A number and the ends of its interval, with as many digits as it takes to tell the ends apart."""
    low, high = found["low"], found["high"]
    digits = next((d for d in (3, 4, 5) if f"{low:.{d}g}" != f"{high:.{d}g}"), 3)
    return f"{found[middle]:.{digits}g} ({low:.{digits}g} – {high:.{digits}g})"
