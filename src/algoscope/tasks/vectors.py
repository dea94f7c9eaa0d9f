"""Vectors from files, reduced to their principal components."""

import functools
import io
import zlib
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from algoscope import files
from algoscope.randomness import stream

LARGEST = 2**31  # bytes of a file of vectors: MNIST's images have 47 million
UNSIGNED_BYTES = 0x08  # how an IDX file says what its numbers are


@functools.cache
def vectors(path: str, basis: str, dim: int, device: torch.device, dtype: torch.dtype) -> Float[Tensor, "vectors dim"]:
    """The vectors of a file in a fixed random order: their first `dim` principal components in the file `basis`.

    They are divided by the root mean square norm of those in `basis`, so that they are of about size 1.
    """
    known = read(path)
    reference = known if basis == path else read(basis)
    if known.shape[1] != reference.shape[1]:
        raise ValueError(f"{path} has vectors of {known.shape[1]} numbers, and {basis} of {reference.shape[1]}")
    if dim > reference.shape[1]:
        raise ValueError(f"dim must be at most {reference.shape[1]}, the size of the vectors of {basis}, got {dim}")
    mean = reference.mean(0)
    spread = (reference - mean).T @ (reference - mean)
    axes = torch.linalg.eigh(spread).eigenvectors.flip(1)[:, :dim]
    size = ((reference - mean) @ axes).square().sum(1).mean().sqrt()
    if not size > 0:
        raise ValueError(f"the vectors of {basis} must differ")
    order = torch.randperm(len(known), generator=stream("order of vectors", 0))
    return (((known - mean) @ axes) / size)[order].to(device, dtype)


def read(path: str) -> Float[Tensor, "vectors size"]:
    """One vector a row: numpy's .npy, .fvecs of the SIFT collections, or IDX images, also compressed (.gz)."""
    kinds = {".npy": lambda content: np.load(io.BytesIO(content), allow_pickle=False), ".fvecs": _fvecs}
    content, kind = contents(path), Path(path.removesuffix(".gz")).suffix
    try:
        found = kinds.get(kind, idx)(content)
        if found.dtype.kind not in "biuf":
            raise ValueError(f"its numbers are {found.dtype}")
        numbers = torch.from_numpy(found.astype(np.float64))
    except Exception as problem:  # numpy raises many kinds for what is no array
        reason = " ".join(str(problem).split())
        raise ValueError(f"{path} must hold vectors as .npy, .fvecs or IDX: {reason}") from None
    if numbers.ndim < 2 or 0 in numbers.shape or not bool(numbers.isfinite().all()):
        raise ValueError(f"{path} must hold rows of finite numbers, got an array of shape {list(numbers.shape)}")
    return numbers.flatten(1)


def contents(path: str) -> bytes:
    """The bytes of a file, decompressed if it is a .gz."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"path must be a file of vectors, got {path!r}")
    try:
        return files.content(file, LARGEST)
    except (OSError, EOFError, zlib.error) as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from None


def _fvecs(content: bytes) -> np.ndarray:
    """Each vector is its size, as an integer of 32 bits, and as many floats."""
    if len(content) < 8:
        raise ValueError(f"{len(content)} bytes are no vector")
    size = int(np.frombuffer(content[:4], "<i4")[0])
    if size < 1 or len(content) % (4 * size + 4):
        raise ValueError(f"{len(content)} bytes are not vectors of {size} numbers")
    if (np.frombuffer(content, "<i4").reshape(-1, size + 1)[:, 0] != size).any():
        raise ValueError(f"its vectors must all have {size} numbers")
    return np.frombuffer(content, "<f4").reshape(-1, size + 1)[:, 1:]


def idx(content: bytes) -> np.ndarray:
    """Two zeros, the type, the number of axes, their sizes, and then the numbers."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTES:
        raise ValueError("it does not begin like an IDX file of bytes")
    sizes = np.frombuffer(content[4 : 4 + 4 * content[3]], ">u4")
    return np.frombuffer(content[4 + 4 * content[3] :], np.uint8).reshape(sizes)
