"""``client.py SOCKET TOOL ARGUMENTS``: the tool as a fork of the server at SOCKET; by itself where there is none.

It imports little, as it starts for each command of each lit test.
"""

import os
import socket
import sys

DIED = 134


def main() -> int:
    path, tool, *arguments = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:         # lit has ended: someone calls a command that it has shown
        command = [os.path.join(os.path.dirname(sys.executable), tool)] if tool == "filecheck" else \
            [sys.executable, "-m", f"xcc.tools.{tool}"]
        os.execv(command[0], [*command, *arguments])
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    parts = [tool, os.getcwd(), str(len(arguments)), *arguments, *variables]
    request = "\0".join(parts).encode("utf-8", "surrogateescape")
    try:
        socket.send_fds(connection, [len(request).to_bytes(8, "little")], [0, 1, 2])
        connection.sendall(request)
        status = connection.recv(16)
    except ConnectionError:
        status = b""
    if not status:
        sys.stderr.write(f"{tool}: its process died\n")
    return int(status) if status else DIED


sys.exit(main())
