"""What Ctrl-C and SIGTERM do: at once while modules load, by unwinding in general, after a checkpoint in training.

A cluster, systemd and `timeout` send SIGTERM, a terminal that closes sends SIGHUP, and Ctrl-C sends SIGINT to every
process of the terminal's session. A signal that is ignored, as under nohup, stays ignored. This file imports nothing
heavy, so that signals are handled before torch is loaded.
"""

import atexit
import contextlib
import math
import os
import signal
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
REPEATED = 2.0  # seconds: a second signal within them is the same request, sent twice
PARENT_GONE = threading.Event()
_latest = [-math.inf]  # when a signal was heeded


class Terminated(SystemExit):
    """SIGTERM as an exception: `finally` runs, and the exit code is the one that shells expect. As of
    KeyboardInterrupt, its arguments are what was said already.
    """

    def __init__(self, number: int, *message: str) -> None:
        super().__init__(128 + number)
        self.args = message


def exit_on_signal() -> None:
    """From now on a signal ends the program, in one line. For the time of imports, since modules may swallow
    exceptions, and for that of the exit.
    """

    def leave(number: int, _: FrameType | None) -> None:
        if not _repeated():
            os.write(2, b"\nalgoscope: stopped\n")
            os._exit(128 + number)

    for number in _heeded():
        signal.signal(number, leave)
    atexit.register(_ignore)  # while Python exits it has no handlers, and a second signal would end it otherwise


def _ignore() -> None:
    for number in _heeded():
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Within it a signal raises KeyboardInterrupt or Terminated."""

    def leave(number: int, _: FrameType | None) -> None:
        if not _repeated():
            _raise(number)

    with _handled_by(leave):
        yield


@contextlib.contextmanager
def graceful_stop() -> Iterator[Callable[[], int | None]]:
    """Within it a signal is only noted, and the function tells which came. Another one, seconds later, aborts."""
    first: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        repeated = _repeated()
        if not first:
            first.append(number)
        elif not repeated and not PARENT_GONE.is_set():
            _raise(number)

    with _handled_by(note):
        yield lambda: first[0] if first else None


def stop(number: int, saved: str) -> NoReturn:
    """Ends what a signal asked to end, and says what is saved."""
    message = f"algoscope: stopped; {saved} is saved, and the same command resumes there"
    os.write(2, f"\n{message}\n".encode(errors="replace"))
    _raise(number, message)


def end_with_parent(patience: float) -> None:
    """Watches standard input, a pipe that the parent holds open: when it closes, the parent wants this process to stop,
    or is gone, however it ended. This process is then asked to stop, as by SIGTERM, and after so many seconds ended.
    """

    def watch() -> None:
        while os.read(0, 1):
            pass
        PARENT_GONE.set()
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)  # wakes it, if it sleeps
        else:
            interrupt_main(signal.SIGTERM)
        time.sleep(patience)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _raise(number: int, *message: str) -> NoReturn:
    raise KeyboardInterrupt(*message) if number == signal.SIGINT else Terminated(number, *message)


def _repeated() -> bool:
    """Whether this signal follows one that was heeded, and so closely that it is the same request."""
    now = time.monotonic()
    if now - _latest[0] < REPEATED:
        return True
    _latest[0] = now
    return False


def _heeded() -> list[int]:
    """Only the main thread can handle signals: in others nothing changes."""
    main = threading.current_thread() is threading.main_thread()
    return [number for number in SIGNALS if main and signal.getsignal(number) != signal.SIG_IGN]


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _heeded()}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
