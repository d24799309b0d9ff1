"""A Python client for `heedful serve`: loops of a server with methods of `heedful.Loop`, and a fallback.

>>> from heedful.client import Client
>>> with Client("https://rank.example", key=KEY, timeout=0.05) as heedful:
...     cars = heedful.loop("cars")
...     d = cars.decide(["a", "b", "c"], prior=scores, person="p1", show=10)
...     cars.feedback(d, clicks=["b"])

If the server is slow or down, `decide` returns the caller's own order after `timeout` seconds; feedback on that
order is still logged correctly (`heedful.client.fallback` says how). Needs the extra `client`: pip install
'heedful[client]'."""

from heedful.client.clients import AsyncClient, AsyncRemoteLoop, Client, RemoteLoop
from heedful.client.fallback import Decision
from heedful.results.about import About
from heedful.results.answers import Answer

__all__ = ["About", "Answer", "AsyncClient", "AsyncRemoteLoop", "Client", "Decision", "RemoteLoop"]
