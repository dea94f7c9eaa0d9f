"""Numbers as pictures: handwritten digits side by side.

Prompts hold the numbers themselves, so that every algorithm makes sense of them; networks see pictures alone. Which
image of a digit stands where is a fixed function of all numbers of a prompt, mixed so well that it looks random.
Images to train with may also be moved by a few pixels, so that networks do not learn them by heart.
"""

import functools
import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from algoscope import arguments
from algoscope.tasks.vectors import contents, idx

SHIPPED = str(Path(__file__).with_name("digits"))  # 8 x 8 pixels, see the notice there
SPLITS = {"train": "train", "test": "t10k"}  # and how the files of MNIST and Fashion-MNIST call them
ENDINGS = ("-{}-ubyte", "-{}-ubyte.gz", ".{}-ubyte", ".{}-ubyte.gz")
FACTORS = (0x2545F491, 0x1B873593)  # odd, below 2^31, so that products of 32 bits fit into 63
NEAREST = 4096  # digits that are looked up at once: bounds the memory
WORD = 2**32 - 1


class Digits(NamedTuple):
    """Images of digits, sorted by digit; those of digit d begin at `starts[d]`."""

    images: Float[Tensor, "images height width"]  # from 0 to 1
    starts: Int[Tensor, "10"]
    counts: Int[Tensor, "10"]


def check(universe: int, digits: int, folder: str | None, split: str, shift: int) -> None:
    """Whether numbers below `universe` have so many digits, and there are images of all.

    A folder that is named by a variable, such as $MNIST, is looked at now only if that is set.
    """
    arguments.integer("digits", digits, 1, 18)
    arguments.choice("split", split, tuple(SPLITS))
    if folder is not None:
        arguments.path("folder", folder)
    arguments.size("shift", shift, 0)
    if universe > 10**digits:
        raise ValueError(f"universe must be at most {10**digits}, as numbers have {digits} digits, got {universe}")
    if folder is None or "$" not in os.path.expandvars(folder):
        height, width = handwritten(folder or SHIPPED, split, torch.device("cpu")).images.shape[1:]
        if shift >= min(height, width):
            raise ValueError(f"shift must be less than the sides of images, {height} x {width}, got {shift}")


def pictures(
    numbers: Float[Tensor, "batch length"],
    digits: int,
    folder: str | None,
    split: Literal["train", "test"],
    shift: int = 0,
) -> Float[Tensor, "batch length pixels"]:
    """The digits of each number side by side, as one row of pixels after the other.

    Images to train with are each moved by up to `shift` pixels, down or up and to a side; pixels that enter are 0.
    """
    known = handwritten(folder or SHIPPED, split, numbers.device)
    powers = 10 ** torch.arange(digits - 1, -1, -1, device=numbers.device)
    shown = numbers.long()[..., None] // powers % 10
    chosen = choices(numbers.long(), digits)
    images = known.images[known.starts[shown] + chosen % known.counts[shown]].to(numbers.dtype)
    images = moved(images, mixed(chosen + 1), shift) if shift and split == "train" else images
    return images.transpose(2, 3).flatten(2)


def numbers(
    pixels: Float[Tensor, "batch length pixels"], digits: int, folder: str | None, split: Literal["train", "test"]
) -> Int[Tensor, "batch length"]:
    """The inverse of `pictures`: of each digit, that of the nearest image. Where images were moved it may be wrong."""
    known = handwritten(folder or SHIPPED, split, pixels.device)
    height, width = known.images.shape[1:]
    shown = pixels.float().unflatten(-1, (height, digits, width)).transpose(-3, -2).flatten(-2).flatten(0, 2)
    bank = known.images.flatten(1)
    off = torch.cat([(bank.square().sum(1) - 2 * part @ bank.mT).argmin(1) for part in shown.split(NEAREST)])
    digit = torch.bucketize(off, known.starts, right=True) - 1
    powers = 10 ** torch.arange(digits - 1, -1, -1, device=pixels.device)
    return (digit.view(*pixels.shape[:2], digits) * powers).sum(-1)


def moved(
    images: Float[Tensor, "*shape height width"], words: Int[Tensor, "*shape"], shift: int
) -> Float[Tensor, "*shape height width"]:
    """Images moved by up to `shift` pixels along each side; how far is told by the halves of a word of 32 bits."""
    for side, word in ((-2, words >> 16), (-1, words & 0xFFFF)):
        size = images.shape[side]
        far = (word % (2 * shift + 1) - shift)[..., None, None]
        place = torch.arange(size, device=images.device).unsqueeze(-1 if side == -2 else 0) - far
        inside = (place >= 0) & (place < size)
        images = images.gather(side, place.clamp(0, size - 1).expand(images.shape)) * inside
    return images


def choices(numbers: Int[Tensor, "batch length"], digits: int) -> Int[Tensor, "batch length digits"]:
    """A number of 32 bits for each digit that is shown, which changes wherever any of the numbers does."""
    place = torch.arange(numbers.shape[1], device=numbers.device)
    whole = mixed(mixed(numbers) + place).sum(1)[:, None, None]
    return mixed(mixed(whole) + digits * place[:, None] + torch.arange(digits, device=numbers.device))


def mixed(words: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Each of the lower 32 bits changes about half of all."""
    words = words & WORD
    for factor in FACTORS:
        words = (words ^ (words >> 16)) + factor
        words = (words & WORD) * factor & WORD
    return words ^ (words >> 15)


def handwritten(folder: str, split: str, device: torch.device) -> Digits:
    """The images of a folder, kept on the device."""
    found = os.path.expandvars(folder)
    if "$" in found:
        raise ValueError(f"folder is {folder}: set that variable to a folder with the files of MNIST")
    return _handwritten(found, split, device)


# As torch.compiler.assume_constant_result does, which loads the compiler: that takes as long as loading torch.
vars(handwritten)["_dynamo_marked_constant"] = True


@functools.cache
def _handwritten(folder: str, split: str, device: torch.device) -> Digits:
    images, labels = (_array(folder, split, *kind) for kind in (("images", "idx3"), ("labels", "idx1")))
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or 0 in images.shape:
        shapes = f"{list(images.shape)} and {list(labels.shape)}"
        raise ValueError(f"{folder} must hold [n, height, width] images and n labels to {split} with, got {shapes}")
    counts = np.bincount(labels, minlength=10)
    if len(counts) > 10 or not counts.all():
        raise ValueError(f"the labels of {folder} must be 0 to 9, each at least once, got {np.unique(labels).tolist()}")
    found = torch.from_numpy(images[np.argsort(labels, kind="stable")].astype(np.float32)).to(device)
    sizes = torch.from_numpy(counts).to(device)
    return Digits(found / found.amax().clamp(min=1), sizes.cumsum(0) - sizes, sizes)


def _array(folder: str, split: str, what: str, kind: str) -> np.ndarray:
    names = [f"{SPLITS[split]}-{what}{ending.format(kind)}" for ending in ENDINGS]
    files = [Path(folder) / name for name in names if (Path(folder) / name).is_file()]
    if not files:
        raise ValueError(f"folder must hold {names[0]} or {names[1]}, as MNIST's does; there is none in {folder!r}")
    try:
        return idx(contents(str(files[0])))
    except ValueError as problem:
        raise ValueError(f"{files[0]} must be an IDX file of bytes: {problem}") from None


def height_and_width(digits: int, folder: str | None = None) -> tuple[int, int]:
    """Of the picture of a number."""
    _, height, width = handwritten(folder or SHIPPED, "train", torch.device("cpu")).images.shape
    return height, digits * width
