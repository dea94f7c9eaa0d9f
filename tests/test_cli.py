"""The command line, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ALGOSCOPE = Path(sys.executable).with_name("algoscope")


def algoscope(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ALGOSCOPE, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def test_the_demo_prints_its_verdict_and_writes_the_pictures(tmp_path):
    done = algoscope("demo", "--sequences", "64", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "exponential growth" in " ".join(done.stdout.split())
    names = {file.name for file in (tmp_path / "demo").iterdir()}
    assert names == {f"newton-against-gradient-descent.{suffix}" for suffix in ("html", "png", "svg", "pdf")}


@pytest.mark.parametrize("sequences", ["0", "1"])
def test_bad_input_is_one_line_and_exit_code_2_and_leaves_nothing(tmp_path, sequences):
    done = algoscope("demo", "--sequences", sequences, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("algoscope: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_command_names_the_known_ones(tmp_path):
    done = algoscope("fly", cwd=tmp_path)
    assert done.returncode == 2
    assert "demo" in done.stderr
