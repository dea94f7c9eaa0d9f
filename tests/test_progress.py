"""The progress bar, on a terminal and in a log."""

import io

import pytest

from algoscope.progress import Bar, clock

pytestmark = pytest.mark.usefixtures("as_users_run_it")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_at_each_tenth_of_the_way():
    out = io.StringIO()
    bar = Bar(200, out=out)
    for done in range(1, 201):
        bar.show(done, "loss 0.5")
    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert all("loss 0.5" in line and "steps/s" in line for line in lines)
    assert "200/200 steps" in lines[-1]
    assert lines[-1].endswith("0:00 left")


def test_a_terminal_gets_one_line_that_is_drawn_again():
    out = Terminal()
    bar = Bar(3, out=out)
    for done in (1, 2, 3):
        bar.show(done)
    assert out.getvalue().count("\r") == 3
    assert out.getvalue().count("\n") == 1


def test_speed_counts_only_what_was_done_here(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("algoscope.progress.time.monotonic", lambda: now[0])
    out = Terminal()
    bar = Bar(1000, done=500, out=out)
    now[0] += 10.0
    bar.show(600)
    assert "10 steps/s · 0:40 left" in out.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3723, "1:02:03")])
def test_clock(seconds, text):
    assert clock(seconds) == text
