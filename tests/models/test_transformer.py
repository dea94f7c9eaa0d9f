"""The transformer against GPT-2 of HuggingFace, and each of its options against its formula in plain numpy."""

from collections.abc import Callable

import battery
import numpy as np
import pytest
import torch
from huggingface import gpt2
from scipy import special, stats
from torch import Tensor

from algoscope import models, testing
from algoscope.models import Model, Network, Transformer

Array = np.ndarray


@pytest.mark.parametrize("model", battery.MODELS, ids=str)
def test_contract(model):
    testing.check_model(model, battery.task_for(model))


@pytest.mark.parametrize("model", battery.MODELS, ids=str)
@pytest.mark.parametrize("check", battery.MODEL_CHECKS, ids=lambda check: check.__name__)
def test_battery(model, check):
    check(model)


def test_every_model_is_in_the_battery():
    classes = {getattr(models, name) for name in models.__all__} - {Model, Network}
    assert {type(model) for model in (*battery.MODELS, *battery.INDEXES, *battery.COUNTERS)} == classes


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize(("layers", "heads", "width"), [(1, 1, 8), (2, 4, 16), (3, 2, 12), (4, 8, 64)])
def test_the_default_is_gpt2(layers, heads, width, dtype, tolerance):
    network = battery.scrambled(Transformer(layers, heads, width)).to(dtype)
    reference = gpt2(network, layers, heads)
    tokens = battery.draw_tokens(3, battery.LENGTH).to(dtype)
    seen = []
    for block in reference.h:
        block.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    reference.ln_f.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    with torch.no_grad():
        outputs, states = network.run(tokens, network.stages)
        last = reference(inputs_embeds=network.get_submodule("read_in")(tokens)).last_hidden_state
    assert network.stages == ("embedding", *(f"layer {i + 1}" for i in range(layers)), "norm")
    for name, theirs in zip(network.stages, (*seen, last), strict=True):
        torch.testing.assert_close(states[name], theirs, rtol=tolerance, atol=tolerance)
    read_out = network.get_submodule("read_out")
    torch.testing.assert_close(outputs, read_out(last), rtol=tolerance, atol=tolerance)


WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "softmax": special.softmax,
    "relu": lambda scores: np.maximum(scores, 0) / len(scores),
    "linear": lambda scores: scores / len(scores),
}
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "bilinear": lambda x: np.prod(np.split(x, 2, axis=-1), axis=0),
}


def sees(mask: str | int, i: int, j: int) -> bool:
    if isinstance(mask, int):
        return j in range(i - mask + 1, i + 1)
    return mask == "full" or j <= i


class Textbook:
    """A transformer on one sequence [length, inputs], head by head and token by token."""

    def __init__(self, model: Transformer, network: Network) -> None:
        self.model = model
        self.tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}

    def states(self, tokens: Array) -> list[Array]:
        """The state at every stage, and the outputs."""
        stream = self.linear("read_in", tokens)
        if self.model.positions != "none":
            stream = stream + self.tensors["positions"][: len(tokens)]
        found = [stream]
        for i in range(self.model.layers):
            stream = self.added(stream, self.attention, f"blocks.{i}.attention")
            if self.model.mlp_ratio:
                stream = self.added(stream, self.mlp, f"blocks.{i}.mlp")
            found.append(stream)
        if self.model.norm == "before":
            found.append(self.norm("norm", stream))
        return [*found, self.linear("read_out", found[-1])]

    def added(self, stream: Array, part: Callable[[str, Array], Array], name: str) -> Array:
        if self.model.norm == "before":
            return stream + part(name, self.norm(f"{name}_norm", stream))
        total = stream + part(name, stream)
        return total if self.model.norm == "none" else self.norm(f"{name}_norm", total)

    def linear(self, name: str, x: Array) -> Array:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, name: str, x: Array) -> Array:
        centered = x - x.mean(-1, keepdims=True)
        unit = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
        return unit * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def attention(self, name: str, x: Array) -> Array:
        queries, keys, values = np.split(self.linear(f"{name}.queries_keys_values", x), 3, axis=-1)
        mixed, size = np.zeros_like(x), self.model.width // self.model.heads
        for start in range(0, self.model.width, size):
            head = slice(start, start + size)
            for i in range(len(x)):
                seen = [j for j in range(len(x)) if sees(self.model.mask, i, j)]
                scores = np.array([queries[i, head] @ keys[j, head] for j in seen]) / np.sqrt(size)
                mixed[i, head] = WEIGHTS[self.model.attention](scores) @ values[seen, head]
        return self.linear(f"{name}.output", mixed)

    def mlp(self, name: str, x: Array) -> Array:
        return self.linear(f"{name}.down", ACTIVATIONS[self.model.activation](self.linear(f"{name}.up", x)))


