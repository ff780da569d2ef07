"""What runs models compiled for NVIDIA GPUs (see :mod:`xcc.runtime.executors`)."""

EXECUTOR = "xcc.runtime.cuda"
