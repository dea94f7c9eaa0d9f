"""The encoder of pictures: against torch's own layers, and what it refuses."""

import pytest
import torch
from torch import nn

from algoscope.models import Index, LearnedSketch
from algoscope.models.encoder import Encoder


@pytest.mark.parametrize("features", [1, 2, 5])
def test_it_is_what_torch_makes_of_the_same_weights(features):
    generator = torch.Generator().manual_seed(0)
    ours = Encoder((9, 14, features, 3), 126, generator)
    layers = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(6 * 2 * 3, 128), nn.ReLU(), nn.Linear(128, features),
    )  # fmt: skip
    with torch.no_grad():
        for own in ours.parameters():
            own.copy_(torch.randn(own.shape, generator=generator) / 3)
        for theirs, own in zip(layers.parameters(), ours.parameters(), strict=True):
            theirs.copy_(own.view_as(theirs))
        tokens = torch.rand(2, 4, 126, generator=generator)
        ours.last.weight.mul_(128**0.5)  # it divides by as much
        expected = layers(tokens.view(8, 1, 9, 14)).view(2, 4, features)
        torch.testing.assert_close(ours(tokens), expected)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((8, 8), "picture must be a height, a width, features and channels, or None"),
        ((8, 3, 1, 32), "width of the picture must be an integer >= 4, got 3"),
        ((8, 8, 0, 32), "features of the picture must be an integer >= 1"),
        ((8, 8, 1, 0), "channels of the picture must be an integer >= 1"),
    ],
)
@pytest.mark.parametrize("model", [Index, LearnedSketch])
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(model, bad, message):
    with pytest.raises(ValueError, match=message):
        model(picture=bad)


def test_tokens_must_be_the_pictures():
    model = Index(lookups=1, layers=1, width=8, hidden=8, picture=(8, 8, 1, 32))
    with pytest.raises(ValueError, match="as many pixels as tokens have inputs, 65; got 8 x 8"):
        model.build(65, 4, 6, torch.Generator())
