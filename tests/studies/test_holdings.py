"""What extra slots hold, where it is known: written by hand, and judged by scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from algoscope.matching.lookups import found
from algoscope.models import Index
from algoscope.reading import lookups, slots
from algoscope.studies.data_structures.figures import figures
from algoscope.studies.data_structures.findings import holds, lost_with
from algoscope.studies.data_structures.holdings import (
    AHEAD,
    BELOW,
    CONTENTS,
    ELSEWHERE,
    FEW,
    FRACTION,
    LOST,
    NEAREST,
    SHOWN,
    VALUE,
    WRITTEN,
    asked_of,
    explained,
    holdings,
    instead,
    one_slot,
    swapped,
)
from algoscope.studies.data_structures.references import MODEL, UNTRAINED
from algoscope.studies.data_structures.tables import tables
from algoscope.tasks import UniformSearch

SLOTS, TASK = 4, UniformSearch(9, queries=32)
PROMPTS = TASK.sample(400, seed=0)
POINTS, QUERIES = PROMPTS.x[:, :9, 0].double().numpy(), PROMPTS.x[:, 9:, 0].double()
READS = (2 * (QUERIES + 1)).long().clamp(max=SLOTS - 1)[None]  # a slot for each quarter of the line
MIDDLES = [-0.75, -0.25, 0.25, 0.75]
ASKED = {slot: (100, torch.tensor(middle, dtype=torch.float64)) for slot, middle in enumerate(MIDDLES)}


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


def judged(own: np.ndarray, asked=ASKED) -> dict[str, dict]:
    contents = torch.as_tensor(own)
    return {row["holds"]: row for row in explained(contents, asked, instead(contents, asked, PROMPTS))}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("scale", [1.0, -0.01])
def test_what_was_written_is_found_at_any_scale(content, scale):
    noise = np.random.default_rng(0).normal(size=(400, SLOTS))
    rows = judged(scale * (written(content) + 0.1 * noise * written(content).std(0)) + 3.0)
    assert max(CONTENTS, key=lambda name: rows[name]["value"]) == content
    assert 0.98 < rows[content]["low"] < rows[content]["value"] < rows[content]["high"] < 0.995  # .01 is noise
    assert rows[content]["n"] == 200
    assert rows[VALUE if content != VALUE else BELOW]["value"] < 0.6
    ahead = rows[FRACTION]["value"] - rows[ELSEWHERE]["value"]
    assert rows[AHEAD]["value"] == pytest.approx(ahead)
    assert (rows[AHEAD]["low"] > 0.2) == (content != VALUE)


def test_a_slot_is_asked_at_the_median_of_its_queries_in_half_of_the_sets():
    for slot, (count, middle) in asked_of(READS, PROMPTS).items():
        own = QUERIES[::2][READS[0, ::2] == slot].numpy()
        assert count == len(own)
        assert abs(float(middle) - np.median(own)) < 1e-3  # of an even count the lower of the two
        assert abs(float(middle) - MIDDLES[slot]) < 0.02


def test_the_share_is_that_of_a_linear_regression_for_each_slot_that_counts_by_its_reads():
    """Slots of different scales and numbers of readers, whose queries are not spread evenly: medians, not means."""
    rng = np.random.default_rng(1)
    own = written(BELOW) * [1, 10, 100, 1000] + rng.normal(size=(400, SLOTS)) * [0.1, 20, 50, 3000]
    reads = READS.clone()
    reads[(QUERIES > -0.6)[None] & (QUERIES < -0.1)[None]] = 0
    asked = asked_of(reads, PROMPTS)
    total = explained_share = 0.0
    for slot in range(SLOTS):
        readers = QUERIES[::2][reads[0, ::2] == slot].numpy()
        below = (np.median(readers) > POINTS).sum(1)[:, None]
        line = LinearRegression().fit(below[::2], own[::2, slot])
        left, all_of = (
            np.square(own[1::2, slot] - guess).mean() for guess in (line.predict(below[1::2]), own[::2, slot].mean())
        )
        weight = len(readers) / own[::2, slot].var(ddof=1)
        explained_share, total = explained_share + weight * (all_of - left), total + weight * all_of
    assert judged(own, asked)[BELOW]["value"] == pytest.approx(explained_share / total, abs=2e-3)  # of even counts


def test_slots_that_few_read_that_never_change_or_went_astray_say_nothing():
    """Points that are read are numbers below zero; a slot that nobody reads may hold anything."""
    own, noise = written(NEAREST), np.random.default_rng(2).normal(size=(400, 2))
    beside = np.concatenate((own, noise[:, :1], np.full((400, 1), 7.0), noise[:, 1:], np.full((400, 1), np.nan)), 1)
    reads = torch.cat((READS, torch.full_like(READS, -3), *(torch.full_like(READS, slot) for slot in (5, 7))))
    reads[1, 0, : FEW - 1] = 6
    asked = asked_of(reads, PROMPTS)
    assert set(asked) == {0, 1, 2, 3, 5, 7}
    alone, among = judged(own, asked_of(READS, PROMPTS)), judged(beside, asked)
    for name in CONTENTS:
        assert among[name] == pytest.approx(alone[name], abs=1e-9)
    assert judged(own, {}) == judged(np.zeros((400, SLOTS))) == {}
    assert asked_of(torch.full_like(READS, -1), PROMPTS) == {}
    reads[1, 0, :FEW] = 6
    assert 6 in asked_of(reads, PROMPTS)


def test_one_slot_is_shown_with_the_rank_and_the_side_of_the_next_point():
    """That of the third quarter: of four it is the one in the middle, or next to it."""
    shown = one_slot(torch.as_tensor(written(VALUE)), ASKED, PROMPTS)
    assert shown["held"] == written(VALUE)[:SHOWN, 2].tolist()
    ranks, parts = written(NEAREST)[:SHOWN, 2], np.array(fractions(MIDDLES[2]))[:SHOWN] % 1
    assert shown["rank"] == ranks.tolist()
    inner = (ranks > 0) & (ranks < 8)
    assert ((np.array(shown["next"]) == "below") == (parts < 0.5))[inner].all()
    assert one_slot(torch.zeros(400, SLOTS), {}, PROMPTS) == {}


def build(**form):
    model = Index(lookups=2, slots=3, layers=1, heads=2, width=8, hidden=16, before="slots", address="token", **form)
    generator = torch.Generator().manual_seed(0)
    network = model.build(TASK.inputs, TASK.outputs, TASK.length, generator).eval()
    for parameter in network.parameters():  # a fresh one hardly looks at what it reads
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=generator)
    return network


def test_slots_hold_what_is_written_in_their_place():
    """What a network has written itself changes nothing; something else changes what follows, and only then."""
    network = build(octaves=1)
    own, plain = slots(network, TASK, PROMPTS), lookups(network, TASK, PROMPTS)
    same = lookups(network, TASK, PROMPTS, written=own)
    assert torch.equal(same.values, plain.values)
    other = lookups(network, TASK, PROMPTS, written=own.flip(0) + 5.0)
    assert torch.equal(other.values[0], plain.values[0])
    assert not torch.equal(other.values[1], plain.values[1])
    assert torch.equal(slots(network, TASK, PROMPTS), own)  # and it is over
    contents = own[..., 0].double()
    rows = swapped(network, TASK, PROMPTS, {NEAREST: contents.flip(0) + 5.0, BELOW: contents})
    shares = {(row["with"], row["is"]): row["value"] for row in rows}
    last = {name: float(found(trace)[-1, 1::2].double().mean()) for name, trace in ((NEAREST, other), (WRITTEN, plain))}
    assert shares[NEAREST, "found"] == pytest.approx(last[NEAREST])
    assert shares[WRITTEN, "found"] == shares[BELOW, "found"] == pytest.approx(last[WRITTEN])
    assert shares[NEAREST, LOST] == pytest.approx(last[WRITTEN] - last[NEAREST])
    assert shares[BELOW, LOST] == 0.0
    many = {str(shift): contents + shift for shift in (-5.0, -1.0, 1.0, 5.0)}
    losses = [row for row in swapped(network, TASK, PROMPTS, many) if row["is"] == LOST]
    assert all(row["low"] <= row["value"] <= row["high"] for row in losses)
    assert min(row["low"] for row in losses) < 0  # something else may also be better
    with pytest.raises(ValueError, match=r"written must be \[400, 3, 1\], a vector for each slot of a set, got \[4, 3"):
        lookups(network, TASK, PROMPTS, written=own[:4])


def test_fresh_networks_are_read_and_told_on_the_page():
    network = build()
    told = {"slots": 3, **holdings(network, network, TASK, PROMPTS)}
    rows = [row for row in told["held"] if row["what"] == MODEL]
    assert {row["holds"] for row in rows} == {*CONTENTS, ELSEWHERE, AHEAD}
    assert {row["read"] for row in rows} == {len(lookups(network, TASK, PROMPTS).values[0].unique())}
    for row, other in zip(rows, [row for row in told["held"] if row["what"] == UNTRAINED], strict=True):
        assert other == pytest.approx({**row, "what": UNTRAINED}, abs=1e-9)
    value, less = holds(AHEAD)(told), lost_with(FRACTION)(told)
    assert value is not None
    assert less is not None
    assert value.value == next(row["value"] for row in rows if row["holds"] == AHEAD)
    assert [less.value] == [row["value"] for row in told["swapped"] if (row["with"], row["is"]) == (FRACTION, LOST)]
    assert holds(NEAREST)({}) is lost_with(FRACTION)({}) is None
    numbers = {"3 extra slots": {"0": told}}
    shown = next(table for table in tables(numbers) if table.rows)
    assert shown.rows[0][:4] == ["3 extra slots", MODEL, f"{rows[0]['read']} of 3", NEAREST]
    assert {len(row) for row in shown.rows} == {len(shown.columns)}
    assert {"slot", "swapped"} <= set(figures(numbers))
