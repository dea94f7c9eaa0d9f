"""Numbers that were published in the text and the tables, by run, method and quantity (numbers.csv)."""

import csv
import functools
from pathlib import Path
from typing import NamedTuple


class Number(NamedTuple):
    """`lookup` is that after which something was found; 0 where it does not apply."""

    run: str
    method: str
    quantity: str
    lookup: int
    value: float
    where: str


@functools.cache
def numbers() -> tuple[Number, ...]:
    with (Path(__file__).parent / "numbers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Number(row["run"], row["method"], row["quantity"], int(row["lookup"] or 0), float(row["value"]), row["where"])
        for row in rows
    )


def value(run: str, method: str = "model", quantity: str = "found") -> float:
    """The one published number of this kind."""
    (found,) = (each for each in numbers() if (each.run, each.method, each.quantity) == (run, method, quantity))
    return found.value
