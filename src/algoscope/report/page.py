"""Self-contained pages from the saved numbers of a verdict or a study: they load nothing, and need no model."""

import functools
import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import altair as alt
import vl_convert

from algoscope.report.figures import figures, leading

ROOM = Path(__file__).parent
TALL = 450  # pixels: a figure of more is as wide as the page
LONG_TEXT, LONG_TABLE, MANY_CLAIMS = 800, 40, 100  # letters, rows, claims: what is longer is closed at first


def page(record: Mapping[str, Any]) -> str:
    """The page. Beside the record of a verdict it may show "title", "controls", "command" and "provenance"."""
    made = figures(record)
    specs = {name: chart.properties(width="container").to_dict() for name, chart in made.items()}
    first = leading(record)
    options = [
        f"<option{' selected' if name == first else ''}>{html.escape(name)}</option>"
        for name in record["matches"]["errors"]
    ]
    return _filled("page.html", specs, {
        "title": html.escape(str(record.get("title", "A model"))),
        "text": html.escape(record["text"]),
        "confidence": f"{record['confidence']:.0%}",
        "facts": _facts(record),
        "rows": "".join(_row(found) for found in record["stages"]),
        "options": "".join(options),
        "charts": _figures(specs, specs),
        "laws": "".join(_law(name, law) for name, law in record["laws"].items()),
        "controls": _controls(record.get("controls")),
        "command": html.escape(str(record.get("command", "verdict.save(…)"))),
        "provenance": _provenance(record.get("provenance", {})),
    })  # fmt: skip


def study_page(results: Mapping[str, Any], figures: Mapping[str, alt.LayerChart], pages: Mapping[str, str]) -> str:
    """The page of a study; `pages` are the files of the pages of its models.

    Beside what was measured, `results` tells "title", "source", "about" and "found", its "models", the "choices" among
    them and the runs that are "missing", the "centerpiece" and the "tables".
    """
    specs = {name: chart.properties(width="container").to_dict() for name, chart in figures.items()}
    counts = Counter(claim["verdict"] for claim in results["claims"])
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    first_told = [claim for claim in results["claims"] if claim["headline"]]
    centerpiece, models = results["centerpiece"], results["models"]
    measured = [model for seeds in results["runs"].values() for model in seeds.values()]
    told_of = (
        (name, model["verdict"]["text"]) for name, model in zip(models, measured, strict=True) if "verdict" in model
    )
    main = next(
        (_opened(f"{name}, in the instrument's words", text, len(text) < LONG_TEXT) for name, text in told_of), ""
    )
    options = (f"<option>{html.escape(name)}</option>" for name in results["choices"])
    seconds = [model["seconds"] for model in measured]
    trained = sum(model["seconds"]["training"] > 0 for model in measured)
    facts = {
        **({"models trained": trained} if trained else {"models": len(models)}),
        "minutes of training, summed over runs": f"{sum(s['training'] for s in seconds) / 60:.0f}",
        "minutes of measuring, summed over models": f"{sum(s['measuring'] for s in seconds) / 60:.0f}",
    }
    return _filled("study.html", specs, {
        "title": html.escape(results["title"]),
        "scale": results["scale"],
        "heading": html.escape(centerpiece.heading),
        "note": html.escape(centerpiece.note),
        "text": html.escape(f"{len(results['claims'])} claims were put to the test: {told}."),
        "missing": _runs("Planned, and not run", results["missing"]),
        "earlier": _runs("Trained by an earlier plan, as told below", results["earlier"]),
        "headlines": "".join(_headline(claim) for claim in first_told),
        "main": main,
        "about": html.escape(results["about"]),
        "found": f'<ul class="found">{"".join(map(_item, results["found"]))}</ul>' if results["found"] else "",
        "facts": _list(facts),
        "options": "".join(options),
        "first": _figures(specs, (name for name in specs if name in centerpiece.figures)),
        "charts": _figures(specs, (name for name in specs if name not in centerpiece.figures)),
        "tables": "".join(_words(table) for table in results["tables"]),
        "claims": _claims(results["claims"], results["scale"] == "paper"),
        "models": _pages(pages),
        "command": html.escape(f"algoscope study {results['study']} --scale {results['scale']}"),
        "source": html.escape(results["source"]),
        "provenance": "<br>".join(dict.fromkeys(_provenance(model["provenance"]) for model in measured)),
    })  # fmt: skip


