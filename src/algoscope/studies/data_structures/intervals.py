"""Numbers of several prompts as one, with an interval; and tables of such."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from algoscope.matching.bootstrap import interval, percentiles, resampling

Table = list[dict[str, Any]]
CONFIDENCE, RESAMPLES = 0.95, 1000
WILD = 20.0  # standard errors that no honest interval is wide


def described(values: Tensor, least: float = 0.0, most: float = 1.0) -> Table:
    """The mean of each column over the rows, which are prompts, with its interval.

    Where next to all rows are equal, many resamples have no spread to be measured in: percentiles of their means then.
    """
    draws = resampling(len(values), RESAMPLES, 0)
    low, high = interval(values, draws, CONFIDENCE)
    plain, wild = percentiles(draws @ values, CONFIDENCE), high - low > WILD * values.std(0) / len(values) ** 0.5
    low, high = torch.where(wild, plain[0], low), torch.where(wild, plain[1], high)
    middle = values.mean(0)
    return [
        {
            "value": float(middle[i]),
            "low": max(float(low[i]), least),
            "high": min(float(high[i]), most),
            "n": len(values),
        }
        for i in range(values.shape[1])
    ]


def table(model: Mapping[str, Any], name: str, **wanted: object) -> Table:
    """Rows of a table that say what is wanted."""
    return [row for row in model.get(name, ()) if all(row[key] == value for key, value in wanted.items())]
