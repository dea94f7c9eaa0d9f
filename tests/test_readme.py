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


# Sizes of a GPU, and what stands for them here.
SMALLER = {
    "dim=20, examples=40)  #": "dim=3, examples=6)  #",
    "layers=12, heads=8, width=256": "layers=2, heads=2, width=8",
    "steps=22_000": "steps=20",
    "ag.load(run.path), task)": "ag.load(run.path), task, prompts=30, fit_on=30)",
}
OWN = """
import torch, algoscope as ag
class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 8), torch.nn.Linear(8, 8)])
    def forward(self, tokens):
        return self.blocks[1](self.blocks[0](tokens))
my_model, task = Own(), ag.tasks.LinearRegression(dim=3, examples=6)
"""


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_run(block, tmp_path):
    for large, small in SMALLER.items():
        block = block.replace(large, small)
    code = OWN + block if "my_model" in block else block
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"print\(.*?\)\s+# (.*)", block)
    shown = [line for line in done.stdout.splitlines() if line]
    assert shown == promised if len(promised) == block.count("print(") else shown


def test_the_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    commands = re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    assert {"demo", "test"} <= set(commands) <= targets


COMMANDS = re.findall(r"^algoscope ([^#\n]+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
SMOKE = {
    "train": ["--steps", "8", "--batch", "4"],
    "identify": ["--prompts", "30", "--fit-on", "30"],
    "bench": ["--seconds", "0.1"],
    "study": ["--scale", "smoke"],
}


def test_the_commands_run_one_after_the_other(tmp_path):
    """As they are written, but shortened: of an option given twice, the later one counts."""
    assert {command.split()[0] for command in COMMANDS} >= {"train", "identify", "report", "studies", "study", "bench"}
    for command in COMMANDS:
        if "…" in command:
            (folder,) = (tmp_path / "runs").iterdir()
            command = re.sub(r"runs/\S*…", str(folder), command)
        words = command.split()
        program = [str(Path(sys.executable).with_name("algoscope")), *words, *SMOKE.get(words[0], [])]
        done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_files_that_it_links_to_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if not link.startswith("http"))
