"""What every algorithm provides."""

from abc import ABC, abstractmethod

from algoscope.trace import Prompts, Trace


class Algorithm(ABC):
    """A known procedure. Concrete algorithms are frozen dataclasses whose fields are the method's parameters."""

    @abstractmethod
    def trace(self, prompts: Prompts) -> Trace:
        """Every kept step at every prefix t = 0..examples, in one batched float64 pass."""

    @property
    def name(self) -> str:
        return type(self).__name__
