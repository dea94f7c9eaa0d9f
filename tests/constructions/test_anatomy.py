"""The table of a network says what its weights do."""

import pytest
import torch

import algoscope as ag
from algoscope import constructions
from algoscope.constructions import anatomy, newton

ALL = {
    "newton": lambda: newton(2, 3, 2, 1e-3),
    "moments": lambda: constructions.moments(2, 3, [1.0, 0.5]),
    "gradient_descent": lambda: constructions.gradient_descent(2, 3, 2, 0.01, ridge=0.1),
    "representation_regression": lambda: constructions.representation_regression([torch.eye(2)], 3, 2, 0.01),
    "looped_newton": lambda: constructions.looped_newton(2, 3, 2, 1e-3),
    "decoder_gradient_descent": lambda: constructions.decoder_gradient_descent(2, 3, 2, 0.01),
    "causal_newton": lambda: constructions.causal_newton(2, 3, 1, 1e-3),
    "autoregression": lambda: constructions.autoregression([torch.ones(2, 4)], 2, 6, 2, 0.01),
    "chain_of_thought": lambda: constructions.chain_of_thought(2, 3, 2, 2, 0.01),
    "sum_of_tokens": lambda: constructions.sum_of_tokens(2, 7),
}
SHORTER = ("decoder_gradient_descent", "causal_newton", "chain_of_thought")  # take prompts of any length


def test_it_names_every_place_and_who_writes_it():
    found = anatomy(newton(2, 3, 2, 1e-3))
    places = {name: (content, written) for name, _, content, written in found.places}
    assert places["u"] == ("M x, at the token of x", "layers 2–5")
    assert places["token"][1] == "read-in"
    assert places["place"][1] == "positions"
    assert ("layer 2", "head 1", "x asks key, carries 0.001 key to u") in found.parts
    assert ("layer 2", "head 2", "−x asks key, carries −0.001 key to u") in found.parts
    assert ("layer 1", "head 3", "place and example asks place, carries token to y") in found.parts
    told = [does for layer, part, does in found.parts if (layer, part) == ("layer 4", "MLP")]
    assert told == ["changes u by u, change; change by change; fresh by fresh; prediction by fresh, prediction (ReLU)"]
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


def test_a_network_prints_as_its_table():
    network = newton(2, 3, 1, 1e-3)
    assert str(network) == str(anatomy(network))
    plain = ag.models.Transformer(1, 1, 8).build(2, 1, 5, torch.Generator())
    assert str(plain) == repr(plain)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_network_without_names_is_refused():
    network = ag.models.Transformer(1, 1, 8).build(2, 1, 5, torch.Generator())
    with pytest.raises(ValueError, match="network must be one whose places have names"):
        anatomy(network)


@pytest.mark.parametrize("name", ALL)
def test_every_construction_has_a_table_in_which_every_place_is_written(name):
    network = ALL[name]()
    found = anatomy(network)
    assert {place for place, *_ in found.places} == set(network.places)
    assert all(content and written for _, _, content, written in found.places)
    assert all(does for _, _, does in found.parts)


def test_products_of_two_places_are_told():
    parts = anatomy(ALL["causal_newton"]()).parts
    assert ("layer 3", "MLP", "changes sm by s·m; w by m·b (products)") in parts


@pytest.mark.parametrize("name", [name for name in ALL if name not in SHORTER])
def test_encoders_refuse_prompts_of_another_length(name):
    """Their sums and their test point are fixed."""
    with pytest.raises(ValueError, match="tokens must be 7, the length it was built for, got 5"):
        ALL[name]()(torch.zeros(1, 5, 2, dtype=torch.float64))


def test_decoders_take_shorter_prompts():
    short = ag.tasks.LinearRegression(dim=2, examples=2).sample(3, seed=0)
    tokens = ag.tasks.LinearRegression(dim=2, examples=2).encode(short.x, short.y)
    exact = ag.algorithms.GradientDescent([2], rate=0.01).trace(short).values[0]
    with torch.no_grad():
        found = ALL["decoder_gradient_descent"]()(tokens)[:, ::2, 0]
    torch.testing.assert_close(found, exact, rtol=1e-6, atol=1e-7)
