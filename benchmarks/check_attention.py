"""The short-attention kernels on a GPU: their errors against float32, their times beside PyTorch's own attention."""

import torch
from torch.nn import functional
from triton.testing import do_bench

from algoscope.models import short_attention


def main() -> None:
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
                kept = (parts, bias, *short_attention._attend(parts, bias, reach))
                runs = (
                    lambda p=parts, b=bias, r=reach: short_attention._attend(p, b, r),
                    lambda k=kept, a=above, r=reach: short_attention._attend_backward(*k, a, r),
                    lambda p=parts, b=bias, r=reach: plain(p + b, r),
                )
                times = [1000 * do_bench(run) for run in runs]
            print(sequences, length, heads, width, reach, f"errors {errors[0]:.1e} {errors[1]:.1e}",
                  f"us {times[0]:.1f} {times[1]:.1f}, PyTorch forward {times[2]:.1f}", flush=True)  # fmt: skip


def plain(parts: torch.Tensor, reach: int) -> torch.Tensor:
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    length = parts.shape[1]
    if reach in (0, length):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=reach > 0).transpose(1, 2)
    ago = torch.arange(length, device=q.device)[:, None] - torch.arange(length, device=q.device)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=(ago >= 0) & (ago < reach)).transpose(1, 2)


if __name__ == "__main__":
    main()
