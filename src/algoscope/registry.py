"""What there is, by the name to type and by the name on file: tasks, algorithms and models, ours and those of others.

Others come from installed packages, through entry points, or from plugins: files or modules that a command is given.
Nothing heavy is imported before something is asked for.
"""

import functools
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from algoscope.spelling import nearest

PACKAGE = "algoscope"
BASES = {"tasks": "Task", "algorithms": "Algorithm", "models": "Model"}  # by room, which is also an entry point's group
_plugins: dict[str, ModuleType] = {}  # as they were given


class Offered(NamedTuple):
    """What installed packages offer in a room, by name, and in words what of that cannot be loaded."""

    found: dict[str, Any]
    broken: tuple[str, ...]


# What one types


def classes(room: str) -> dict[str, type]:
    """The concrete classes of a room, by the name to type: LinearRegression is linear-regression.

    One whose name is taken goes by its module and name.
    """
    named = dict(_own(room))
    for name, kind in (*((spelled(kind), kind) for kind in _plugged(room)), *_installed(room).found.items()):
        if kind not in named.values():
            named[name if name not in named else address(kind)] = kind
    return named


def find(room: str, typed: str) -> type:
    """The class of a room that is meant: by its name or alias, in any spelling, or by its module and name."""
    found = meant(room, typed)
    if found is None:
        raise ValueError("; ".join([unknown(room.removesuffix("s"), typed, classes(room)), *broken(room)]))
    return found


def meant(room: str, typed: str) -> type | None:
    """The same, or None if there is none of that name; others are imported only where it is none of ours."""
    for known in (_own, classes):
        for name, kind in known(room).items():
            spellings = (name, kind.__name__, *vars(kind).get("aliases", ()))
            if typed == address(kind) or _letters(typed) in map(_letters, spellings):
                return kind
    return named(typed, _base(room)) if "." in typed else None


def unknown(what: str, typed: str, known: Mapping[str, Any]) -> str:
    """That there is no such name, and which there are."""
    aliases = [alias for kind in known.values() for alias in vars(kind).get("aliases", ())]
    names = ", ".join(map(repr, known))
    return f"{what} must be one of {names}, got {typed!r}{nearest(typed, [*known, *aliases])}"


def broken(room: str) -> tuple[str, ...]:
    """What installed packages offer and cannot be loaded, each in one line."""
    return _installed(room).broken


