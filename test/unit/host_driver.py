"""A GPU driver whose device memory is host memory, and executors on it."""

import contextlib
import ctypes

import numpy as np

from xcc import symbolic
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import Buffer, Launch, Program

N = symbolic.sym("n")


class Edit:
    """Gives a node of a graph other pointers."""

    def __init__(self, driver, pointers, action):
        self.driver, self.pointers, self.action = driver, list(pointers), action

    def set(self, place, address):
        self.pointers[place] = address

    def apply(self, graph, node):
        self.driver.log.append("edit")
        now = tuple(self.pointers)
        graph[node] = graph[node][0], lambda: self.action(now)


class Moves:
    """As xcc.runtime.graph_replay.GraphReplay, in Python."""

    table = None

    def __init__(self, driver, graph, now, uses):
        self.driver, self.graph, self.addresses, self.known, self.uses = driver, graph, list(now), list(now), uses

    def start(self, _table):
        edited = {}
        for n, address in enumerate(self.addresses):
            if address != self.known[n]:
                self.known[n] = address
                for node, edit, place, offset in self.uses[n]:
                    edit.set(place, address + offset)
                    edited[node] = edit
        for node, edit in edited.items():
            edit.apply(self.graph, node)
        self.driver.replay(self.graph)
        return 0

    def __call__(self):
        self.start(self.table)

    def refuse(self, status):
        raise RuntimeError(f"replay: {status}")


class HostDriver:
    """Runs "kernels" that are Python functions of (pointers, symbols)."""

    device_type, number, edits_graphs = 2, 0, True

    def __init__(self, kernels):
        self.kernels, self.log, self.capturing, self.memory, self.modules = kernels, [], None, {}, []
        self.stream, self.entered = None, False

    def use(self, stream):
        self.stream = stream

    def activate(self):
        pass

    def enter(self):
        assert not self.entered
        self.entered = True

    def leave(self):
        assert self.entered
        self.entered = False

    def current(self):
        return contextlib.nullcontext()

    def load(self, blob):
        self.modules.append(blob)
        return blob

    def unload(self, module):
        self.modules.remove(module)

    def function(self, module, name, shared_bytes=0):
        if name not in self.kernels:
            raise RuntimeError(f"no kernel {name}")
        return self.kernels[name]

    def alloc(self, size):
        block = ctypes.create_string_buffer(b"\xff" * max(size, 16), max(size, 16))
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def free(self, pointer):
        del self.memory[pointer]

    def _do(self, name, action):
        if self.capturing is not None:
            self.capturing.append((name, action))
        else:
            self.log.append(name)
            action()

    def launch(self, function, grid, block, shared_bytes, pointers, symbols, early=False):
        if 0 not in grid:
            self._do("early launch" if early else "launch", lambda: function(pointers, symbols))

    def upload(self, pointer, array):
        self._do("upload", lambda: ctypes.memmove(pointer, array.ctypes.data, array.nbytes))

    def download(self, array, pointer):
        assert self.capturing is None
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def wait_for_gpu(self, number):
        assert number != self.number
        self.log.append("wait for GPU")

    def copy_from(self, number, target, source, size):
        assert number != self.number
        self._do("copy from GPU", lambda: ctypes.memmove(target, source, size))

    def copy(self, target, source, size):
        self._do("copy", lambda: ctypes.memmove(target, source, size))

    def fill(self, pointer, byte, size):
        self._do("fill", lambda: ctypes.memset(pointer, byte, size))

    def synchronize(self):
        assert self.capturing is None
        self.log.append("wait")

    def synchronize_all(self):
        assert self.capturing is None

    def begin_capture(self):
        self.capturing = []

    def end_capture(self):
        graph, self.capturing = self.capturing, None
        self.log.append("capture")
        return graph

    def replay(self, graph):
        self.log.append("replay")
        for _, action in graph:
            action()

    def captured_node(self):
        return len(self.capturing) - 1

    def launch_edit(self, function, grid, block, shared_bytes, pointers, symbols):
        return Edit(self, pointers, lambda now: function(now, symbols))

    def copy_edit(self, target, source, size, *, from_host=False):
        return Edit(self, (target, source), lambda now: ctypes.memmove(now[0], now[1], size))

    def movable(self, graph, now, uses):
        return Moves(self, graph, now, uses)

    def free_graph(self, graph):
        self.log.append("free graph")

    def event(self):
        return 0

    def mark(self, event=None):
        self.log.append(f"mark {self.stream}")
        return event or 1

    def wait_event(self, event):
        self.log.append(f"wait for event on {self.stream}")

    def forget_event(self, event):
        self.log.append("forget event")

    def elapsed_ms(self, start, stop):
        return 1.0


def array(pointer, count):
    return np.frombuffer((ctypes.c_char * (4 * count)).from_address(pointer), np.float32)


def add_one(pointers, symbols):
    array(pointers[1], symbols[0])[:] = array(pointers[0], symbols[0]) + 1


def executor(buffers, body, outputs=(1,), weights=None, symbols=("n",), **more):
    driver = HostDriver({"add_one": add_one})
    program = Program(tuple(buffers), tuple(body), (0,), outputs, symbols, **more)
    return driver, GpuExecutor(driver, program, [b"module"], weights or {})


def f32(kind, *shape, **more):
    return Buffer(kind, shape, "f32", **more)


def add(source, target):
    return Launch("add_one", (source, target), (N,), (symbolic.ceildiv(N, 4), 1, 1), (128, 1, 1))
