"""What runs models compiled for CPUs (see :mod:`xcc.runtime.executors`)."""

EXECUTOR = "xcc.runtime.cpu"
ON_HOST = True