def spelled(kind: type) -> str:
    """The name to type."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _letters(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _base(room: str) -> type:
    return getattr(importlib.import_module(f"{PACKAGE}.{room}"), BASES[room])


@functools.cache
def _own(room: str) -> dict[str, type]:
    module = importlib.import_module(f"{PACKAGE}.{room}")
    return {spelled(kind): kind for name in module.__all__ if _concrete(kind := getattr(module, name), _base(room))}


def _concrete(kind: object, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base) and kind is not base and not inspect.isabstract(kind)


# Plugins and installed packages


def plug(given: str) -> None:
    """Imports a file, or a module, whose classes can be named from then on."""
    if given in _plugins:
        return
    is_file = given.endswith(".py") or Path(given).is_file()
    try:
        _plugins[given] = _from_file(Path(given)) if is_file else importlib.import_module(given)
    except ModuleNotFoundError as problem:
        if problem.name != given:
            raise ValueError(f"plugin {given} cannot be loaded: it imports {problem.name}, which is missing") from None
        raise ValueError(f"plugin must be a file such as mine.py, or a module; there is no {given}") from None
    except Exception as problem:  # whatever a file of someone else raises
        raise ValueError(f"plugin {given} cannot be loaded: {_in_a_line(problem)}") from None


def plugins() -> tuple[str, ...]:
    """As they were given: what another process needs to know the same names."""
    return tuple(_plugins)


def plugged(kind: type) -> Iterator[Any]:
    """The values of a class that plugins hold, such as studies."""
    for module in _plugins.values():
        yield from (value for value in vars(module).values() if isinstance(value, kind))


def _from_file(path: Path) -> ModuleType:
    """As `python FILE` finds it: beside it, other modules can be imported. Its classes must know where they live, so
    the module is kept under the name of the file.
    """
    if not path.is_file():
        raise ModuleNotFoundError(name=str(path))
    file, name = path.resolve(), path.stem
    known = sys.modules.get(name)
    if known is not None and Path(getattr(known, "__file__", None) or "").resolve() == file:
        return known
    if known is not None or name in sys.stdlib_module_names:
        raise ValueError(f"a module is already called {name}: give the file another name")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError("it must be a file of Python")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _plugged(room: str) -> list[type]:
    """The classes that plugins define, or import from elsewhere than us."""
    every = [kind for module in _plugins.values() for kind in vars(module).values()]
    theirs = [kind for kind in every if isinstance(kind, type) and not kind.__module__.startswith(f"{PACKAGE}.")]
    return [kind for kind in dict.fromkeys(theirs) if _concrete(kind, _base(room))]


def offered(group: str, fits: type, subclass: bool = False) -> Offered:
    """What entry points of a group name: values of a class, or its concrete subclasses."""
    from importlib.metadata import entry_points

    found, failed = {}, []
    for point in entry_points(group=f"{PACKAGE}.{group}"):
        package = point.dist.name if point.dist else point.value
        where = f"package {package} offers {point.name!r} among its {group}, which cannot be used"
        try:
            value = point.load()
        except Exception as problem:  # whatever a package of someone else raises
            failed.append(f"{where}: {_in_a_line(problem)}")
            continue
        if _concrete(value, fits) if subclass else isinstance(value, fits):
            found[point.name] = value
        else:
            failed.append(f"{where}: {point.value} is no {fits.__name__}")
    return Offered(found, tuple(failed))


@functools.cache
def _installed(room: str) -> Offered:
    return offered(room, _base(room), subclass=True)


def _in_a_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}".rstrip(": ")


# What is on file


def address(kind: type) -> str:
    """What a saved configuration calls a class: its module and name; one of ours is in the room that exports it.

    A script that runs is a module of the name of its file, so that others can import what it defines.
    """
    module, name = kind.__module__, kind.__qualname__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else Path(file).stem if file else module
    room = ".".join(module.split(".")[:2])
    ours = module.startswith(f"{PACKAGE}.") and getattr(sys.modules.get(room), name, None) is kind
    return f"{room if ours else module}.{name}"


def loaded(wanted: str, *bases: type) -> type | None:
    """The class at an address that extends one of these, if it has been imported.

    A name alone, as configurations up to format 2 had it, is that of any.
    """
    module, _, name = wanted.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    if isinstance(found, type) and issubclass(found, bases):
        return found
    if module in ("", "__main__"):  # of a notebook that is gone, the name is all that is left
        return {kind.__name__: kind for kind in _subclasses(bases)}.get(name)
    return {address(kind): kind for kind in _subclasses(bases)}.get(wanted)


def named(wanted: str, *bases: type) -> type:
    """The same; what defines it is imported if need be."""
    found = loaded(wanted, *bases)
    if found is None and _imported(wanted.rpartition(".")[0], wanted):
        found = loaded(wanted, *bases)
    if found is None:
        known = ", ".join(sorted({kind.__name__ for kind in _subclasses(bases)}))
        raise ValueError(
            f"unknown kind {wanted!r}; known are {known}. Give what defines it with --plugin, or import it"
        )
    return found


def _imported(module: str, wanted: str) -> bool:
    """No module of Python itself, and none that is a program, defines what a configuration names."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts) or "__main__" in parts or parts[0] in sys.stdlib_module_names:
        return False
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise ValueError(f"{module}, which defines {wanted}, needs {problem.name}, which is missing") from None
        missing = f"there is no module {module}, which defines {wanted}"
        raise ValueError(f"{missing}: give its file with --plugin, or import it first") from None
    except Exception as problem:  # whatever a module of someone else raises
        raise ValueError(f"{module}, which defines {wanted}, cannot be imported: {_in_a_line(problem)}") from None
    return True


def _subclasses(bases: tuple[type, ...]) -> list[type]:
    found, known = list(bases), []
    while found:
        known.append(found.pop())
        found += known[-1].__subclasses__()
    return known
