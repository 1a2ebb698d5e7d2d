"""A held port is nobody else's, and still the worker's to listen on."""

from __future__ import annotations

import socket

import pytest

from tfmulti.launch import held_ports


def test_ports_differ():
    with held_ports(50) as ports:
        assert len(set(ports)) == 50


def test_a_stranger_does_not_get_a_held_port():
    with held_ports(1) as (port,), socket.socket() as stranger:
        with pytest.raises(OSError):
            stranger.bind(("127.0.0.1", port))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_worker_can_listen_on_a_held_port(host):
    with held_ports(1) as (port,), socket.socket() as server:
        # As gRPC does.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen()
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            peer, _ = server.accept()
            peer.close()


def test_ports_are_given_back():
    with held_ports(1) as (port,):
        pass
    with socket.socket() as anyone:
        anyone.bind(("127.0.0.1", port))
