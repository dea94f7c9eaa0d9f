"""What extra slots hold, where it is known: written by hand, and judged by scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from algoscope.models import Index
from algoscope.studies.data_structures.figures import figures
from algoscope.studies.data_structures.findings import beyond_ranks, holds
from algoscope.studies.data_structures.holdings import (
    AHEAD,
    ALONE,
    BELOW,
    CONTENTS,
    FEW,
    FRACTION,
    LAST,
    NEAREST,
    SHOWN,
    VALUE,
    beyond,
    explained,
    holdings,
    seen,
)
from algoscope.studies.data_structures.references import MODEL, UNTRAINED
from algoscope.studies.data_structures.tables import tables
from algoscope.tasks import UniformSearch

SLOTS, TASK = 4, UniformSearch(9, queries=32)
PROMPTS = TASK.sample(400, seed=0)
POINTS, QUERIES = PROMPTS.x[:, :9, 0].double().numpy(), PROMPTS.x[:, 9:, 0].double()
READS = (2 * (QUERIES + 1)).long().clamp(max=SLOTS - 1)[None]  # a slot for each quarter of the line
MIDDLES = [-0.75, -0.25, 0.25, 0.75]


def fractions(middle: float) -> list[float]:
    """Ranks, and where the middle lies between the borders at which other points become the nearest; half at ends."""
    made = []
    for own in np.sort(POINTS, 1):
        rank = int(np.abs(own - middle).argmin())
        if 0 < rank < len(own) - 1:
            low, high = (own[rank - 1] + own[rank]) / 2, (own[rank] + own[rank + 1]) / 2
            made.append(rank + (middle - low) / (high - low))
        else:
            made.append(rank + 0.5)
    return made


def written(content: str) -> np.ndarray:
    """What a person would write: [sets, slots]."""
    nearest = [np.abs(POINTS - middle).argmin(1) for middle in MIDDLES]
    made = {
        NEAREST: [(row[:, None] > POINTS).sum(1) for row in (POINTS[np.arange(400), each] for each in nearest)],
        VALUE: [POINTS[np.arange(400), each] for each in nearest],
        BELOW: [(middle > POINTS).sum(1) for middle in MIDDLES],
        FRACTION: [fractions(middle) for middle in MIDDLES],
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


def test_one_slot_is_shown_with_the_rank_and_the_side_of_the_next_point():
    """That of the third quarter: of four it is the one in the middle, or next to it."""
    shown = seen(READS, torch.as_tensor(written(VALUE)), PROMPTS)
    assert shown["held"] == written(VALUE)[:SHOWN, 2].tolist()
    ranks, parts = written(NEAREST)[:SHOWN, 2], np.array(fractions(MIDDLES[2]))[:SHOWN] % 1
    assert np.mean(np.array(shown["rank"]) == ranks) > 0.9  # the middle is estimated
    inner = (ranks > 0) & (ranks < 8) & (np.abs(parts - 0.5) > 0.1)
    assert np.mean((np.array(shown["next"]) == "below") == (parts < 0.5), where=inner) > 0.9
    assert seen(torch.full_like(READS, -1), torch.zeros(400, SLOTS), PROMPTS) == {}


def test_fresh_networks_are_read_and_told_on_the_page():
    model = Index(lookups=2, slots=3, layers=1, heads=2, width=8, hidden=16, before="slots", address="token")
    network = model.build(TASK.inputs, TASK.outputs, TASK.length, torch.Generator().manual_seed(0)).eval()
    found = {"slots": 3, **holdings(network, network, TASK, PROMPTS)}
    rows = [row for row in found["held"] if row["what"] == MODEL]
    assert {row["holds"] for row in rows} == set(CONTENTS)
    assert {row["read"] for row in rows} <= {1, 2, 3}
    assert [{**row, "what": UNTRAINED} for row in rows] == [row for row in found["held"] if row["what"] == UNTRAINED]
    value, more = holds(NEAREST)(found), beyond_ranks(found)
    assert value is not None
    assert more is not None
    assert value.value == next(row["value"] for row in rows if row["holds"] == NEAREST)
    assert more.value == next(row["value"] for row in found["beyond"] if row["is"] == AHEAD)
    assert holds(NEAREST)({}) is beyond_ranks({}) is None
    numbers = {"3 extra slots": {"0": found}}
    shown = next(table for table in tables(numbers) if table.rows)
    assert shown.rows[0][:3] == ["3 extra slots", MODEL, f"{rows[0]['read']} of 3"]
    assert {len(row) for row in shown.rows} == {len(shown.columns)}
    assert "slot" in figures(numbers)
