"""The rooms import only the rooms above them, and only the packages that each may use."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "algoscope"
CORE = {"torch", "numpy", "safetensors", "jaxtyping"}
SHARED = {"arguments", "progress", "randomness", "reachability", "trace"}  # every room may use these
SHARED |= {"__version__", "contracts", "documents", "files", "registry", "spelling", "stopping", "tables"}

# room: (rooms it may import, packages beside the standard library)
ROOMS: dict[str, tuple[set[str], set[str]]] = {
    "__init__": (
        {"algorithms", "constructions", "controls", "instrument", "matching", "models", "reading", "symmetries"}
        | {"tasks", "testing", "training"},
        set(),
    ),
    "arguments": (set(), CORE),
    "contracts": (set(), CORE),
    "documents": (set(), set()),
    "files": (set(), CORE),
    "formats": (set(), set()),
    "registry": (set(), set()),
    "testing": ({"algorithms", "models", "runs", "symmetries"}, CORE),
    "spelling": (set(), set()),
    "stopping": (set(), set()),
    "tables": (set(), set()),
    "progress": (set(), set()),
    "randomness": (set(), CORE),
    "reachability": (set(), CORE),
    "trace": (set(), CORE),
    "symmetries": (set(), CORE),
    "tasks": ({"algorithms", "matching", "reading", "symmetries"}, CORE),
    "algorithms": ({"symmetries"}, CORE),
    "models": (set(), CORE | {"triton"}),
    "runs": ({"formats"}, CORE | {"filelock"}),
    "training": ({"models", "runs", "tasks"}, CORE),
    "matching": (set(), CORE),
    "reading": ({"algorithms", "matching", "models"}, CORE),
    "steps": ({"algorithms", "matching", "reading"}, CORE),
    "evidence": ({"matching", "reading", "steps"}, CORE),
    "experiments": ({"evidence", "matching", "steps", "symmetries"}, CORE),
    "verdict": (
        {"experiments", "matching", "report", "runs", "wording"},
        CORE | {"pandas"},
    ),  # where they are asked for, the others
    "wording": ({"verdict"}, set()),
    "controls": (
        {"algorithms", "constructions", "instrument", "matching", "models", "reading", "runs", "tasks"},
        CORE,
    ),
    "instrument": ({"evidence", "experiments", "matching", "reading", "steps", "verdict"}, CORE),
    "report": (set(), {"altair", "jinja2", "vl_convert"}),
    "constructions": ({"models", "tasks"}, CORE),
    "studies": (
        {"algorithms", "constructions", "controls", "formats", "instrument", "matching", "models", "reading", "report"}
        | {"runs", "steps", "tasks", "training", "verdict"},
        {"torch", "jaxtyping", "altair"},
    ),
    "demo": ({"instrument", "runs", "training", "verdict"}, set()),
    "cli": (
        {"algorithms", "controls", "demo", "instrument", "models", "report", "runs", "studies", "tasks"}
        | {"training", "verdict"},
        {"torch", "tyro", "rich"},
    ),
}


OUTSIDE_TASKS = [file for file in sorted(SOURCE.rglob("*.py")) if file.parent.name != "tasks"]


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(file: Path) -> set[str]:
    """Full names of the modules that a file imports, wherever in the file it does."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_rooms_import_only_what_they_may():
    for file in sorted(SOURCE.rglob("*.py")):
        room = room_of(file)
        assert room in ROOMS, f"{room} is a new room: say in ROOMS what it may import"
        rooms, packages = ROOMS[room]
        for name in imports(file):
            top, *rest = name.split(".")
            if top == "algoscope":
                assert rest[0] in rooms | SHARED | {room}, f"{file.name}: {room} may not import {name}"
            else:
                assert top in packages | set(sys.stdlib_module_names), f"{file.name}: {room} may not import {name}"


def test_files_and_functions_are_short():
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text()
        assert text.count("\n") < 400, file.name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= 50, f"{file.name}: {node.name} has {length} lines"


def concrete_tasks() -> set[str]:
    """The classes of tasks/, abstract or not: all that say more than `Task` does."""
    trees = [ast.parse(file.read_text()) for file in (SOURCE / "tasks").glob("*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    inner = [part for node in nodes for part in ast.walk(node)]
    names = {part.id for part in inner if isinstance(part, ast.Name)}
    names |= {part.attr for part in inner if isinstance(part, ast.Attribute)}
    return names | {str(part.value) for part in inner if isinstance(part, ast.Constant)}


def decisions(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Lines that decide by what something is, and the names that they decide by: isinstance, match, a comparison with
    a class or with its name, and a table by classes.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            yield node.lineno, names_in(node.args[1:])
        elif isinstance(node, ast.MatchClass):
            yield node.cls.lineno, names_in([node.cls])
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            yield node.lineno, names_in(side for side in sides if not isinstance(side, ast.Call))
        elif isinstance(node, ast.Dict):
            yield node.lineno, names_in(key for key in node.keys if isinstance(key, ast.Name))


TASKS = concrete_tasks() - {"Task"}


def test_nothing_is_decided_by_the_class_of_a_task():
    """What a room must know of a task, the task says (`contracts.Task`): so that a user's own is served as well."""
    for file in OUTSIDE_TASKS:
        for line, names in decisions(ast.parse(file.read_text())):
            assert not names & TASKS, f"{file.name}, line {line} decides by {names & TASKS}"


def test_decisions_by_class_are_seen():
    for code in (
        "isinstance(task, tasks.Connectivity)",
        "type(task) is Connectivity",
        "type(task).__name__ == 'Connectivity'",
        "match task:\n    case Connectivity(nodes=8): pass",
        "{Connectivity: 1}[type(task)]",
        "issubclass(type(task), (int, Connectivity))",
    ):
        assert any("Connectivity" in names for _, names in decisions(ast.parse(code))), code


def test_importing_the_command_line_does_not_import_torch():
    code = "import sys, algoscope.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_using_it_does_not_load_the_compiler():
    """That would double the time in which every command begins."""
    rooms = "algorithms, constructions, instrument, matching, models, reading, tasks, training"
    checked = "training.plan.outline(models.Transformer(1, 1, 8), tasks.LinearRegression(2, 3))"  # before it is trained
    code = f"import sys; from algoscope import {rooms}; {checked}; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text_is_read_and_written_with_an_encoding():
    """Or Windows chooses another one."""
    for file in sorted(SOURCE.rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            binary = any(isinstance(word, ast.Constant) and "b" in str(word.value) for word in call.args)
            if name in ("read_text", "open") and not binary and owner not in ("webbrowser", "os"):
                assert "encoding" in {word.arg for word in call.keywords}, (
                    f"{file.name}, line {call.lineno}: {ast.unparse(call)}"
                )
