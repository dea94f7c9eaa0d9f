"""A progress bar in plain text: what is done, a few numbers, the speed and the time left."""

import sys
import time
from collections.abc import Callable, Mapping
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
        percent = self.unit == "%"
        parts = [f"{done}%" if percent else f"{done:,}/{self.total:,} {self.unit}", *numbers]
        if speed:
            parts += [] if percent else [f"{speed:.3g} {self.unit}/s"]
            parts.append(f"{clock((self.total - done) / speed)} left")
        return f"{'━' * filled}{'─' * (WIDTH - filled)} {' · '.join(parts)}"


class Parts:
    """One bar for work in several parts, of which each takes about a share of the time."""

    def __init__(self, shares: Mapping[str, float], shown: bool, first: str | None = None) -> None:
        self.shares, self.shown = shares, shown
        names = list(shares)
        self.before = {name: sum(shares[each] for each in names[: names.index(name)]) for name in names}
        self.bar: Bar | None = None
        self.counts = dict.fromkeys(names, 0.0)
        self.first = self.before[first] if first else 0.0

    def again(self, first: str) -> "Parts":
        """For the next work of the kind, which begins with a later part; the first time, the same bar goes on."""
        if self.shown and self.counts[first] == 0:
            return self
        return Parts(self.shares, True, first)

    def part(self, name: str, total: int) -> Callable[[int], None]:
        """Called with how much more of a part is done."""
        return lambda count: self.done(name, count, total)

    def done(self, name: str, count: int, total: int) -> None:
        self.counts[name] += count / total
        if not self.shown:
            return
        self.bar = self.bar or Bar(100, round(100 * self.first), unit="%")
        self.bar.show(min(round(100 * (self.before[name] + self.shares[name] * self.counts[name])), 100), name)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
