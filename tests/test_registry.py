"""What others add: plugins, entry points, and configurations that name their classes."""

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import algoscope as ag
from algoscope import files, formats, registry, runs
from algoscope.algorithms import GradientDescent, Newton, OnFeatures
from algoscope.cli import main
from algoscope.cli.algorithms import typed_algorithms
from algoscope.models import Transformer
from algoscope.studies import configs
from algoscope.tasks import AutoregressiveRepresentation, Connectivity, LinearRegression, UniformSearch
from algoscope.training import Configuration, Settings

ALGOSCOPE = Path(sys.executable).with_name("algoscope")
PLUGIN = """
    from dataclasses import dataclass
    import algoscope as ag

    @dataclass(frozen=True)
    class Transformer(ag.models.Transformer):
        '''Another transformer.'''

    @dataclass(frozen=True)
    class Sparse(ag.tasks.LinearRegression):
        '''Few weights.'''
        nonzero: int = 1

    @dataclass(frozen=True)
    class Half(ag.Algorithm):
        '''Half of what Newton says.'''
        steps: int
        aliases = ("half-newton",)

        def trace(self, prompts):
            newton = ag.algorithms.Newton(self.steps).trace(prompts)
            return ag.Trace(self.name, newton.values / 2, newton.stages, prompts)
"""
STUDY = """
    from algoscope.studies import Entry
    from algoscope.studies.study import Case, Section, Study

    ENTRY = Entry("counting-study", __name__, "Counting", "nobody", ("1 s", "1 s", "1 s"))
    CASES = [Case("one", lambda scale: {"found": 1.0}), Case("two", lambda scale: {"found": 2.0})]
    RUNS = {scale: CASES for scale in ("smoke", "laptop", "paper")}
    STUDY = Study("counting-study", 1, "It counts.", RUNS, [], lambda numbers: {}, Section("Numbers", "None."))
"""
SMALL = ["--dim", "2", "--examples", "3", "--layers", "1", "--heads", "1", "--width", "8", "--steps", "5"]
SMALL += ["--batch", "4", "--warmup", "2", "--device", "cpu"]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a plugin; whatever was given as one is forgotten afterwards."""
    monkeypatch.setattr(registry, "_plugins", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(text: str, name: str = "some_plugin.py") -> Path:
        (tmp_path / name).write_text(textwrap.dedent(text))
        return tmp_path / name

    yield write
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def package(folder: Path, entries: dict[str, dict[str, str]], **sources: str) -> None:
    """What pip leaves behind of a package with entry points."""
    about = folder / "others-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    groups = (f"[algoscope.{group}]\n" + "\n".join(f"{n} = {v}" for n, v in p.items()) for group, p in entries.items())
    (about / "entry_points.txt").write_text("\n".join(groups) + "\n")
    for name, text in sources.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))


@pytest.fixture
def installed(tmp_path, monkeypatch, plugin):
    """A package of someone else, one part of which is broken."""
    places = {"sparse": "others_plugin:Sparse", "gone": "others_plugin:Gone", "half": "others_plugin:Half"}
    entries = {"tasks": places, "models": {"transformer": "others_plugin:Transformer"}}
    entries["studies"] = {"counting": "others_study:ENTRY", "broken": "others_plugin:Sparse"}
    package(tmp_path / "site", entries, others_plugin=PLUGIN, others_study=STUDY)
    monkeypatch.syspath_prepend(tmp_path / "site")
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


def failed(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize("typed", ["gd", "GD", "gradient-descent", "GradientDescent", "gradientdescent"])
def test_a_class_has_several_spellings(typed):
    assert registry.find("algorithms", typed) is GradientDescent
    assert registry.find("algorithms", "algoscope.algorithms.GradientDescent") is GradientDescent


def test_names_to_type_are_those_of_the_classes():
    for room in registry.BASES:
        for name, kind in registry.classes(room).items():
            assert registry.find(room, name) is kind
            assert registry.spelled(kind) == name
            for alias in vars(kind).get("aliases", ()):
                assert registry.find(room, alias) is kind


def test_classes_of_a_plugin_have_names_and_do_not_hide_ours(plugin):
    registry.plug(str(plugin(PLUGIN)))
    assert registry.classes("tasks")["sparse"].__name__ == "Sparse"
    assert registry.find("algorithms", "half-newton").__name__ == "Half"
    assert registry.find("models", "transformer") is Transformer
    other = registry.classes("models")["some_plugin.Transformer"]
    assert other is registry.find("models", "some_plugin.Transformer") is not Transformer
    assert registry.address(other) == "some_plugin.Transformer"
    assert registry.address(Transformer) == "algoscope.models.Transformer"


def test_two_transformers_do_not_collide(plugin, tmp_path):
    registry.plug(str(plugin(PLUGIN)))
    other = registry.find("models", "some_plugin.Transformer")
    models = [kind(layers=1, heads=1, width=4) for kind in (Transformer, other)]
    task, runs_here = LinearRegression(dim=2, examples=3), tmp_path / "runs"
    paths = [ag.train(task, model, 5, batch=4, out=runs_here, device="cpu").path for model in models]
    assert paths[0] != paths[1]
    assert [type(Configuration.read(path).model) for path in paths] == [Transformer, other]


@dataclass(frozen=True)
class Mine(LinearRegression):
    """A task of someone else."""


@pytest.mark.parametrize("task", [Mine(2, 3), LinearRegression(2, 3)])
def test_a_run_of_format_2_is_found_again(tmp_path, task):
    """By the same command, in the same folder; there classes had no modules."""
    done = ag.train(task, Transformer(1, 1, 4), 5, batch=4, out=tmp_path, device="cpu")
    folder = runs.Folder(done.path)
    found = formats.shortened(formats.in_format(files.read_json(folder.config), 2)) | {"format": 2}
    plan = {name: found[name] for name in ("model", "members", "settings")}
    old = runs.Folder(tmp_path / runs.identity(f"{type(task).__name__} Transformer", plan))
    done.path.rename(old.path)
    files.write_json(old.config, found)
    owner = old.read_config().hash
    for file in (old.summary, old.environment, old.clock):
        files.write_json(file, files.read_json(file) | {"config": owner})
    for file in old.path.glob("*.safetensors"):
        tensors, metadata = files.read_tensors(file)
        files.write_tensors(file, tensors, **metadata | {"config": owner})
    lines = old.metrics.read_text().splitlines(keepends=True)
    old.metrics.write_text("".join([json.dumps({"config": owner}) + "\n", *lines[1:]]))
    summary = files.read_json(old.summary)
    files.write_json(old.summary, {name: part for name, part in summary.items() if name != "metrics"})
    assert Configuration.read(old.path).members[0].task == task
    again = ag.train(task, Transformer(1, 1, 4), 5, batch=4, out=tmp_path, device="cpu")
    assert again.path == old.path
    assert [each.name for each in tmp_path.iterdir()] == [old.path.name]


def test_every_class_that_had_no_module_has_one_now():
    kinds = [*registry.classes("tasks").values(), *registry.classes("models").values()]
    for kind in kinds:
        assert formats.ADDRESSES[kind.__name__] == registry.address(kind)
    for name, address in formats.ADDRESSES.items():
        room, _, last = address.rpartition(".")
        assert getattr(sys.modules.get(room) or __import__(room, fromlist=[name]), last).__name__ == name


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nowhere.Sparse", "there is no module nowhere, which defines nowhere.Sparse: give its file with --plugin"),
        ("subprocess.Popen", "unknown kind 'subprocess.Popen'"),
        ("pytest.__main__.Sparse", "unknown kind"),
        ("antigravity.Sparse", "unknown kind"),
        ("json.tool.Sparse", "unknown kind"),
        ("torch.nn.Linear", "unknown kind 'torch.nn.Linear'; known are"),
        ("..Sparse", "unknown kind"),
    ],
)
def test_a_configuration_names_nothing_but_tasks_and_models(kind, message):
    with pytest.raises(ValueError, match=message):
        registry.named(kind, ag.Task)
    assert "antigravity" not in sys.modules


def test_what_a_configuration_names_is_imported_by_itself(plugin, monkeypatch, tmp_path):
    plugin(PLUGIN, "own_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    found = registry.named("own_module.Sparse", ag.Task)
    assert found(dim=2).nonzero == 1


def test_a_script_is_a_module_of_the_name_of_its_file(tmp_path):
    script = textwrap.dedent(PLUGIN) + "\nfrom algoscope import registry\nprint(registry.address(Sparse))\n"
    (tmp_path / "a_script.py").write_text(script)
    done = subprocess.run([sys.executable, tmp_path / "a_script.py"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a_script.Sparse"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("import nowhere_at_all", "a_plugin.py", "it imports nowhere_at_all, which is missing"),
        ("def (", "a_plugin.py", "cannot be loaded: SyntaxError"),
        ("1 / 0", "a_plugin.py", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("", "torch.py", "a module is already called torch: give the file another name"),
        (None, "a_plugin.py", "plugin must be a file such as mine.py, or a module; there is no"),
    ],
)
def test_a_broken_plugin_is_one_line(plugin, tmp_path, capsys, text, name, message):
    file = tmp_path / name if text is None else plugin(text, name)
    assert message in failed(capsys, "studies", "--plugin", str(file))
    assert "a_plugin" not in sys.modules


def test_an_option_without_a_plugin_is_told(capsys):
    assert "--plugin must be followed by a file" in failed(capsys, "train", "--plugin")
    assert "--plugin must be followed by a file" in failed(capsys, "--plugin=", "train")


def test_entry_points_are_known_by_name_and_broken_ones_are_told(installed, capsys):
    assert registry.find("tasks", "sparse").__module__ == "others_plugin"
    assert registry.find("models", "transformer") is Transformer
    assert registry.classes("models")["others_plugin.Transformer"] is not Transformer
    main(["train", "--help"])
    told = capsys.readouterr().out
    assert "sparse " in told
    assert "package others offers 'gone' among its tasks, which cannot be used: AttributeError" in told
    assert "package others offers 'half' among its tasks, which cannot be used: others_plugin:Half is no Task" in told
    assert "package others offers 'gone'" in failed(capsys, "train", "gone", "--steps", "5")


def test_studies_of_others_are_listed_and_found(installed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["studies"])
    told = capsys.readouterr().out
    assert "counting-study\n  Counting" in told
    assert "package others offers 'broken' among its studies" in told
    main(["study", "counting-study", "--scale", "smoke", "--device", "cpu"])
    assert (tmp_path / "studies/counting-study/smoke/index.html").exists()


def test_a_study_of_a_plugin_is_carried_out_in_processes(plugin, tmp_path):
    file = plugin(STUDY, "own_study.py")
    words = ["study", "counting-study", "--scale", "smoke", "--at-once", "2", "--device", "cpu", "--plugin", str(file)]
    done = subprocess.run([ALGOSCOPE, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = files.read_json(tmp_path / "studies/counting-study/smoke/results.json")
    assert {run: seeds["0"]["found"] for run, seeds in results["runs"].items()} == {"one": 1.0, "two": 2.0}


def test_a_plugin_is_trained_and_its_run_read_where_the_plugin_is_given(plugin, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plugin(PLUGIN, "own_task.py")
    words = ["train", f"--plugin={file}", "sparse", *SMALL, "--nonzero", "2"]
    subprocess.run([ALGOSCOPE, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    assert "there is no module own_task" in failed(capsys, "identify", str(folder))
    registry.plug(str(file))
    assert Configuration.read(folder).members[0].task == registry.find("tasks", "sparse")(2, 3, nonzero=2)


# Algorithms by name

TASK = LinearRegression(dim=4, examples=8)


def test_algorithms_are_typed_with_their_parameters(plugin):
    registry.plug(str(plugin(PLUGIN)))
    half = registry.find("algorithms", "half")
    typed = "newton,gd:rate=0.02,gd:rate=best:steps=[0, 2,5],CG:steps=3,ols,some_plugin.Half,half:steps=2"
    gd = next(each for each in TASK.algorithms() if isinstance(each, GradientDescent))
    assert typed_algorithms(typed, TASK) == [
        Newton(steps=24),
        GradientDescent(gd.steps, rate=0.02),
        GradientDescent([0, 2, 5], rate="best"),
        ag.algorithms.ConjugateGradients(3),
        ag.algorithms.OrdinaryLeastSquares(),
        half(24),  # as many steps as the longest of the list
        half(2),
    ]


def test_what_a_task_lists_on_features_is_on_features():
    task = AutoregressiveRepresentation(dim=2, examples=5)
    assert typed_algorithms("newton:steps=3", task) == [OnFeatures(Newton(3), task)]


@pytest.mark.parametrize("task", [TASK, Connectivity(nodes=8), UniformSearch(size=8), ag.tasks.ZipfStream()], ids=str)
def test_every_name_of_the_family_of_a_task_can_be_typed(task):
    for name, kind in registry.classes("algorithms").items():
        if kind.family == task.family and kind is not OnFeatures:
            (found,) = typed_algorithms(name, task)
            assert type(found) is kind
            prompts = task.sample(2, seed=0)
            if task.family != "search":  # where each makes sense of some points
                assert found.trace(prompts).values.shape[1:] == prompts.y.shape


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("newtn", "got 'newtn'; did you mean 'newton'"),
        ("newton,hops", "algorithm of the family regression, as the task must be one of 'barzilai-borwein'"),
        ("newton:speed=3", "parameters of newton are steps=… or start=… or ridge=…, got 'speed=3'"),
        ("ols:fast", "parameters of ols are none, got 'fast'"),
        ("newton:steps=-1", "steps must be an integer >= 0"),
        ("on-features", "on-features needs a value of algorithm and of task"),
        ("newton,,gd", "algorithms must be names such as newton,gd:rate=0.02"),
        ("nowhere.Lasso", "there is no module nowhere"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_algorithm_is_told(typed, message):
    with pytest.raises(ValueError, match=message):
        typed_algorithms(typed, TASK)


# Results on file


def test_a_configuration_on_file_is_that_of_a_plan_today(plugin):
    """Also one of format 1; and another class of the same name is another."""
    registry.plug(str(plugin(PLUGIN)))
    other = registry.find("models", "some_plugin.Transformer")
    plan = configs.Training("a run", TASK, Transformer(2, 1, 8), Settings(steps=10), 0.001)
    on_file = formats.shortened(formats.in_format(json.loads(json.dumps(configs.config(plan))), 1))
    del on_file["format"]
    assert not configs.config_changed(plan, {"0": {"config": on_file}})
    assert configs.in_words(on_file)[1] == "Transformer: layers 2, heads 1, width 8"
    assert configs.config_changed(replace(plan, model=other(2, 1, 8)), {"0": {"config": on_file}})
