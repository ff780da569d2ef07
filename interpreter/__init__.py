"""Executes GPU kernels at the `gpu` stage in numpy, threads in lockstep, and checks what hardware would not report."""
