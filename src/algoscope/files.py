"""Files that are whole or not there, and that are checked when they are read back.

A file is written under a temporary name, flushed to the disk and then renamed. JSON documents and tensors carry a
checksum of their content. Nothing that a file claims is believed before it is checked, and no file, however it was
made, takes more than bounded time and memory to refuse.
"""

import contextlib
import gzip
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from algoscope import documents

CHECKSUM, ABOUT = "sha256", "algoscope"  # the entries of a document, and of a file of tensors, that we add
TEMPORARY = ".unfinished-"  # how names of files begin that are being written
LARGEST = 2**26  # bytes of a JSON document: the largest that we write has a fifth of that


class RunError(ValueError):
    """A file or folder that cannot be used as it is; the message, one line whatever names are in it, says why and what
    to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode(errors="backslashreplace"))  # names of folders may hold what is no character


def append_text(path: Path, text: str) -> None:
    """Lines of which the last may be cut off where a disk is full; who reads them goes by the last checkpoint."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise RunError(f"{path} could not be written ({problem.strerror}); the last checkpoint is untouched") from None


def write_json(path: Path, value: Mapping[str, Any], indent: int | None = 2) -> None:
    """With a checksum; compressed if the name ends in .gz."""
    separators = (",", ":") if indent is None else None
    text = json.dumps({**value, CHECKSUM: digest(value)}, indent=indent, separators=separators) + "\n"
    write_bytes(path, gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())


def read_json(path: Path, schema: documents.Schema = dict, checked: bool = True) -> dict[str, Any]:
    """A document without its checksum. One that has none is refused if it should be `checked`: older ones have none.

    `schema` says what it must hold (see `documents`).
    """
    found, has_checksum = parse(path)
    if checked and not has_checksum:
        raise RunError(f"{path} has no checksum: it was not written by algoscope, or by an earlier version")
    if problem := documents.problem(found, schema):
        raise RunError(f"{path} is damaged: {problem}")
    return found


def parse(path: Path) -> tuple[dict[str, Any], bool]:
    """The content of a document, and whether it has a checksum, which is then right."""
    try:
        found = json.loads(content(path, LARGEST))
        if not isinstance(found, dict):
            raise RunError(f"{path} is damaged: it must be an object, got {documents.kind(found)}")
        checksum = found.pop(CHECKSUM, None)
        if checksum is not None and checksum != digest(found):
            raise RunError(f"{path} is damaged or was edited: its checksum does not fit its content")
    except RunError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"there is no {path}") from None
    except OSError as problem:
        raise RunError(f"{path} could not be read ({problem.strerror})") from None
    except (ValueError, EOFError, zlib.error):
        raise RunError(f"{path} is damaged: it is not JSON") from None
    except (RecursionError, MemoryError):
        raise RunError(f"{path} is damaged: it is nested too deeply") from None
    return found, checksum is not None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    """The metadata are one entry of the file: safetensors stores several in an order of chance, and runs that end alike
    should have files that are alike.
    """
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = json.dumps({**metadata, CHECKSUM: _checksum(stored, metadata)}, sort_keys=True)
    write_bytes(path, save(stored, {ABOUT: about}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, or a RunError if it is missing, damaged or foreign."""
    if not path.is_file():
        raise RunError(f"{path} is not a file" if path.exists() else f"there is no {path}")
    try:
        with safe_open(path, framework="pt") as file:
            found = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError, RuntimeError) as problem:
        reason = str(problem).splitlines()[0]
        raise RunError(f"{path} is damaged or not a safetensors file ({reason})") from None
    metadata = _about(path, found[ABOUT]) if ABOUT in found else found  # in format 1 the checksum stands alone
    checksum = metadata.pop(CHECKSUM, None)
    if checksum is None:
        raise RunError(f"{path} was not written by algoscope: it carries no checksum")
    if checksum != _checksum(tensors, metadata):
        raise RunError(f"{path} is damaged: its checksum does not fit its content")
    return tensors, metadata


def _about(path: Path, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    if not isinstance(found, dict) or documents.problem(found, {str: str}):
        raise RunError(f"{path} is damaged: what it says about itself cannot be read")
    return found


@contextlib.contextmanager
def blamed(path: Path) -> Iterator[None]:
    """For what reads a document whose details only it knows: where it stumbles, the document does not hold them."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as problem:
        if isinstance(problem, RunError):
            raise
        reason = f"{type(problem).__name__}: {problem}"
        raise RunError(f"{path} is damaged: it does not hold what is made of it ({reason})") from problem


def digest(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Of a document's content, however it is laid out."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextlib.contextmanager
def output_folder(folder: Path, size: int = 2**22) -> Iterator[None]:
    """For a long computation that ends in files there: it makes the folder, and tries whether so many bytes, about what
    a page has, can be written. If the computation fails, folders that it made are removed, unless they hold files.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        _remove_empty(made)
        raise RunError(f"{folder} cannot be written ({problem.strerror})") from None
    try:
        yield
    except BaseException:
        _remove_empty(made)
        raise


def _remove_empty(folders: Sequence[Path]) -> None:
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


def content(path: Path, largest: int) -> bytes:
    """The bytes of a file, decompressed if it is a .gz, if they are not too many: a few kilobytes of gzip can hold
    gigabytes, and a device has no end.
    """
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a file")
    with path.open("rb") as file:
        raw = file.read(largest + 1)
    if path.suffix == ".gz" and len(raw) <= largest:
        unpacker = zlib.decompressobj(wbits=31)
        raw = unpacker.decompress(raw, largest + 1)
        if len(raw) <= largest and (not unpacker.eof or unpacker.unused_data):
            raise EOFError
    if len(raw) > largest:
        raise RunError(f"{path} is damaged: it holds more than {largest >> 20} MiB")
    return raw


def write_bytes(path: Path, content: bytes) -> None:
    """Whole or not at all; a failure leaves the older file, and nothing else."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as problem:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(f"{path} could not be written ({problem.strerror}); the older one is untouched") from None


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    hashed = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        hashed.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        hashed.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    for name in sorted(metadata):
        hashed.update(f"{name} {metadata[name]}".encode(errors="backslashreplace"))
    return hashed.hexdigest()
