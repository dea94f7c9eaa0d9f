"""From a picture to a few numbers: two convolutions and a perceptron, as LeNet has (LeCun et al. 1998)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from algoscope import arguments
from algoscope.models.network import Linear, draw_linear

HIDDEN = 128  # as published for numbers of three digits
SMALLEST = 4  # pixels that two halvings leave one of


def check_picture(picture: tuple[int, int, int, int] | None) -> None:
    """Height, width, features and channels."""
    if picture is not None:
        if not isinstance(picture, tuple | list) or len(picture) != 4:
            wanted = "a height, a width, features and channels"
            raise ValueError(f"picture must be {wanted}, or None, got {arguments.shown(picture)}")
        for name, number in zip(("height", "width", "features", "channels"), picture, strict=True):
            arguments.integer(f"{name} of the picture", number, SMALLEST if name in ("height", "width") else 1)


class Encoder(nn.Module):
    """Turns tokens that are pictures, one row of pixels after the other, into tokens of a few `features`.

    The first convolution has so many `channels`, and the second twice as many. The last layer has weights of size 1 and
    divides by the root of its inputs: steps of a training that suits the rest are then short enough for a feature.
    """

    def __init__(self, picture: tuple[int, int, int, int], inputs: int, generator: torch.Generator) -> None:
        super().__init__()
        height, width, features, channels = picture
        self.picture, self.features = (height, width), features
        if inputs != height * width:
            raise ValueError(
                f"picture must have as many pixels as tokens have inputs, {inputs}; got {height} x {width}"
            )
        self.first, self.second = Convolution(1, channels, generator), Convolution(channels, 2 * channels, generator)
        self.hidden = Linear(2 * channels * (height // 4) * (width // 4), HIDDEN)
        self.last = Linear(HIDDEN, features, exact=True)
        draw_linear(self.hidden, generator)
        draw_linear(self.last, generator, deviation=1.0)

    def forward(self, tokens: Float[Tensor, "*batch length inputs"]) -> Float[Tensor, "*batch length features"]:
        members = tokens.shape[: self.last.weight.ndim - 2]
        images = tokens.reshape(*members, -1, 1, *self.picture)
        state = halved(self.second(halved(self.first(images))))
        state = self.hidden(state.reshape(*tokens.shape[:-1], -1)).relu()
        return self.last(state.to(tokens.dtype) / math.sqrt(HIDDEN))


def encoder(picture: tuple[int, int, int, int] | None, inputs: int, generator: torch.Generator) -> Encoder | None:
    """None where tokens are no pictures."""
    return None if picture is None else Encoder(picture, inputs, generator)


class Convolution(nn.Module):
    """Of three by three pixels, for one network or for each member of a population."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.patches = Linear(9 * inputs, outputs)  # as a matrix, which an optimizer knows how to move
        draw_linear(self.patches, generator, math.sqrt(2 / (9 * inputs)))  # what a ReLU halves is doubled before

    def forward(self, images: Float[Tensor, "*members images inputs height width"]) -> Tensor:
        weight, bias = self.patches.weight, self.patches.bias
        weight = weight.unflatten(-1, (images.shape[-3], 3, 3))
        images = images.to(weight.dtype)
        if weight.ndim == 4:
            return functional.conv2d(images, weight, bias, padding=1)
        alone = zip(images, weight, bias, strict=True)
        return torch.stack([functional.conv2d(*own, padding=1) for own in alone])


def halved(images: Float[Tensor, "*members images channels height width"]) -> Tensor:
    """The larger numbers of each two by two pixels, where they are positive."""
    return functional.max_pool2d(images.relu().flatten(0, -4), 2).unflatten(0, images.shape[:-3])
