"""The kernels for GPUs, run by Triton's interpreter on a CPU against PyTorch's own operations."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is for Linux")

# numpy, on which the interpreter runs, has no bfloat16
ATTENTION = """
import json, torch
from torch.nn import functional
from algoscope.models.kernels import short_attention

def difference(sequences, members, length, heads, width, reach, precision=torch.float16):
    parts = torch.randn(sequences, length, 3, heads, width).half().requires_grad_()
    bias = torch.randn(members, 3, heads, width).to(precision).requires_grad_()
    above = torch.randn(sequences, length, heads, width).half()
    mixed = short_attention.attend(parts, bias, reach)
    found = (mixed, *torch.autograd.grad(mixed, (parts, bias), above))
    exact, shift = (tensor.detach().float().requires_grad_() for tensor in (parts, bias))
    biased = exact.view(members, -1, length, 3, heads, width) + shift[:, None, None]
    q, k, v = biased.flatten(0, 1).permute(2, 0, 3, 1, 4)
    ago = torch.arange(length)[:, None] - torch.arange(length)
    seen = (ago >= 0) & (ago < reach) if reach else torch.ones_like(ago, dtype=torch.bool)
    judge = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2)
    wanted = (judge, *torch.autograd.grad(judge, (exact, shift), above.float()))
    return [float(((a.float() - b).norm() / b.norm()).detach()) for a, b in zip(found, wanted, strict=True)]

torch.manual_seed(0)
shapes = [(4, 2, 41, 2, 16), (1, 1, 81, 1, 32), (2, 2, 5, 1, 16), (1, 1, 33, 1, 64), (3, 3, 1, 2, 16)]
rows = [difference(*shape, reach) for shape in shapes for reach in (shape[2], 0, 1, 5, 40)]
rows += [difference(4, 4, 41, 2, 16, reach, torch.float32) for reach in (41, 0)]  # each sequence has its own
print(json.dumps(rows))
"""

DEFERRED = """
import json, torch
from algoscope.models.kernels.deferred_grads import Deferred, multiply

torch.manual_seed(0)
shapes = [(37, 40, 24), (200, 130, 65), (16, 96, 300), (1, 1, 1)]  # tokens, outputs, inputs
pairs = [(torch.randn(tokens, m), torch.randn(tokens, n)) for tokens, m, n in shapes]
found = [Deferred(a, b, torch.zeros(a.shape[1], b.shape[1]) / 0, torch.zeros(a.shape[1]) / 0) for a, b in pairs]
multiply(found)
wanted = [(above.T @ input, above.sum(0)) for above, input in pairs]
print(json.dumps([
    float((mine - right).norm() / right.norm())
    for each, judge in zip(found, wanted, strict=True)
    for mine, right in zip((each.weight, each.bias), judge, strict=True)
]))
"""


def interpreted(script):
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_attention_and_its_gradients():
    assert max(max(row) for row in interpreted(ATTENTION)) < 3e-3


def test_gradients_of_weights_and_biases_of_many_shapes_in_one_launch():
    assert max(interpreted(DEFERRED)) < 1e-5
