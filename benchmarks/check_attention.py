"""The short-attention kernel against PyTorch's attention in float32, and its speed (needs a GPU)."""

import torch
from torch.nn import functional
from triton.testing import do_bench

from algoscope.models import short_attention


def main() -> None:
    for warps in (2, 4, 8):
        short_attention.WARPS = warps
        parts = torch.randn(512, 81, 3, 8, 32, device="cuda").bfloat16()
        forward = do_bench(lambda p=parts: short_attention._attend(p, True))
        backward = do_bench(lambda p=parts: short_attention._attend_backward(p, p[:, :, 0].contiguous(), True))
        print(f"warps {warps}: us {1000 * forward:.1f} {1000 * backward:.1f}", flush=True)
    for sequences, length, heads, width in ((64, 81, 8, 32), (512, 81, 8, 32), (7, 128, 4, 16), (5, 3, 2, 64)):
        for causal in (True, False):
            parts = torch.randn(sequences, length, 3, heads, width, device="cuda").bfloat16().requires_grad_()
            above = torch.randn(sequences, length, heads, width, device="cuda").bfloat16()
            mixed = short_attention.attend(parts, causal)
            (gradient,) = torch.autograd.grad(mixed, parts, above)
            exact = parts.detach().float().requires_grad_()
            q, k, v = exact.permute(2, 0, 3, 1, 4)
            judge = functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)
            (wanted,) = torch.autograd.grad(judge, exact, above.float())
            errors = [float((a.float() - b).norm() / b.norm()) for a, b in ((mixed, judge), (gradient, wanted))]
            with torch.no_grad():
                forward = do_bench(lambda parts=parts, causal=causal: short_attention._attend(parts, causal))
                backward = do_bench(lambda p=parts, a=above, c=causal: short_attention._attend_backward(p, a, c))
            print(sequences, length, heads, width, causal, f"errors {errors[0]:.1e} {errors[1]:.1e}",
                  f"us {1000 * forward:.1f} {1000 * backward:.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
