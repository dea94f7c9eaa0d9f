"""The kernels on a GPU: their errors against more exact arithmetic, their times beside those of PyTorch's own."""

import torch
from torch.nn import functional
from triton.testing import do_bench

from algoscope.models.kernels import deferred_grads, short_attention


def main() -> None:
    attention()
    gradients()


def attention() -> None:
    for sequences, length, heads, width in ((64, 81, 8, 32), (1024, 81, 8, 32), (7, 128, 4, 16), (5, 3, 2, 64)):
        for reach in (length, 0, 11):
            parts = torch.randn(sequences, length, 3, heads, width, device="cuda").bfloat16().requires_grad_()
            bias = torch.randn(1, 3, heads, width, device="cuda").bfloat16()
            above = torch.randn(sequences, length, heads, width, device="cuda").bfloat16()
            mixed = short_attention.attend(parts, bias, reach)
            (gradient,) = torch.autograd.grad(mixed, parts, above)
            exact = parts.detach().float().requires_grad_()
            judge = plain(exact + bias.float(), reach)
            (wanted,) = torch.autograd.grad(judge, exact, above.float())
            errors = [float((a.float() - b).norm() / b.norm()) for a, b in ((mixed, judge), (gradient, wanted))]
            with torch.no_grad():
                means = short_attention.means(mixed, above)
                kept = (parts, bias, means, short_attention._attend(parts, bias, reach)[1])
                runs = (
                    lambda p=parts, b=bias, r=reach: short_attention._attend(p, b, r),
                    lambda k=kept, a=above, r=reach: short_attention._attend_backward(*k, a, r),
                    lambda p=parts, b=bias, r=reach: plain(p + b, r),
                )
                times = [1000 * do_bench(run) for run in runs]
            print(sequences, length, heads, width, reach, f"errors {errors[0]:.1e} {errors[1]:.1e}",
                  f"us {times[0]:.1f} {times[1]:.1f}, PyTorch forward {times[2]:.1f}", flush=True)  # fmt: skip


def gradients() -> None:
    """Of all weights of the papers' transformer, of which the last block answers half of the tokens."""
    tokens = [64 * 81] * 11 + [64 * 41]
    shapes = [(n, *shape) for n in tokens for shape in ((768, 256), (256, 256), (1024, 256), (256, 1024))]
    products = [deferred(*shape) for shape in shapes]
    times = [1000 * do_bench(run) for run in (lambda: deferred_grads.multiply(products), lambda: one_by_one(products))]
    deferred_grads.multiply(products)
    errors = [0.0, 0.0]
    for each in products:
        above, input = each.above.double(), each.input.double()
        for k, (mine, right) in enumerate(((each.weight, above.T @ input), (each.bias, above.sum(0)))):
            errors[k] = max(errors[k], float((mine.double() - right).norm() / right.norm()))
    print(f"gradients of weights {errors[0]:.1e} and biases {errors[1]:.1e}",
          f"us {times[0]:.1f}, PyTorch, weights alone and one by one {times[1]:.1f}", flush=True)  # fmt: skip


def deferred(tokens: int, outputs: int, inputs: int) -> deferred_grads.Deferred:
    shapes = (tokens, outputs), (tokens, inputs), (outputs, inputs), (outputs,)
    return deferred_grads.Deferred(*(torch.randn(shape, device="cuda").bfloat16() for shape in shapes))


def one_by_one(products: list[deferred_grads.Deferred]) -> None:
    for each in products:
        torch.mm(each.above.T, each.input, out=each.weight)


def plain(parts: torch.Tensor, reach: int) -> torch.Tensor:
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    length = parts.shape[1]
    if reach in (0, length):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=reach > 0).transpose(1, 2)
    ago = torch.arange(length, device=q.device)[:, None] - torch.arange(length, device=q.device)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=(ago >= 0) & (ago < reach)).transpose(1, 2)


if __name__ == "__main__":
    main()
