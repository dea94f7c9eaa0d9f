"""What an index has made of pictures of numbers: is the one feature that it stores as good as the number?"""

from typing import Any

import torch
from torch import Tensor

from algoscope.models.index import IndexNetwork
from algoscope.reading import features
from algoscope.studies.data_structures.references import described
from algoscope.tasks.search import Search
from algoscope.trace import Prompts

SHOWN = 100  # numbers at most


def by_number(network: IndexNetwork, task: Search, prompts: Prompts) -> dict[str, Any]:
    """The feature of the pictures of each number, and how often two pictures are in the order of their numbers.

    `low` and `high` of a feature hold the middle four fifths of the pictures. A feature may rise or fall.
    """
    found = features(network, task, prompts).double()
    seen, numbers = principal(found), prompts.x[..., 0]
    shares = in_order(seen, numbers)
    upwards = float(shares.mean()) >= 0.5
    shares = shares if upwards else 1 - shares
    rows = []
    universe = int(numbers.max()) + 1
    for number in range(0, universe, -(-universe // SHOWN)):
        own = seen[numbers == number]
        if len(own):
            low, high = (float(own.quantile(share)) for share in (0.1, 0.9))
            rows.append({"number": number, "value": float(own.mean()), "low": low, "high": high, "n": len(own)})
    return {"features": rows, "in order": described(shares[:, None])[0]}


def principal(found: Tensor) -> Tensor:
    """One feature as it is, several along the direction of their largest variance."""
    if found.shape[-1] == 1:
        return found[..., 0]
    rows = found.flatten(0, 1)
    return found @ torch.linalg.svd(rows - rows.mean(0), full_matrices=False).Vh[0]


def in_order(seen: Tensor, numbers: Tensor) -> Tensor:
    """By set, of the pairs of different numbers the share whose features rise with the numbers."""
    apart = (numbers[:, :, None] - numbers[:, None]).sign()
    agree = (seen[:, :, None] - seen[:, None]).sign() == apart
    return (agree & (apart != 0)).double().sum((1, 2)) / (apart != 0).double().sum((1, 2)).clamp(min=1)
