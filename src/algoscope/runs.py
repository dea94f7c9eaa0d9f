"""The run folder: the only code that knows its file names.

The configuration's hash stands in every file of the folder and is checked when one is read, so that a file of another
run, or an edited configuration, is refused. The folder's own name is free. A folder has one writer at a time.
"""

import contextlib
import hashlib
import json
import operator
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, SupportsIndex

import filelock
import torch
from torch import Tensor

from algoscope import documents, files, registry
from algoscope.files import RunError
from algoscope.formats import FORMAT, NAMES_ALONE, in_format, shortened, up_to_date
from algoscope.spelling import nearest

CONTROLS = Path(__file__).parents[2] / "results/controls/controls.json"  # in the repository; in a package beside us
SHIPPED = Path(__file__).with_name("shipped")  # run folders that come with the project, in 16 bits
METRICS = "metrics"  # the entry that holds the checksum of the metrics
OWNER = "config"  # the entry of a file that holds the hash of the configuration that it belongs to
MOST_METRICS = 2**28  # bytes
PARTS = ("model", "members", "settings")  # of a configuration


@dataclass(frozen=True)
class Config:
    """A configuration as it is on file: its parts, in the names of today; its format, the version of its model, which
    runs of format 1 do not tell, and its hash.
    """

    parts: Mapping[str, Any]
    format: int
    version: int | None
    hash: str