def _runs(what: str, runs: Sequence[str]) -> str:
    told = html.escape(f"{what}: {'; '.join(runs)}.")
    return f'<p class="note">{told}</p>' if runs else ""


def _pages(pages: Mapping[str, str]) -> str:
    """A section with links to the pages of the models, if they have any."""
    links = (f'<li><a href="{html.escape(file)}">{html.escape(name)}</a></li>' for name, file in pages.items())
    note = "The whole evidence for each, with every algorithm, is on a page of its own, beside this one."
    inside = f'<p class="note">{note}</p><ul class="models">{"".join(links)}</ul>'
    return f"<section><h2>Every model</h2>{inside}</section>" if pages else ""


def _words(table: Any) -> str:
    """A section with a table."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in table.rows)
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    inside = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    inside = _folded(inside, len(table.rows), LONG_TABLE, "rows")
    return f"<section><h2>{html.escape(table.heading)}</h2>{note}{inside}</section>"


def _claims(claims: Sequence[Mapping[str, Any]], at_paper_scale: bool) -> str:
    """All of them, in a table; a long one waits until it is opened, since the main ones come first on the page."""
    columns = ("claim", "", "ours", "paper", "seeds", "prompts")
    head = "".join(f"<th>{column}</th>" for column in columns)
    rows = "".join(_claim(claim, at_paper_scale) for claim in claims)
    table = f'<table id="claims" class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return _folded(f'<div class="wide">{table}</div>', len(claims), MANY_CLAIMS, "claims, in the order of the paper")


def _folded(table: str, rows: int, most: int, what: str) -> str:
    """A table, to be opened if it has more rows than that."""
    return f"<details><summary>{rows} {what}</summary>{table}</details>" if rows > most else table


def _opened(summary: str, text: str, opened: bool) -> str:
    """A text that can be opened and closed."""
    inside = f'<p class="note words">{html.escape(text)}</p>'
    return f"<details{' open' if opened else ''}><summary>{html.escape(summary)}</summary>{inside}</details>"


def _item(text: str) -> str:
    return f"<li>{html.escape(text)}</li>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return (
            f'<td class="number">{value:.3g}</td>' if isinstance(value, float) else f'<td class="number">{value}</td>'
        )
    return f"<td>{html.escape(str(value))}</td>"


VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided", "not run": "not run at this scale"}


def _filled(template: str, specs: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """A page that holds its charts, and all that draws them."""
    shared = {
        "style": (ROOM / "page.css").read_text(encoding="utf-8"),
        "script": (ROOM / "page.js").read_text(encoding="utf-8"),
        "specs": json.dumps(specs).replace("</", "<\\/"),
        "library": _library(),
    }
    body = Template((ROOM / template).read_text(encoding="utf-8")).substitute(parts)
    return Template((ROOM / "frame.html").read_text(encoding="utf-8")).substitute(
        {**shared, "title": parts["title"], "body": body}
    )


@functools.cache
def _library() -> str:
    """What draws the charts."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _provenance(found: Mapping[str, Any]) -> str:
    return html.escape(" · ".join(f"{name} {value}" for name, value in found.items()))


def _figures(specs: Mapping[str, Any], names: Iterable[str]) -> str:
    """In columns, but for tall ones, which would leave the one beside them empty: they take the whole width."""
    opened = {True: '<figure class="tall">', False: "<figure>"}
    return "".join(
        f'{opened[specs[name]["height"] > TALL]}<div class="chart" data-chart="{name}"></div></figure>'
        for name in names
    )


def _headline(claim: Mapping[str, Any]) -> str:
    ours, paper = _found(claim)
    numbers = f"measured {ours} {claim['what']}" + (f"; in the paper {paper}" if paper else "")
    small = f'<span class="small">{html.escape(numbers)}</span>' if ours else ""
    return f"<tr><td>{_tag(claim)}</td><td>{html.escape(claim['says'])} {small}</td></tr>"


def _tag(claim: Mapping[str, Any]) -> str:
    return f'<span class="tag {claim["verdict"].replace(" ", "")}">{claim["verdict"]}</span>'


def _found(claim: Mapping[str, Any]) -> tuple[str, str]:
    """What was found, and what the paper says."""
    ours = _interval(*(claim[part] for part in ("ours", "low", "high"))) if claim["ours"] is not None else ""
    return ours, f"{claim['paper']:.3g}" if isinstance(claim["paper"], float) else claim["paper"] or ""


