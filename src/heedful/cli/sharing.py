"""How others reach a study: on which address of this machine it listens for participants, and what links begin with."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, NamedTuple

from heedful.cli.console import BadInput, note
from heedful.cli.own_page import HOST, at_port

SHARED = 8711
LISTEN = "expected an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all it has"


class Sharing(NamedTuple):
    """The settings of `heedful compare --share`."""

    port: int | None
    """the port for participants; None for the usual one"""
    listen: str
    """the address of this machine on which it listens for participants"""
    address: str | None
    """what links begin with, if --address says so"""
    seconds: float
    """how long a link can be used"""
    people: int
    """how many people a link lets in"""
    segments: list[str]
    """the groups of participants, each of which gets a link; "" for a link without a group"""


def listening_host(listen: str | None, address: str | None) -> str:
    """Return the address of this machine on which to listen for participants: `listen`, otherwise one that fits the
    links.

    If the links' base `address` leads to this machine itself (a tunnel or proxy), it is 127.0.0.1, otherwise this
    machine's address in its network. It is never all addresses unless `listen` says so: virtual networks and other
    network cards are not meant to be shared with. Raise BadInput if `listen` is no address of this machine.
    """
    from heedful.server.main import listening_socket, own_address

    if listen is None:
        match = re.match(r"https?://(\[[^\]]*\]|[^:/]*)", address or "")
        return HOST if match is not None and _near(match[1].strip("[]")) else own_address()
    try:
        host = HOST if listen == "localhost" else str(ip_address(listen))
        with listening_socket(host, 0):
            return host
    except (ValueError, OSError):
        raise BadInput(f"--listen: {LISTEN}, got {listen!r}") from None


def _near(host: str) -> bool:
    """Return whether `host` is a loopback address, which only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(host: str, port: int) -> str:
    """Return HOST:PORT as in a URL, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def link_base(listen: str, port: int) -> str:
    """Return the URL at which others reach participants' `port`, when it listens on the address `listen`.

    It is this machine's own address in its network if `listen` means all addresses.
    """
    from heedful.server.main import own_address

    return f"http://{host_and_port(own_address() if ip_address(listen).is_unspecified else listen, port)}"


def say_listening(shared_host: str, share: Sharing) -> None:
    """Print the address at which participants reach the study (`shared_host`, HOST:PORT), and who can reach it.

    `share` are the settings of --share."""
    every = ip_address(share.listen).is_unspecified
    reach = "every address of this machine" if every else "that address alone"
    note(f"participants' port: {shared_host}, {reach}; the page itself is for this machine alone")
    if share.address is None and _near(share.listen):
        note("only this machine reaches that: --address URL says where a tunnel or proxy lets others in")
    elif share.address is not None and not every and not _near(share.listen):
        note("for a tunnel or proxy on this machine: --listen 127.0.0.1")


def participants_socket(host: str, port: int | None) -> Any:
    """Return a socket on `host` for participants: at `port`; if it is None, at the usual port, or another if that is
    taken.

    Raise Failure if it cannot listen.
    """
    from heedful.server.main import listening_socket

    address = host_and_port(host, port or SHARED)
    return at_port(lambda at: listening_socket(host, at), port, SHARED, address, "--share-port")
