"""One thread's accesses to global memory: transfers, gathers, asynchronous copies."""
