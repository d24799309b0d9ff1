"""How others reach a study: at which address of this machine they are waited for, and what links begin with."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, NamedTuple

from heedful.cli.console import BadInput, Failure, note

HOST, SHARED = "127.0.0.1", 8711
LISTEN = "expected an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all it has"


class Sharing(NamedTuple):
    """The settings by which others are let in."""

    port: int | None
    listen: str
    """the address of this machine that they come to"""
    address: str | None
    """what the links begin with, where that is said"""
    seconds: float
    people: int
    segments: list[str]
    """a link for each; "" for no segment"""


def listening_host(given: str | None, address: str | None) -> str:
    """The address of this machine that participants come to: what was `given`, otherwise where the links lead. That is
    never every address there is: a virtual network, or another card, is not what somebody means who shares with theirs.
    BadInput where it is none."""
    from heedful.server.main import listening_socket, own_address

    if given is None:
        there = re.match(r"https?://(\[[^\]]*\]|[^:/]*)", address or "")
        return HOST if there is not None and _near(there[1].strip("[]")) else own_address()
    try:
        host = HOST if given == "localhost" else str(ip_address(given))
        with listening_socket(host, 0):
            return host
    except (ValueError, OSError):
        raise BadInput(f"--listen: {LISTEN}, got {given!r}") from None


def _near(host: str) -> bool:
    """Return whether only this machine reaches that host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(host: str, port: int) -> str:
    """An address and a port, as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def link_base(listen: str, port: int) -> str:
    """Return the address at which others reach the port of participants, as far as this machine knows."""
    from heedful.server.main import own_address

    return f"http://{host_and_port(own_address() if ip_address(listen).is_unspecified else listen, port)}"


def say_listening(theirs: str, share: Sharing) -> None:
    """Print what listens where, before anybody is sent a link."""
    every = ip_address(share.listen).is_unspecified
    told = "every address of this machine" if every else "that address alone"
    note(f"participants' port: {theirs}, {told}; the page itself is for this machine alone")
    if share.address is None and _near(share.listen):
        note("only this machine reaches that: --address URL says where a tunnel or proxy lets others in")
    elif share.address is not None and not every and not _near(share.listen):
        note("for a tunnel or proxy on this machine: --listen 127.0.0.1")


def participants_socket(host: str, port: int | None) -> Any:
    """The socket that participants come to: the usual port where nobody else has it."""
    from heedful.server.main import listening_socket

    try:
        try:
            return listening_socket(host, port or SHARED)
        except OSError:
            if port is not None:
                raise
            return listening_socket(host, 0)
    except OSError as error:
        told = error.strerror or str(error)
        raise Failure(f"{host_and_port(host, port or SHARED)}: {told}: choose another --share-port") from error
