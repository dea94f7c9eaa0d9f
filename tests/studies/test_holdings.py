"""What extra slots hold, where it is known: written by hand, and judged by scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from algoscope.models import Index
from algoscope.studies.data_structures.findings import holds
from algoscope.studies.data_structures.holdings import (
    AHEAD,
    ALONE,
    BELOW,
    CONTENTS,
    FEW,
    LAST,
    NEAREST,
    VALUE,
    beyond,
    explained,
    held,
)
from algoscope.studies.data_structures.references import MODEL
from algoscope.studies.data_structures.tables import tables
from algoscope.tasks import UniformSearch

SLOTS, TASK = 4, UniformSearch(9, queries=32)
PROMPTS = TASK.sample(400, seed=0)
POINTS, QUERIES = PROMPTS.x[:, :9, 0].double().numpy(), PROMPTS.x[:, 9:, 0].double()
READS = (2 * (QUERIES + 1)).long().clamp(max=SLOTS - 1)[None]  # a slot for each quarter of the line
MIDDLES = [-0.75, -0.25, 0.25, 0.75]


def written(content: str) -> np.ndarray:
    """What a person would write: [sets, slots]."""
    nearest = [np.abs(POINTS - middle).argmin(1) for middle in MIDDLES]
    made = {
        NEAREST: [(row[:, None] > POINTS).sum(1) for row in (POINTS[np.arange(400), each] for each in nearest)],
        VALUE: [POINTS[np.arange(400), each] for each in nearest],
        BELOW: [(middle > POINTS).sum(1) for middle in MIDDLES],
    }
    return np.stack(made[content], 1).astype(float)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("scale", [1.0, -0.01])
def test_what_was_written_is_found_at_any_scale(content, scale):
    noise = np.random.default_rng(0).normal(size=(400, SLOTS))
    own = written(content) + 0.1 * noise * written(content).std(0)
    rows = explained(READS, torch.as_tensor(scale * own + 3.0), PROMPTS)
    found = {row["holds"]: row for row in rows}
    assert max(found, key=lambda name: found[name]["value"]) == content
    # A hundredth of the variance is noise; and the middle, which is estimated, is at times nearer to another point.
    assert 0.75 < found[content]["low"] < found[content]["value"] < found[content]["high"] < 0.995
    assert found[content]["n"] == 200
    assert found[VALUE if content != VALUE else BELOW]["value"] < 0.6


def test_the_share_is_that_of_a_linear_regression_on_sets_that_it_has_not_seen():
    """One slot alone is read, everywhere: so its middle is the median of the queries."""
    own = np.random.default_rng(1).normal(size=400) + written(BELOW)[:, 2]
    rows = explained(torch.zeros_like(READS), torch.as_tensor(own)[:, None], PROMPTS)
    middle = float(QUERIES[::2].median())
    below = (middle > POINTS).sum(1)[:, None]
    line = LinearRegression().fit(below[::2], own[::2])
    left = np.square(own[1::2] - line.predict(below[1::2])).mean() / np.square(own[1::2] - own[::2].mean()).mean()
    value = next(row["value"] for row in rows if row["holds"] == BELOW)
    assert value == pytest.approx(1 - left, abs=1e-9)


def test_slots_that_few_read_and_slots_that_never_change_say_nothing():
    """Points that are read are numbers below zero; a slot that nobody reads may hold anything."""
    own, noise = written(NEAREST), np.random.default_rng(2).normal(size=(400, 2))
    alone = explained(READS, torch.as_tensor(own), PROMPTS)
    beside = np.concatenate((own, noise[:, :1], np.full((400, 1), 7.0), noise[:, 1:]), 1)
    reads = torch.cat((READS, torch.full_like(READS, -3), torch.full_like(READS, SLOTS + 1)))
    reads[1, 0, : FEW - 1] = SLOTS + 2
    assert explained(reads, torch.as_tensor(beside), PROMPTS) == alone
    assert explained(torch.full_like(READS, -1), torch.as_tensor(own), PROMPTS) == []
    assert explained(READS, torch.zeros(400, SLOTS, dtype=torch.float64), PROMPTS) == []


def test_slots_that_tell_ranks_alone_and_those_that_tell_more():
    """One look-up reads the slot of the query's quarter, the last the point nearest to its middle, or the answer."""
    nearest = torch.as_tensor(np.abs(POINTS[:, None] - QUERIES.numpy()[..., None]).argmin(-1))
    middles = np.array(MIDDLES)[READS[0].numpy()]
    alone = torch.as_tensor(np.abs(POINTS[:, None] - middles[..., None]).argmin(-1))
    for last, found in ((alone, (alone == nearest)[1::2].double().mean()), (nearest, 1.0)):
        shares = {row["is"]: row for row in beyond(torch.cat((READS, last[None] - 9)), PROMPTS)}
        assert shares[LAST]["value"] == pytest.approx(float(found))
        assert shares[ALONE]["value"] == pytest.approx(float((alone == nearest)[1::2].double().mean()), abs=0.02)
        assert shares[AHEAD]["value"] == pytest.approx(shares[LAST]["value"] - shares[ALONE]["value"])
        assert (shares[AHEAD]["low"] > 0) == (last is nearest)
    points = READS.clone()
    points[:, :, ::2] = -1  # of every second query a point is read first: it does not count
    half = {row["is"]: row["value"] for row in beyond(torch.cat((points, nearest[None] - 9)), PROMPTS)}
    assert half[LAST] == 1.0
    assert half[ALONE] == pytest.approx(float((alone == nearest)[1::2, 1::2].double().mean()), abs=0.02)
    assert beyond(torch.full_like(READS, -1), PROMPTS) == []


def test_fresh_networks_are_read_and_told_on_the_page():
    model = Index(lookups=2, slots=3, layers=1, heads=2, width=8, hidden=16, before="slots", address="token")
    network = model.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0)).eval()
    rows = held({MODEL: network}, TASK, PROMPTS)
    assert {row["holds"] for row in rows} == set(CONTENTS)
    assert {row["read"] for row in rows} <= {1, 2, 3}
    value = holds(NEAREST)({"held": rows})
    assert value is not None
    assert value.value == next(row["value"] for row in rows if row["holds"] == NEAREST)
    assert holds(NEAREST)({}) is None
    shown = next(table for table in tables({"3 extra slots": {"0": {"held": rows, "slots": 3}}}) if table.rows)
    assert shown.rows[0][:3] == ["3 extra slots", MODEL, f"{rows[0]['read']} of 3"]
