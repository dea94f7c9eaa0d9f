"""A progress bar in plain text: what is done, a few numbers, the speed and the time left."""

import sys
import time
from typing import TextIO

WIDTH = 24  # characters


class Bar:
    """Redraws one line on a terminal. Elsewhere, say in a log file, it prints a line at each tenth of the way."""

    def __init__(self, total: int, done: int = 0, unit: str = "steps", out: TextIO | None = None) -> None:
        self.total, self.unit, self.out = total, unit, out or sys.stderr
        self.first, self.begin, self.tenth = done, time.monotonic(), -1
        self.terminal = self.out.isatty()

    def show(self, done: int, *numbers: str) -> None:
        tenth = 10 * done // self.total
        if not self.terminal and tenth == self.tenth and done < self.total:
            return
        self.tenth = tenth
        line = self._line(done, numbers)
        self.out.write(f"\r\x1b[2K{line}" if self.terminal else f"{line}\n")
        if self.terminal and done >= self.total:
            self.out.write("\n")
        self.out.flush()

    def _line(self, done: int, numbers: tuple[str, ...]) -> str:
        filled = WIDTH * done // self.total
        speed = (done - self.first) / max(time.monotonic() - self.begin, 1e-9)
        parts = [f"{done:,}/{self.total:,} {self.unit}", *numbers]
        if speed:
            parts += [f"{speed:.3g} {self.unit}/s", f"{clock((self.total - done) / speed)} left"]
        return f"{'━' * filled}{'─' * (WIDTH - filled)} {' · '.join(parts)}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
