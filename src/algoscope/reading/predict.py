"""What a model answers."""

from collections.abc import Callable

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from algoscope import arguments
from algoscope.contracts import NO_EDITS, Edits, Task
from algoscope.reading.probe import check_prompts, chunks
from algoscope.reading.wrapped import Run, Wrapped, called, wrap
from algoscope.trace import Prompts

Answer = Callable[[Tensor], Tensor]  # tokens [batch, length, inputs] to outputs [batch, length, outputs]


@torch.no_grad()
def predict(
    model: nn.Module | Wrapped | Answer, task: Task, prompts: Prompts
) -> Shaped[Tensor, "batch points *target"]:
    """What a model answers to prompts: y_hat, of the shape of `prompts.y`, on its device and in its type.

    `model` is one of our networks, any torch module or function from tokens [batch, length, inputs], as `task.encode`
    makes them, to outputs [batch, length, outputs], or what `ag.wrap` makes of one that takes them in another way. A
    module is called as in evaluation. Where an answer is a chance, y_hat is its logit; where it is a choice, it has a
    last axis of logits, one for each option.
    """
    if not isinstance(task, Task):
        raise ValueError(f"task must be a task of algoscope.tasks, got {type(task).__name__}")
    if not callable(model) and not isinstance(model, Wrapped):
        raise ValueError(f"model must be a torch module or a function of tokens, got {type(model).__name__}")
    check_prompts(prompts, task)
    if isinstance(model, nn.Module | Wrapped):
        found = wrap(model)
        run, like = found.run, torch.empty(0, dtype=found.dtype, device=found.device)
    else:
        run, like = _of_outputs(model), torch.empty(0)
    answers = [answers_of(run, task, chunk, like) for chunk in chunks(prompts)]
    return torch.cat(answers).to(prompts.y.device, prompts.x.dtype)


def answers_of(run: Run, task: Task, prompts: Prompts, like: Tensor, edits: Edits = NO_EDITS) -> Tensor:
    """What a model answers in one pass, on the device and in the type of `like`, while states are edited."""
    tokens = task.encode(prompts.x, prompts.y).to(like.device, like.dtype)
    outputs = run(tokens, edits=edits)[0]
    wanted = f"[{tokens.shape[0]}, {tokens.shape[1]}, {task.outputs}]"
    got = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    fits = isinstance(outputs, Tensor) and outputs.ndim == 3 and outputs.shape[2] == task.outputs
    answers = task.read(outputs) if isinstance(outputs, Tensor) and fits else None
    if answers is None or answers.shape[:2] != prompts.y.shape[:2]:
        raise ValueError(f"the model must answer with a tensor {wanted}, one output a token, got {got}")
    arguments.finite("the model's answers", answers)
    return answers


def _of_outputs(function: Answer) -> Run:
    """A function that is given alone returns outputs."""

    def run(tokens: Tensor, keep: object = (), edits: Edits = NO_EDITS) -> tuple[Tensor, dict[str, Tensor]]:
        return called(function, tokens), {}

    return run
