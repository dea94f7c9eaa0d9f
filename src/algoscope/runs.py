"""The run folder: the only code that knows file names.

A file is written under a temporary name, flushed to the disk and then renamed, so that it is there whole or not at
all. Tensors are stored as safetensors with a checksum that is verified on reading. A folder has one writer at a time.
"""

import contextlib
import fcntl
import gzip
import hashlib
import json
import operator
import os
import platform
import re
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, SupportsIndex

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

CHECKSUM = "sha256"
TEMPORARY = ".unfinished-"  # how names of files begin that are being written
CONTROLS = Path(__file__).parents[2] / "results/controls/controls.json"  # in the repository; in a package beside us


SHIPPED = Path(__file__).with_name("shipped")  # run folders that come with the project, in 16 bits


class RunError(ValueError):
    """A run folder that cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True)
class Folder:
    """`runs/ID`. What a run needs to go on is in `state` alone; `model` holds the weights for later use."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def state(self) -> Path:
        return self.path / "state.safetensors"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    def kept(self, step: int) -> Path:
        """The weights after a step on the way."""
        return self.path / f"model-{step}.safetensors"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def clock(self) -> Path:
        return self.path / "clock.json"

    @property
    def environment(self) -> Path:
        return self.path / "environment.json"

    @property
    def verdict(self) -> Path:
        return self.path / "report.json"

    @property
    def page(self) -> Path:
        return self.path / "report.html"

    @property
    def finished(self) -> bool:
        return self.summary.exists() and self.model.exists()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Makes the folder and holds it; a second writer, in this or another process, is refused."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(f"{self.path} is being written by another process; wait for it or stop it") from None
            for unfinished in self.path.glob(f"{TEMPORARY}*"):  # of a writer that was killed
                unfinished.unlink(missing_ok=True)
            yield


def located(path: Path | str) -> Path:
    """A run folder by its path, or, where there is none, one that ships with the project by its name."""
    shipped = SHIPPED / path
    return shipped if not Path(path).exists() and shipped.parent == SHIPPED and shipped.is_dir() else Path(path)


def identity(name: str, config: Mapping[str, object]) -> str:
    """A readable name and a hash of the configuration."""
    text = json.dumps(config, sort_keys=True)
    return f"{slug(name)}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def slug(name: str) -> str:
    """A name as a file can have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def plain(value: object) -> object:
    """A dataclass as JSON can hold it: its fields, and under "kind" the name of its class."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return operator.index(value)  # numpy's integers, too
    return value


def revive(value: object, kinds: Mapping[str, type]) -> Any:
    """What `plain` took apart; `kinds` are the classes that may occur, by name."""
    if isinstance(value, dict):
        kind, rest = (
            str(value.get("kind")),
            {name: revive(part, kinds) for name, part in value.items() if name != "kind"},
        )
        if kind not in kinds:
            known = ", ".join(sorted(kinds))
            raise RunError(
                f"the configuration names an unknown kind {kind!r}; known are {known}. Import what defines it first"
            )
        try:
            return kinds[kind](**rest)
        except (TypeError, ValueError) as problem:
            raise RunError(f"the configuration of {kind} cannot be used: {problem}") from None
    return tuple(revive(part, kinds) for part in value) if isinstance(value, list) else value


def controls() -> dict[str, Any] | None:
    """How the instrument fares on models whose answer is known; None where the results are not at hand."""
    known = (path for path in (CONTROLS, Path(__file__).with_name(CONTROLS.name)) if path.exists())
    found = next(known, None)
    return None if found is None else json.loads(found.read_text())["rates"]


def write_text(path: Path, text: str) -> None:
    _write(path, text.encode())


def append_text(path: Path, text: str) -> None:
    """Lines of which the last may be cut off where a disk is full; who reads them goes by the last checkpoint."""
    try:
        with path.open("a") as file:
            file.write(text)
    except OSError as problem:
        raise RunError(f"{path} could not be written ({problem.strerror}); the last checkpoint is untouched") from None


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path, needs: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of a file, among them those that it needs."""
    try:
        content = path.read_bytes()
        found = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{path.parent} is not a run folder: it has no {path.name}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error):
        raise RunError(f"{path} is damaged: it is not JSON") from None
    missing = [name for name in needs if name not in found] if isinstance(found, dict) else needs
    if missing or not isinstance(found, dict):
        raise RunError(f"{path} is damaged: it lacks {', '.join(missing) or 'everything'}")
    return found


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    _write(path, save(stored, {**metadata, CHECKSUM: _checksum(stored)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, or a RunError if it is missing, damaged or foreign."""
    if not path.exists():
        raise RunError(f"{path.parent} has no {path.name}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunError(f"{path} is damaged or not a safetensors file ({problem})") from None
    if CHECKSUM not in metadata:
        raise RunError(f"{path} was not written by algoscope: it carries no checksum")
    if metadata.pop(CHECKSUM) != _checksum(tensors):
        raise RunError(f"{path} is damaged: its checksum does not fit its content")
    return tensors, metadata


def environment(device: torch.device) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"python": platform.python_version(), "torch": torch.__version__, "device": f"{device.type} ({name})"}


def provenance(device: torch.device) -> dict[str, str]:
    """Where a number comes from: machine, versions, the day, and the commit of this code.

    ALGOSCOPE_COMMIT names the commit where the code runs outside of its repository.
    """
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    told = os.environ.get("ALGOSCOPE_COMMIT")
    commit = told or subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return {**environment(device), "commit": commit, "date": datetime.now(UTC).date().isoformat()}


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all; a failure leaves the older file, and nothing else."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise RunError(f"{path} could not be written ({problem.strerror}); the older one is untouched") from None


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
