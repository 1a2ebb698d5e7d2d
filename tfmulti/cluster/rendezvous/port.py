"""A worker's own port: found free, and kept until TensorFlow listens on it.

Two sockets: one listens while the workers meet. The other is only bound, with
SO_REUSEADDR, and stays until TensorFlow has the port: its server may then
listen beside it (gRPC sets SO_REUSEADDR too), and no other program gets the
port in the seconds between.

Where the worker's name leads to an address of this host, that one alone is
bound. Debian gives a host's own name a loopback address, at which others
cannot reach it, and a Service's address belongs to no host: in both cases all
addresses are bound.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Sequence

_EVERYWHERE = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}


def split(address: str) -> tuple[str, int]:
    """Gives host and port of "host:port" or "[::1]:port"."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def bind(workers: Sequence[str], index: int) -> socket.socket:
    """Binds the port of worker `index`, without listening.

    Raises:
        OSError: Somebody listens on it already.
    """
    host, port = split(workers[index])
    family, address = _resolve(host)
    others = [split(worker)[0] for worker in workers]
    if _is_loopback(address) and not all(map(_is_loopback, others)):
        address = _EVERYWHERE[family]
    try:
        return _bound(family, address, port)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        return _bound(family, _EVERYWHERE[family], port)


def beside(held: socket.socket) -> socket.socket:
    """Gives a second socket, bound like `held`."""
    address, port = held.getsockname()[:2]
    return _bound(socket.AddressFamily(held.family), address, port)


def _bound(
    family: socket.AddressFamily, address: str, port: int
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def _resolve(host: str) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        # In a pod its own name may come later; others are told by name.
        return socket.AF_INET, _EVERYWHERE[socket.AF_INET]
    return found[0][0], str(found[0][4][0])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