def _claim(claim: Mapping[str, Any], with_why: bool) -> str:
    why = claim["why"] if with_why and claim["verdict"] in ("fails", "undecided") else ""
    bound = f"bound: {claim['bound']}" if claim["bound"] else ""
    small = " · ".join(part for part in (claim["where"], claim["convention"], bound) if part)
    says = f'{html.escape(claim["says"])}<br><span class="small">{html.escape(small)}</span>'
    says += f'<br><span class="small">Likely cause: {html.escape(why)}</span>' if why else ""
    (ours, paper), tag = _found(claim), _tag(claim)
    seeds = " ".join(f"{value:.3g}" for value in claim["seeds"] or ())
    numbers = (f'<td class="number">{html.escape(cell)}</td>' for cell in (ours, paper))
    return f"<tr><td>{says}</td><td>{tag}</td>{''.join(numbers)}<td>{seeds}</td><td>{claim['n'] or ''}</td></tr>"


def _facts(record: Mapping[str, Any]) -> str:
    stages = record["stages"]
    facts = {
        "prompts compared": f"{record['prompts']:,}",
        "dimensions": record["dim"],
        "examples": record["examples"],
        "error of the last stage": f"{stages[-1]['error']:.2g}",
        "stages that are one step": f"{sum(found['certain'] for found in stages)} of {len(stages)}",
    }
    return _list(facts)


def _list(facts: Mapping[str, object]) -> str:
    return "".join(f"<li><b>{value}</b>{html.escape(name)}</li>" for name, value in facts.items())


def _row(found: Mapping[str, Any]) -> str:
    tag, name = ("none", "nothing") if found["null"] else ("near", "closest")
    if found["certain"]:
        tag, name = "sure", "is this step"
    elif found["exact"] and found["agreed"]:
        tag, name = "near", "one of these"
    closest = [found[kind][0] if found[kind] else None for kind in ("errors", "decodability")]
    cells = [_interval(*(c[part] for part in ("similarity", "low", "high"))) if c else "" for c in closest]
    low, high = found["beyond"][1:]
    beyond = f"{_share(found['beyond'][0])} ({_share(low)} – {_share(high)})" if low is not None else ""
    linear = f"{found['linearity']:.1%}" if found["linearity"] is not None and not found["null"] else ""
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in (*cells, beyond, linear))
    label = f'<td><span class="tag {tag}">{name}</span></td>'
    begin = f"<td>{html.escape(found['stage'])}</td><td>{found['error']:.3g}</td>"
    return f"<tr>{begin}{label}<td>{html.escape(found['words'])}</td>{numbers}</tr>"


def _law(name: str, law: Mapping[str, Any]) -> str:
    growth = ""
    if law["growth"] is not None:
        unit = "×" if law["path"] == "exponential" else "+"
        growth = f"{unit}{_interval(law['growth'], law['low'], law['high'])}"
    cells = (name, law["law"], growth, law["reason"])
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _controls(rates: Mapping[str, Any] | None) -> str:
    if not rates:
        return "<tr><td>The controls were not measured.</td></tr>"
    planted = rates["planted"]
    alarms = rates["false_alarms"]["all"]
    told = {
        f"Of {planted['models']} planted models: certain before saturation": planted["certain"],
        "right, algorithm and step, where certain": planted["right_when_certain"],
        "the planted step among those kept": planted["planted_among_the_kept"],
        "certain of another, where the planted one was not on the list": rates["certain_when_absent"],
        f"Of {alarms['models']} models with nothing to find: false alarms": alarms,
    }
    rows = ((name, f"{r['rate']:.1%} ({r['low']:.1%} – {r['high']:.1%})") for name, r in told.items())
    return "".join(f'<tr><td>{html.escape(name)}</td><td class="number">{rate}</td></tr>' for name, rate in rows)


def _share(value: float) -> str:
    return f"{value:.1%}".replace("-0.0%", "0.0%")


def _interval(middle: float, low: float, high: float) -> str:
    """With as many digits as it takes to tell its ends apart."""
    digits = next((d for d in (3, 4, 5) if f"{low:.{d}g}" != f"{high:.{d}g}"), 3)
    return f"{middle:.{digits}g} ({low:.{digits}g} – {high:.{digits}g})"
