"""The peers' network: HuggingFace's GPT-2 between a linear read-in and a linear read-out (Garg et al. 2022)."""

import torch
from torch import Tensor, nn

from algoscope.models import Transformer
from algoscope.tasks import Task
from algoscope.training.bench import rate


class Peers(nn.Module):
    def __init__(self, task: Task, model: Transformer) -> None:
        from transformers import GPT2Config, GPT2Model

        super().__init__()
        config = GPT2Config(
            n_positions=2 * task.length, n_embd=model.width, n_layer=model.layers, n_head=model.heads,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        )  # fmt: skip
        self.read_in = nn.Linear(task.inputs, model.width)
        self.backbone: nn.Module = GPT2Model(config)
        self.read_out = nn.Linear(model.width, task.outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read_out(self.backbone(inputs_embeds=self.read_in(tokens)).last_hidden_state)


def ceilings(device: torch.device) -> dict[str, float]:
    """What the device reaches on a large product of 16-bit matrices and on a large copy."""
    a, b = (torch.randn(8192, 8192, device=device).bfloat16() for _ in range(2))
    block = torch.randn(2**29, device=device)
    products, copies = (rate(run, device, seconds=1) for run in (lambda: a @ b, block.clone))
    return {"tflops": 2 * 8192**3 * products / 1e12, "terabytes_per_s": 2 * 4 * block.numel() * copies / 1e12}
