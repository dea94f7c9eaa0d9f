"""The recurrent network against torch's own stack of LSTM layers."""

import battery
import pytest
import torch
from torch import nn

from algoscope.models import Network, Recurrent
from algoscope.tasks import LinearRegression


def stack(network: Network, depth: int, width: int) -> nn.LSTM:
    """torch's LSTM of several layers, with the weights of the first layers of a network."""
    reference = nn.LSTM(width, width, num_layers=depth, batch_first=True, dtype=torch.float64)
    ours = network.state_dict()
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    reference.load_state_dict({f"{kind}_l{k}": ours[f"layers.{k}.{kind}_l0"] for kind in kinds for k in range(depth)})
    return reference


@pytest.mark.parametrize(("layers", "width"), [(1, 1), (1, 7), (2, 8), (4, 5)])
def test_the_network_is_an_lstm_between_two_linear_maps(layers, width):
    network, tokens = battery.scrambled(Recurrent(layers, width)), battery.draw_tokens(3, battery.LENGTH)
    outputs, states = network.run(tokens, network.stages)
    embedding = tokens @ network.get_parameter("read_in.weight").T + network.get_parameter("read_in.bias")
    torch.testing.assert_close(states["embedding"], embedding, rtol=1e-12, atol=1e-12)
    for depth in range(1, layers + 1):
        expected, _ = stack(network, depth, width)(embedding)
        torch.testing.assert_close(states[f"layer {depth}"], expected, rtol=1e-12, atol=1e-12)
    last = states[f"layer {layers}"]
    expected = last @ network.get_parameter("read_out.weight").T + network.get_parameter("read_out.bias")
    torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(network(tokens), expected, rtol=1e-12, atol=1e-12)  # all layers in one call


def test_a_tenth_layer_hears_the_input():
    task = LinearRegression(dim=20, examples=40)
    prompts = task.sample(16, seed=0)
    network = Recurrent().build(task.inputs, task.outputs, task.length, torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, states = network.run(task.encode(prompts.x, prompts.y).float(), ("layer 1", "layer 10"))
    spreads = [float(state.std(0).mean()) for state in states.values()]  # over the prompts
    assert spreads[1] > spreads[0] / 2 > 0.02


def test_stages_are_the_embedding_and_the_layers():
    assert battery.build(Recurrent(2, 4)).stages == ("embedding", "layer 1", "layer 2")


def test_every_token_reaches_all_that_come_after_it():
    network, tokens = battery.scrambled(Recurrent(2, 8)), battery.draw_tokens(3, battery.LENGTH)
    for t in range(battery.LENGTH):
        changed = tokens.clone()
        changed[:, t] = battery.draw_tokens(3, seed=2)
        changes = (network(changed) - network(tokens)).abs().amax((0, 2)) > 1e-10
        assert changes.tolist() == [s >= t for s in range(battery.LENGTH)]


def test_sequences_may_be_longer_than_the_network_was_built_for():
    network, tokens = battery.scrambled(Recurrent(2, 4)), battery.draw_tokens(2, 3 * battery.LENGTH)
    outputs = network(tokens)
    assert outputs.shape == (2, 3 * battery.LENGTH, battery.OUTPUTS)
    torch.testing.assert_close(
        outputs[:, : battery.LENGTH], network(tokens[:, : battery.LENGTH]), rtol=1e-12, atol=1e-12
    )


def test_the_paper_s_network_has_five_point_three_million_parameters():
    """Fu et al.: 10 layers of width 256."""
    assert Recurrent().build(20, 1, 81, torch.Generator().manual_seed(0)).parameter_count == 5_268_993


def test_fresh_networks_have_no_biases():
    parameters = dict(battery.build(Recurrent(2, 4)).named_parameters())
    assert all(bool((tensor == 0).all()) == ("bias" in name) for name, tensor in parameters.items())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"layers": 0}, "layers must be an integer >= 1, got 0"),
        ({"layers": 1.5}, "layers must be an integer >= 1, got 1.5"),
        ({"layers": True}, "layers must be an integer >= 1, got True"),
        ({"width": 0}, "width must be an integer >= 1, got 0"),
        ({"width": "wide"}, "width must be an integer >= 1, got 'wide'"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Recurrent(**bad)
