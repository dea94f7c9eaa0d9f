"""One self-contained page from the saved numbers of a verdict: it loads nothing, and needs no model."""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import vl_convert

from algoscope.report.figures import figures, leading

TEMPLATE = Path(__file__).with_name("page.html")


def page(record: Mapping[str, Any]) -> str:
    """The page. Beside the record of a verdict it may show "title", "controls", "command" and "provenance"."""
    made = figures(record)
    specs = {name: chart.properties(width="container").to_dict() for name, chart in made.items()}
    first = leading(record)
    options = [
        f"<option{' selected' if name == first else ''}>{html.escape(name)}</option>"
        for name in record["matches"]["errors"]
    ]
    parts = {
        "title": html.escape(str(record.get("title", "A model"))),
        "text": html.escape(record["text"]),
        "confidence": f"{record['confidence']:.0%}",
        "facts": _facts(record),
        "rows": "".join(_row(found) for found in record["stages"]),
        "options": "".join(options),
        "charts": "".join(f'<figure><div class="chart" data-chart="{name}"></div></figure>' for name in specs),
        "laws": "".join(_law(name, law) for name, law in record["laws"].items()),
        "controls": _controls(record.get("controls")),
        "command": html.escape(str(record.get("command", "verdict.save(…)"))),
        "provenance": html.escape(" · ".join(f"{k} {v}" for k, v in record.get("provenance", {}).items())),
        "specs": json.dumps(specs).replace("</", "<\\/"),
        "library": vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script"),
    }
    return Template(TEMPLATE.read_text()).substitute(parts)


def _facts(record: Mapping[str, Any]) -> str:
    stages = record["stages"]
    facts = {
        "prompts compared": f"{record['prompts']:,}",
        "dimensions": record["dim"],
        "examples": record["examples"],
        "error of the last stage": f"{stages[-1]['error']:.2g}",
        "stages that are one step": f"{sum(found['certain'] for found in stages)} of {len(stages)}",
    }
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
    return f"{middle:.3g} ({low:.3g} – {high:.3g})"
