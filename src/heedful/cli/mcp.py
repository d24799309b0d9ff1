"""`heedful mcp`: a loop as tools for agents, by the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from heedful.cli.common import Name, Own, open_loop
from heedful.cli.console import check_extra


def mcp(name: Name, own_learners: Own = None) -> None:
    """The agent's program starts this command and ends it by closing stdin. What a person likes is a resource,
    heedful://likes/PERSON, in words. Stdout holds only the protocol; warnings go to stderr. Other commands and a server
    may use the loop at the same time.

    It needs the extra `mcp`. Exit codes: 0 stdin was closed; 1 the loop cannot be read or written; 2 bad input.
    """
    check_extra("mcp", "mcp", "heedful mcp")
    with open_loop(name, own_learners) as loop:
        from heedful.server.agent_tools import agent_server

        agent_server(loop, name).run("stdio")
