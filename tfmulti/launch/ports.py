"""Free ports on this host, kept free until the workers listen on them.

Binding to port 0 makes the system choose a port that nobody uses. Were it
given back before the worker starts, another program could get it in the
seconds in which TensorFlow loads. So the socket stays bound, without
listening, and with SO_REUSEADDR set only AFTER it was bound: Linux then lets
a worker (gRPC sets SO_REUSEADDR as well) listen on the port beside it, and
still gives the port to nobody who asks for just any.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from tfmulti.cluster.one_host import LOOPBACK


@contextlib.contextmanager
def held_ports(count: int) -> Iterator[tuple[int, ...]]:
    """Reserves free ports for as long as the context lasts.

    Args:
        count: How many.

    Yields:
        The ports, all different.
    """
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(_bound()) for _ in range(count)]
        yield tuple(sock.getsockname()[1] for sock in held)


def _bound() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind((LOOPBACK, 0))
        # Order matters: see the module's docstring.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        sock.close()
        raise
    return sock
