"""What the README shows runs, and shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_run(block):
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"print\(.*?\)\s+# (.*)", block)
    assert [line for line in done.stdout.splitlines() if line] == promised


def test_the_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    commands = re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    assert {"demo", "test"} <= set(commands) <= targets


COMMANDS = re.findall(r"^algoscope ([^#\n]+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
SMOKE = {"train": ["--steps", "3", "--batch", "4"], "bench": ["--seconds", "0.1"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command, tmp_path):
    """As they are written, but shortened: of an option given twice, the later one counts."""
    words = command.split()
    program = [str(Path(sys.executable).with_name("algoscope")), *words, *SMOKE[words[0]]]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_files_that_it_links_to_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if not link.startswith("http"))
