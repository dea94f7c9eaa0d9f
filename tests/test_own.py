"""What documents show to whoever brings a task, an algorithm or a model: run as it is, outside of the package."""

import re
import sys
from pathlib import Path

import pytest

from algoscope import registry
from algoscope.cli import main

DOCS = Path(__file__).parent.parent / "docs"
OWN = ["own-task", "own-algorithm", "own-model"]
SMALL = {
    "train": ["--steps", "8", "--batch", "4", "--device", "cpu"],
    "identify": ["--prompts", "40", "--fit-on", "40"],
}


def blocks(document: str, language: str) -> list[str]:
    text = (DOCS / f"{document}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture
def place(request, tmp_path, monkeypatch):
    """A folder with the file of a document, as a user has it."""
    file, *_ = blocks(request.param, "python")
    name = re.match(r"# (\w+)\.py\n", file)
    assert name is not None
    (tmp_path / f"{name[1]}.py").write_text(file)
    monkeypatch.setattr(registry, "_plugins", {})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    yield request.param
    sys.modules.pop(name[1], None)


@pytest.mark.parametrize("place", OWN, indirect=True)
@pytest.mark.usefixtures("as_users_run_it")
def test_the_commands_train_and_identify(place, tmp_path, capsys):
    """As they are written, but shortened: of an option given twice, the later one counts."""
    commands = re.findall(r"^algoscope (.+)", "\n".join(blocks(place, "sh")), flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["train", "identify"]
    for command in commands:
        folders = list((tmp_path / "runs").glob("*"))
        words = [str(folders[0]) if word.endswith("…") else word for word in command.split()]
        main([*words, *SMALL[words[0]]])
    (folder,) = (tmp_path / "runs").iterdir()
    assert (folder / "report.html").exists()
    assert "report.html" in capsys.readouterr().out


@pytest.mark.parametrize("place", OWN, indirect=True)
@pytest.mark.usefixtures("as_users_run_it")
def test_the_contract_is_kept(place):
    (check,) = (block for block in blocks(place, "python") if "algoscope.testing" in block)
    exec(check, {})


@pytest.mark.parametrize("document", OWN)
def test_a_file_has_less_than_60_lines_and_a_document_at_most_1200_words(document):
    assert blocks(document, "python")[0].count("\n") < 60
    assert len((DOCS / f"{document}.md").read_text().split()) <= 1200
