"""A shop: a page of cars whose order heedful decides, and whose clicks the browser reports to heedful by itself.

    HEEDFUL_KEY=$(heedful keys create shop) python examples/shop.py [PORT]

The shop is at http://127.0.0.1:8000, and heedful at http://127.0.0.1:8710, or HEEDFUL_URL. This is all that a page's
own server has to do: ask for the order with its key, and put the decision's id and a token into the page."""

from __future__ import annotations

import csv
import os
import sys
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from heedful.client import Client

URL = os.environ.get("HEEDFUL_URL", "http://127.0.0.1:8710")
loop = Client(URL, os.environ["HEEDFUL_KEY"], timeout=2.0).loop("cars", identifier="name")
with (Path(__file__).parent / "cars.csv").open(newline="") as file:
    cars = [row["name"] for row in csv.DictReader(file)]


def page() -> str:
    """Return the page with the list of cars, in the order that heedful decides, or the shop's own if it is away."""
    d = loop.decide(cars, show=len(cars))
    rows = [f'<li data-heedful-item="{escape(car)}"><a href="/{quote(car)}">{escape(car)}</a></li>' for car in d.shown]
    return f"""<!doctype html><meta charset="utf-8"><title>Cars</title>
        <script src="{URL}/heedful.js" data-loop="cars" defer></script>
        <ol data-heedful="{escape(d.id)}" data-heedful-token="{loop.page_token(d)}">{"".join(rows)}</ol>"""


class Shop(BaseHTTPRequestHandler):
    """Answers requests for the page, and for the pages of cars."""

    def do_GET(self) -> None:
        """Send the page at /, and a page that only links back at any other path."""
        text = page() if self.path == "/" else '<!doctype html><title>A car</title><a href="/">All cars</a>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        # Nothing but the script, which may send clicks to where it came from.
        self.send_header("Content-Security-Policy", f"default-src 'none'; script-src {URL}; connect-src {URL}")
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    print(f"the shop is at http://127.0.0.1:{port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Shop).serve_forever()