def check_textbook(model: Transformer) -> None:
    network = battery.scrambled(model)
    tokens = battery.draw_tokens(2, battery.LENGTH - 1)
    with torch.no_grad():
        outputs, states = network.run(tokens, network.stages)
    for i, sequence in enumerate(tokens.numpy()):
        expected = Textbook(model, network).states(sequence)
        for ours, theirs in zip((*states.values(), outputs), expected, strict=True):
            np.testing.assert_allclose(ours[i].numpy(), theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("norm", ["before", "after", "none"])
@pytest.mark.parametrize("mask", ["causal", "full", 1, 3, 99])
@pytest.mark.parametrize("attention", ["softmax", "relu", "linear"])
def test_attention_masks_and_norms_follow_their_formulas(attention, mask, norm):
    check_textbook(Transformer(2, 2, 8, attention=attention, mask=mask, norm=norm))


@pytest.mark.parametrize("norm", ["before", "after", "none"])
@pytest.mark.parametrize("mlp_ratio", [4.0, 1.3, 0.0])
@pytest.mark.parametrize("activation", ["gelu", "relu", "bilinear"])
def test_the_mlp_follows_its_formula(activation, mlp_ratio, norm):
    model = Transformer(2, 2, 8, mlp_ratio, activation, norm=norm)
    check_textbook(model)
    names = battery.build(model).state_dict()
    assert any("mlp" in name for name in names) == (mlp_ratio > 0)
    if mlp_ratio:
        assert names["blocks.0.mlp.down.weight"].shape == (8, round(8 * mlp_ratio))


@pytest.mark.usefixtures("as_users_run_it")
def test_the_width_of_the_mlp_may_be_a_whole_number():
    for ratio in (0, 4):
        assert battery.build(Transformer(1, 1, 4, ratio)).parameter_count > 0


@pytest.mark.parametrize("positions", ["learned", "given", "none"])
def test_positions_are_added_to_the_tokens(positions):
    check_textbook(Transformer(1, 2, 8, positions=positions))


def test_without_positions_and_mask_the_order_of_tokens_does_not_matter():
    network = battery.scrambled(Transformer(2, 2, 8, mask="full", positions="none"))
    tokens = battery.draw_tokens(2, battery.LENGTH)
    torch.testing.assert_close(network(tokens.flip(1)), network(tokens).flip(1), rtol=1e-12, atol=1e-12)


def test_given_positions_are_saved_but_not_trained():
    network = Transformer(1, 2, 8, positions="given").build(3, 2, 6, torch.Generator().manual_seed(0))
    places = torch.arange(48.0).reshape(6, 8)
    tokens = battery.draw_tokens(2, 4).float()
    network.give_positions(places)
    (state,) = network.run(tokens, ["embedding"])[1].values()
    assert torch.equal(state, network.read_in(tokens) + places[:4])
    assert "positions" not in dict(network.named_parameters())
    assert torch.equal(network.state_dict()["positions"], places)


@pytest.mark.parametrize("positions", ["learned", "none"])
def test_positions_cannot_be_given_to_a_network_that_has_its_own(positions):
    network = Transformer(1, 2, 8, positions=positions).build(3, 2, 6, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r"give_positions needs a Transformer\(positions='given'\)"):
        network.give_positions(torch.zeros(6, 8))


def influence(model: Transformer) -> Tensor:
    """[i, j]: whether the output at token i changes with token j, in any of many sequences."""
    network, tokens = battery.scrambled(model), battery.draw_tokens(32, battery.LENGTH)
    columns = []
    for j in range(battery.LENGTH):
        changed = tokens.clone()
        changed[:, j] = battery.draw_tokens(32, seed=2)
        columns.append((network(changed) - network(tokens)).abs().amax((0, 2)) > 1e-10)
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("attention", ["softmax", "relu", "linear"])
@pytest.mark.parametrize(
    ("mask", "distances"), [("full", range(-5, 6)), ("causal", range(6)), (1, [0]), (2, [0, 1]), (6, range(6))]
)
def test_a_token_sees_what_its_mask_shows_and_nothing_else(attention, mask, distances):
    seen = influence(Transformer(1, 2, 8, attention=attention, mask=mask))
    assert seen.tolist() == [[i - j in distances for j in range(battery.LENGTH)] for i in range(battery.LENGTH)]


def test_windows_add_up_over_layers():
    """Two layers of three tokens reach four tokens back, where one layer reaches two."""
    seen = influence(Transformer(2, 2, 8, mask=3))
    assert seen.tolist() == [[0 <= i - j <= 4 for j in range(battery.LENGTH)] for i in range(battery.LENGTH)]


@pytest.mark.parametrize("norm", ["before", "after", "none"])
def test_stages_are_the_embedding_the_layers_and_the_last_norm(norm):
    names = ("embedding", "layer 1", "layer 2") + (("norm",) if norm == "before" else ())
    assert battery.build(Transformer(2, 1, 4, norm=norm)).stages == names


def test_the_paper_s_network_has_nine_and_a_half_million_parameters():
    """Fu et al.: 12 layers, 8 heads, width 256, on the 81 tokens of 40 examples."""
    network = Transformer(12, 8, 256).build(20, 1, 81, torch.Generator().manual_seed(0))
    assert network.parameter_count == 9_504_001


def test_fresh_weights_are_those_of_gpt2():
    """Normal of deviation 0.02, less for what is added to the stream; the ends keep the size of what they read."""
    network = Transformer(4, 2, 64).build(20, 30, 50, torch.Generator().manual_seed(0))
    for name, parameter in network.named_parameters():
        values = parameter.detach().numpy().ravel()
        if "norm" in name or "bias" in name:
            assert set(values) == {float(name.endswith("norm.weight"))}
            continue
        inner = 0.02 / np.sqrt(2 * 4) if "attention.output" in name or "down" in name else 0.02
        deviation = {"read_in.weight": 20**-0.5, "read_out.weight": 64**-0.5}.get(name, inner)
        assert stats.kstest(values / deviation, "norm").pvalue > 1e-3, name


def test_tokens_are_taken_in_the_precision_of_the_weights():
    network, tokens = battery.scrambled(Transformer(2, 2, 8)), battery.draw_tokens(2, battery.LENGTH).float()
    assert torch.equal(network(tokens), network(tokens.double()))
    assert network.float()(tokens.double()).dtype == torch.float32


def test_matrices_in_16_bits_leave_the_stream_in_32():
    network, tokens = battery.scrambled(Transformer(2, 2, 8)).float(), battery.draw_tokens(2, battery.LENGTH).float()
    exact = network(tokens)
    for part in network.get_submodule("blocks").modules():
        if isinstance(part, torch.nn.Linear):
            part.bfloat16()
    outputs, states = network.run(tokens, network.stages)
    assert {tensor.dtype for tensor in (outputs, *states.values())} == {torch.float32}
    torch.testing.assert_close(outputs, exact, rtol=0.05, atol=0.05)


def test_more_tokens_than_the_network_was_built_for_are_an_error():
    for positions in ("learned", "none"):
        network = battery.build(Transformer(1, 1, 4, positions=positions))
        with pytest.raises(ValueError, match="tokens must be at most 6, the length it was built for, got 7"):
            network(battery.draw_tokens(2, 7))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"layers": -1}, "layers must be an integer >= 0, got -1"),
        ({"layers": 2.5}, "layers must be an integer >= 0, got 2.5"),
        ({"heads": 0}, "heads must be an integer >= 1, got 0"),
        ({"heads": True}, "heads must be an integer >= 1, got True"),
        ({"width": 0}, "width must be an integer >= 1, got 0"),
        ({"width": "wide"}, "width must be an integer >= 1, got 'wide'"),
        ({"heads": 3, "width": 8}, "width must be a multiple of heads = 3, got 8"),
        ({"mlp_ratio": -0.5}, "mlp_ratio must be a finite number >= 0, got -0.5"),
        ({"mlp_ratio": float("nan")}, "mlp_ratio must be a finite number >= 0, got nan"),
        ({"activation": "silu"}, "activation must be one of 'gelu', 'relu', 'bilinear', got 'silu'"),
        ({"attention": "cosine"}, "attention must be one of 'softmax', 'relu', 'linear', got 'cosine'"),
        ({"mask": "none"}, "mask must be one of 'causal', 'full' or a window of tokens, got 'none'"),
        ({"mask": 0}, "mask must be an integer >= 1, got 0"),
        ({"mask": None}, "mask must be an integer >= 1, got None"),
        ({"norm": "rms"}, "norm must be one of 'before', 'after', 'none', got 'rms'"),
        ({"norm": None}, "norm must be one of 'before', 'after', 'none', got None"),
        ({"positions": "rotary"}, "positions must be one of 'learned', 'given', 'none', got 'rotary'"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Transformer(**bad)
