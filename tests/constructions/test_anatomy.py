"""The table of a network says what its weights do."""

import pytest
import torch

import algoscope as ag
from algoscope.constructions import anatomy, newton


def test_it_names_every_place_and_who_writes_it():
    found = anatomy(newton(2, 3, 2, 1e-3))
    places = {name: (holds, written) for name, _, holds, written in found.places}
    assert places["u"] == ("M x, at the token of x", "layers 2–5")
    assert places["token"][1] == "read-in"
    assert places["place"][1] == "positions"
    assert ("layer 2", "head 1", "x asks key, carries key to u") in found.parts
    assert ("layer 1", "head 3", "place and example asks place, carries token to y") in found.parts
    told = [does for layer, part, does in found.parts if (layer, part) == ("layer 4", "MLP")]
    assert told == ["changes u by u, change; change by change; fresh by fresh; prediction by fresh, prediction"]
    assert "layer 5  head 4" in str(found)


def test_places_cover_the_stream_without_overlap():
    network = newton(3, 4, 1, 1e-3)
    covered = [k for place in network.places.values() for k in range(place.where.start, place.where.stop)]
    assert covered == list(range(len(covered)))
    assert len(covered) <= network.read_out.in_features


def test_what_a_place_is_said_to_hold_is_there():
    task = ag.tasks.LinearRegression(dim=3, examples=5)
    prompts, network = task.sample(4, seed=0), newton(3, 5, 2, 1e-3)
    states = network.run(task.encode(prompts.x, prompts.y), network.stages)[1]
    at = {name: place.where for name, place in network.places.items()}
    torch.testing.assert_close(states["layer 1"][:, ::2, at["x"]], prompts.x)
    torch.testing.assert_close(states["layer 1"][:, :-1:2, at["key"]], prompts.x[:, :-1])
    assert not states["layer 1"][:, -1, at["key"]].any()
    torch.testing.assert_close(states["layer 1"][:, :-1:2, at["y"]], prompts.y[:, :-1, None])
    s = prompts.x[:, :-1].mT @ prompts.x[:, :-1]
    torch.testing.assert_close(states["layer 2"][:, ::2, at["u"]], 1e-3 * prompts.x @ s)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_network_without_names_is_refused():
    network = ag.models.Transformer(1, 1, 8).build(2, 1, 5, torch.Generator())
    with pytest.raises(ValueError, match="network must be one whose places have names"):
        anatomy(network)
