"""What a model answers."""

from collections.abc import Callable

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from algoscope import arguments
from algoscope.reading.probe import check_prompts, chunks
from algoscope.reading.states import called
from algoscope.tasks import Task
from algoscope.trace import Prompts

Answer = Callable[[Tensor], Tensor]  # tokens [batch, length, inputs] to outputs [batch, length, outputs]


@torch.no_grad()
def predict(model: nn.Module | Answer, task: Task, prompts: Prompts) -> Shaped[Tensor, "batch points *target"]:
    """What a model answers to prompts: y_hat, of the shape of `prompts.y`, on its device and in its type.

    `model` is one of our networks, or any torch module or function from tokens [batch, length, inputs], as
    `task.encode` makes them, to outputs [batch, length, outputs]. A module is called as in evaluation. Where an answer
    is a chance, y_hat is its logit; where it is a choice, it has a last axis of logits, one for each option.
    """
    if not isinstance(task, Task):
        raise ValueError(f"task must be a task of algoscope.tasks, got {type(task).__name__}")
    if not callable(model):
        raise ValueError(f"model must be a torch module or a function of tokens, got {type(model).__name__}")
    check_prompts(prompts, task)
    module = model if isinstance(model, nn.Module) else nn.Module()
    parameter = next(module.parameters(), torch.empty(0))
    training = [part for part in module.modules() if part.training]
    module.eval()  # no dropout, and no statistics changed
    try:
        answers = [_answers(model, task, chunk, parameter) for chunk, _ in chunks(prompts)]
    finally:
        for part in training:
            part.training = True
    return torch.cat(answers).to(prompts.y.device, prompts.x.dtype)


def _answers(model: nn.Module | Answer, task: Task, prompts: Prompts, like: Tensor) -> Tensor:
    tokens = task.encode(prompts.x, prompts.y).to(like.device, like.dtype)
    outputs = called(model, tokens)
    wanted = f"[{tokens.shape[0]}, {tokens.shape[1]}, {task.outputs}]"
    got = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    fits = isinstance(outputs, Tensor) and outputs.ndim == 3 and outputs.shape[2] == task.outputs
    answers = task.read(outputs) if fits else outputs
    if not fits or answers.shape[:2] != prompts.y.shape[:2]:
        raise ValueError(f"the model must answer with a tensor {wanted}, one output a token, got {got}")
    arguments.finite("the model's answers", answers)
    return answers