@dataclass(frozen=True)
class Folder:
    """`runs/ID`. What a run needs to resume is in `state` alone; `model` holds the weights for later use."""

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

    def at_step(self, step: int) -> Path:
        """The weights after one of the `checkpoint_steps`."""
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
    def finished(self) -> bool:
        return self.summary.exists() and self.model.exists()

    def report(self, suffix: str, member: int | None = None) -> Path:
        """What was found out about its model, or about a member of its population: "json", or "html", a page."""
        return self.path / f"report{'' if member is None else f'-member-{member}'}.{suffix}"

    def read_config(self) -> Config:
        if not self.config.exists():
            raise RunError(f"{self.path} is not a run folder: it has no {self.config.name}")
        found, has_checksum = files.parse(self.config)
        problem = documents.problem(found, documents.CONFIG)
        unknown = found.keys() - {*PARTS, "version", "format"}
        if problem or unknown:
            raise RunError(f"{self.config} is damaged: {problem or f'it has an unknown entry {min(unknown)!r}'}")
        written = found.get("format", 1)
        if not 1 <= written <= FORMAT:
            raise RunError(f"{self.config} is of format {written}, and this version of algoscope reads up to {FORMAT}")
        if written > 1 and not has_checksum:
            raise RunError(f"{self.config} is damaged or was edited: it has no checksum")
        try:
            parts = up_to_date({name: found[name] for name in PARTS}, written)
        except RecursionError:
            raise RunError(f"{self.config} is damaged: it is nested too deeply") from None
        content = {name: part for name, part in found.items() if name != "format"}
        return Config(parts, written, found.get("version"), files.digest(content))

    def read_json(self, path: Path, schema: documents.Schema) -> dict[str, Any]:
        """A document of this run."""
        config = self.read_config()
        found = files.read_json(path, schema, checked=config.format > 1)
        self._check_owner(path, found.pop(OWNER, None), config)
        return found

    def read_tensors(self, path: Path) -> dict[str, Tensor]:
        """Tensors of this run, from the file that they were written to and no other."""
        return self._read_tensors(path)[0]

    def read_state(self) -> tuple[dict[str, Tensor], str | None]:
        """The last checkpoint, and the checksum of the metrics up to it, which runs of format 1 do not tell."""
        tensors, metadata = self._read_tensors(self.state)
        return tensors, metadata.get(METRICS)

    def _read_tensors(self, path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
        tensors, metadata = files.read_tensors(path)
        self._check_owner(path, metadata.get(OWNER), self.read_config())
        if metadata.get("file", path.name) != path.name:
            raise RunError(f"{path} was written as {metadata['file']}")
        return tensors, metadata

    def read_metrics(self, until: int | None = None, checksum: str | None = None) -> list[dict[str, Any]]:
        """A record for each member and each look at it, up to a step. The last line may be cut off, where a disk was
        full. Those of a finished run must have the checksum that its summary tells, others the one that is given.
        """
        try:
            text = files.content(self.metrics, MOST_METRICS).decode() if self.metrics.exists() else ""
            lines = [line for line in text.splitlines() if line.endswith("}")]
            records = [json.loads(line) for line in lines]
        except (OSError, ValueError, RecursionError) as problem:
            if isinstance(problem, RunError):
                raise
            raise RunError(f"{self.metrics} is damaged: it has a line that is no record") from None
        owner = records.pop(0)[OWNER] if records and isinstance(records[0], dict) and OWNER in records[0] else None
        if records or owner is not None:
            self._check_owner(self.metrics, owner, self.read_config())
        if problem := documents.problem(records, [documents.RECORD]):
            raise RunError(f"{self.metrics} is damaged: {problem}")
        kept = [record for record in records if until is None or record["step"] <= until]
        if self.finished:
            checksum = self.read_json(self.summary, documents.SUMMARY).get("metrics")
        if checksum not in (None, hashlib.sha256(_lines([{OWNER: owner}, *kept]).encode()).hexdigest()):
            raise RunError(f"{self.metrics} is damaged or was edited: its checksum does not fit its content")
        return kept

    @staticmethod
    def _check_owner(path: Path, owner: object, config: Config) -> None:
        """Files of a run of format 1 name no owner."""
        if owner != config.hash and not (owner is None and config.format == 1):
            raise RunError(f"{path} does not belong to the configuration beside it: one of them is of another run")

    @contextlib.contextmanager
    def writing(self, parts: Mapping[str, Any], version: int) -> Iterator["Writer"]:
        """Makes the folder for a configuration and holds it; a second writer, in this or another process, is refused.

        So is a folder that holds the run of another configuration.
        """
        new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise RunError(f"{self.path} cannot be made ({problem.strerror})") from None
        lock = filelock.FileLock(self.path / "lock", blocking=False, is_singleton=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise RunError(f"{self.path} is being written by another process; wait for it or stop it") from None
        except OSError as problem:
            raise RunError(f"{self.path / 'lock'} cannot be held ({problem.strerror})") from None
        try:
            for unfinished in self.path.glob(f"{files.TEMPORARY}*"):  # of a writer that was killed
                if not unfinished.name.startswith(f"{files.TEMPORARY}report"):  # which anyone may be writing
                    with contextlib.suppress(OSError):
                        unfinished.unlink(missing_ok=True)
            yield Writer(self, Path(lock.lock_file), self._claimed(parts, version))
        except BaseException:
            if new and not self.has_progress():
                shutil.rmtree(self.path, ignore_errors=True)
            raise
        finally:
            lock.release()

    def has_progress(self) -> bool:
        """Whether anything was learned here: a record or a checkpoint."""
        return self.state.exists() or (self.metrics.exists() and self.metrics.read_bytes().count(b"\n") > 1)

    def _claimed(self, parts: Mapping[str, Any], version: int) -> str:
        """The hash of the configuration, which is written unless it is here already."""
        if not self.config.exists():
            files.write_json(self.config, {**parts, "version": version, "format": FORMAT})
        try:
            found = self.read_config()
        except RunError as problem:
            raise RunError(f"{problem}. Delete it, and the same command writes it anew") from None
        here, wanted = found.parts, json.loads(json.dumps(parts))
        if found.format <= NAMES_ALONE:  # which did not say where the classes of others come from
            here, wanted = shortened(dict(here)), shortened(wanted)
        if here != wanted or found.version not in (None, version):
            raise RunError(f"{self.config} is of another run: choose another folder, or delete {self.path}")
        return found.hash


@dataclass(frozen=True)
class Writer:
    """The one that may write a run folder: it notes in every file to which configuration that belongs.

    Deleting the lock lets another process in; so before it writes, the first one makes sure that the lock is its own,
    and stops if it is not.
    """

    folder: Folder
    lock: Path
    config: str
    held: tuple[int, int] | None = field(init=False)
    logged: list[Any] = field(init=False)  # one running checksum, of the metrics

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", _file_id(self.lock))
        object.__setattr__(self, "logged", [hashlib.sha256()])
        self._check_lock()

    def json(self, path: Path, value: Mapping[str, Any]) -> None:
        self._check_lock()
        files.write_json(path, {OWNER: self.config, **value})

    def tensors(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        self._check_lock()
        files.write_tensors(path, tensors, **{OWNER: self.config, "file": path.name, METRICS: self.checksum})

    @property
    def checksum(self) -> str:
        """Of the metrics so far."""
        return self.logged[0].hexdigest()

    def metrics(self, records: Iterable[Mapping[str, Any]]) -> None:
        """These records and no others."""
        self._check_lock()
        text = _lines([{OWNER: self.config}, *records])
        files.write_text(self.folder.metrics, text)
        self.logged[0] = hashlib.sha256(text.encode())

    def more_metrics(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Added to those that are there."""
        self._check_lock()
        text = _lines(records)
        files.append_text(self.folder.metrics, text)
        self.logged[0].update(text.encode())

    def _check_lock(self) -> None:
        if self.held is None or _file_id(self.lock) != self.held:
            raise RunError(
                f"{self.lock} was deleted, so another process may be writing {self.folder.path}: stopped, and what was "
                "saved before is untouched"
            )


def _file_id(path: Path) -> tuple[int, int] | None:
    """Which file is there: it has the same while anyone holds it open."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def located(path: Path | str) -> Path:
    """A run folder by its path, or, where there is none, one that ships with the project by its name."""
    shipped = SHIPPED / path
    if Path(path).exists() or shipped.parent != SHIPPED:
        return Path(path)
    names = [folder.name for folder in SHIPPED.iterdir() if folder.is_dir()]
    if str(path) not in names:
        known = f"shipped are {', '.join(names)}{nearest(str(path), names)}"
        raise RunError(f"there is no run folder {path}, and no model of that name; {known}")
    return shipped


def reports_of(path: Path | str) -> Folder:
    """Where what was found out about a run is: in its folder, or for one that ships, in runs/NAME."""
    return Folder(Path("runs") / path if located(path) != Path(path) else Path(path))


def home(out: Path, name: str, config: Mapping[str, object]) -> Folder:
    """Where the run of a configuration is: named by a hash of it, and by something readable; or where it is already,
    under the name that it had in an earlier format, when classes had no modules.
    """
    older = (shortened(in_format(config, written)) for written in range(NAMES_ALONE, 0, -1))
    now, *earlier = (Folder(out / identity(name, each)) for each in (config, *older))
    known = (each for each in earlier if each.config.exists() and each.read_config().format <= NAMES_ALONE)
    return now if now.config.exists() else next(known, now)


def identity(name: str, config: Mapping[str, object]) -> str:
    """A readable name and a hash of the configuration."""
    text = json.dumps(config, sort_keys=True)
    return f"{slug(name)}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def slug(name: str) -> str:
    """A name as a file can have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def plain(value: object) -> object:
    """A dataclass as JSON can hold it: its fields, and under "kind" the module and name of its class."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": registry.address(type(value)), **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return operator.index(value)  # numpy's integers, too
    return value


def revive(value: object, *bases: type) -> Any:
    """What `plain` took apart; its classes extend these, and no others may occur."""
    if isinstance(value, dict):
        rest = {name: revive(part, *bases) for name, part in value.items() if name != "kind"}
        kind = registry.named(str(value.get("kind")), *bases)
        try:
            return kind(**rest)
        except Exception as problem:  # whatever a class, which may be a user's, raises for values of a wrong kind
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise RunError(f"the configuration of {kind.__name__} cannot be used: {reason}") from None
    return tuple(revive(part, *bases) for part in value) if isinstance(value, list) else value


def controls() -> dict[str, Any] | None:
    """How the instrument fares on models whose answer is known; None where the results are not at hand."""
    known = (path for path in (CONTROLS, Path(__file__).with_name(CONTROLS.name)) if path.exists())
    found = next(known, None)
    return None if found is None else files.read_json(found, documents.CONTROLS)["rates"]


def environment(device: torch.device) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"python": platform.python_version(), "torch": torch.__version__, "device": f"{device.type} ({name})"}


def provenance(device: torch.device) -> dict[str, str]:
    """Where a number comes from: machine, versions, the day, and the commit of this code.

    ALGOSCOPE_COMMIT names the commit where the code runs outside of its repository.
    """
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    given = os.environ.get("ALGOSCOPE_COMMIT")
    commit = given or subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return {**environment(device), "commit": commit, "date": datetime.now(UTC).date().isoformat()}
