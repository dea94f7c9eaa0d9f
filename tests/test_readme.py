"""What the README shows runs, and shows what it says."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from algoscope.cli import main
from algoscope.studies import CATALOG
from algoscope.studies.study import read

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


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
        return self.blocks[1](self.blocks[0](tokens))[..., :1]
my_model, task = Own(), ag.tasks.LinearRegression(dim=3, examples=6)
"""


def in_a_process(code: str) -> None:
    """As a user runs a script."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)


@pytest.mark.parametrize("block", [*blocks("python"), blocks("python", (ROOT / "docs/own-model.md").read_text())[-1]])
@pytest.mark.usefixtures("as_users_run_it")
def test_python_examples_run(block, tmp_path, monkeypatch, capsys):
    """Those that train or identify run in this process: to load torch in another takes seconds each time."""
    monkeypatch.chdir(tmp_path)
    for large, small in SMALLER.items():
        block = block.replace(large, small)
    code = OWN + block if "my_model" in block else block
    if re.search(r"ag\.(train|identify)\(", code):
        exec(code, {"__name__": "__main__"})
    else:
        in_a_process(code)
    promised = re.findall(r"print\(.*?\)\s+# (.*)", block)
    shown = [line for line in capsys.readouterr().out.splitlines() if line]
    assert shown == promised if len(promised) == block.count("print(") else shown
    assert (tmp_path / "mine.html").exists() or "mine.html" not in block


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


@pytest.mark.usefixtures("as_users_run_it")
def test_the_commands_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    """As they are written, but shortened: of an option given twice, the later one counts."""
    monkeypatch.chdir(tmp_path)
    assert {command.split()[0] for command in COMMANDS} >= {"train", "identify", "report", "studies", "study", "bench"}
    for command in COMMANDS:
        if "…" in command:
            (folder,) = (tmp_path / "runs").iterdir()
            command = re.sub(r"runs/\S*…", str(folder), command)
        words = command.split()
        main([*words, *SMOKE.get(words[0], [])])  # where a command fails, it ends in a SystemExit
        assert capsys.readouterr().out


def test_files_that_it_links_to_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if not link.startswith("http"))


def test_the_table_of_speeds_is_that_of_the_file():
    """docs/training.md says what results/benchmarks/training.json says."""
    found = json.loads((ROOT / "results/benchmarks/training.json").read_text())
    text = (ROOT / "docs/training.md").read_text()
    peers, muon = found["peer_steps_per_s"], found["with_muon"]
    costs = {(row["members"], row["batch"]): row for row in (*found["cost_of_members"], *found["cost_of_batch"])}
    speeds = {
        "the peers'": peers,
        "ours, one model, AdamW": found["single_steps_per_s"],
        f"ours, {found['population_members']} models with their own data": found["population_model_steps_per_s"],
        "ours, 64 models with their own data": 64 * 1000 / costs[64, 64]["ms_per_step"],
        "ours, one model, Muon": muon["1"],
        "ours, 32 models, Muon": muon["32"],
    }
    for name, speed in speeds.items():
        (row,) = re.findall(rf"^\| {re.escape(name)}[^|]*\| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
        assert float(row[0]) == pytest.approx(speed, rel=0.005)
        assert float(row[1]) == pytest.approx(speed / peers, rel=0.01)
    for (members, batch), row in costs.items():
        (told,) = re.findall(rf"^\| {members} \| {batch} \| ([\d.]+) \| ([\d.]+)(?: \*)? \|", text, re.MULTILINE)
        assert float(told[0]) == pytest.approx(row["ms_per_step"], abs=0.051)
        assert float(told[1]) == pytest.approx(row["gib"], abs=0.0051)


@pytest.mark.parametrize("study", CATALOG)
def test_verdicts_are_those_on_file(study):
    (row,) = (line for line in README.splitlines() if line.startswith(f"| [{study}]"))
    told = [int(number) for number in row.rstrip(" |").split("|")[-1].split(",")]
    found = Counter(claim["verdict"] for claim in read(ROOT / "results" / study)[1]["claims"])
    assert told == [found["holds"], found["fails"], found["undecided"]]
