"""Somebody with a browser that runs no scripts: pages as trees, forms as they are sent."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import httpx
from asking import NO_TLS

VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "rect", "source", "wbr"})


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tree, self.open = TreeBuilder(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.tree.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} ends where another element is open"
        self.tree.end(tag)

    def handle_data(self, data: str) -> None:
        self.tree.data(data)


def parsed(html: str) -> Element:
    """HTML as a tree; every element in it must be closed where it should be."""
    builder = _Builder()
    builder.tree.start("page", {})
    builder.feed(html)
    builder.close()
    assert not builder.open, builder.open
    builder.tree.end("page")
    return builder.tree.close()


def words(element: Element | None) -> str:
    """The text of an element, with single spaces."""
    assert element is not None
    return " ".join("".join(element.itertext()).split())


class Seen:
    """What came back."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.headers, self.html = response.status_code, response.headers, response.text
        self.tree = parsed(self.html) if self.html else Element("page")

    def all(self, path: str) -> list[Element]:
        """The elements of an ElementTree path, such as tr[@data-event]."""
        return self.tree.findall(f".//{path}")

    def one(self, path: str) -> Element:
        """The only one."""
        [found] = self.all(path)
        return found

    def at(self, id: str) -> str:
        """The text of the element with that id."""
        return words(self.one(f"*[@id='{id}']"))

    @property
    def names(self) -> list[str]:
        """The cards of the page to teach on, from the top."""
        return [each.attrib["data-key"] for each in self.all("ol[@id='cards']/li")]

    @property
    def marks(self) -> dict[str, str]:
        """What stands on cards of what was said and is predicted of them."""
        cards = {each.attrib["data-key"]: each.find(".//p[@class='mark']") for each in self.all("ol[@id='cards']/li")}
        return {name: words(mark) for name, mark in cards.items() if mark is not None}

    @property
    def kept(self) -> dict[str, str]:
        """What the page keeps of its cards: which they are, and the decision that showed them."""
        return {each.attrib["name"]: each.attrib["value"] for each in self.one("form[@id='corrections']").iter("input")}

    @property
    def lessons(self) -> dict[str, bool]:
        """The last answers, newest first, and whether each still counts."""
        return {each.attrib["data-key"]: "class" not in each.attrib for each in self.all("ul[@class='lessons']/li")}

    @property
    def said(self) -> str:
        """What the page says of the last answer."""
        return self.one("section[@id='hand']").attrib["data-said"]

    def fields(self, action: str) -> dict[str, str]:
        """What the first form to `action` would send as it is: hidden fields, what is filled in, what is checked."""
        form = next(form for form in self.all("form") if form.get("action") == action)
        ticked = [
            field
            for field in form.iter("input")
            if field.get("type") not in ("checkbox", "radio") or "checked" in field.attrib
        ]
        return {field.attrib["name"]: field.get("value", "") for field in ticked}


class Visitor:
    """Visits the pages of a server, with a session once signed in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=30, verify=NO_TLS)

    def get(self, path: str, **headers: str) -> Seen:
        """A page."""
        return Seen(self.http.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}))

    def post(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> Seen:
        """A form sent from a page of the server; headers with _ for -."""
        sent = {"origin": self.url} | {name.replace("_", "-"): value for name, value in headers.items()}
        return Seen(self.http.post(path, data=form or {}, headers=sent))

    def sign_in(self, key: str) -> None:
        """From now on with a session."""
        assert self.post("/sign-in", {"key": key}).status == 303

    def close(self) -> None:
        self.http.close()
