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
KEY = os.environ.get("HEEDFUL_KEY") or sys.exit(
    "HEEDFUL_KEY: expected a key, as heedful keys create shop prints it, got none"
)
try:
    loop = Client(URL, KEY, timeout=2.0).loop("cars", identifier="name")
except ValueError as error:
    sys.exit(f"HEEDFUL_KEY, HEEDFUL_URL: {error}")
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
        status, text = 200, '<!doctype html><title>A car</title><a href="/">All cars</a>'
        if self.path == "/":
            try:
                text = page()
            except (OSError, ValueError, LookupError) as error:  # heedful refuses the key, or has no such loop
                status, text = 502, f"<!doctype html><title>Cars</title>heedful: {escape(str(error))}"
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        # Nothing but the script, which may send clicks to where it came from.
        self.send_header("Content-Security-Policy", f"default-src 'none'; script-src {URL}; connect-src {URL}")
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else "8000"
    try:
        server = ThreadingHTTPServer(("127.0.0.1", int(given)), Shop)
    except (OSError, OverflowError, ValueError) as error:
        sys.exit(f"PORT: expected the number of a port that is free, got {given}: {error}")
    print(f"the shop is at http://127.0.0.1:{given}", flush=True)
    server.serve_forever()
