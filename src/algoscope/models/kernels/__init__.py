"""What only a GPU runs: each module calls the Triton kernels of the file beside it, which is imported on first use."""
