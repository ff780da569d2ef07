"""What runs models compiled for AMD GPUs (see :mod:`xcc.runtime.executors`)."""

EXECUTOR = "xcc.runtime.hip"
