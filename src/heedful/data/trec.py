"""Loader of TREC Session Track files: query chains with the results shown, the clicks on them, and relevance judgments.

A session is the sequence of queries with which one person looks for one thing, a *query chain* of [J15] section 3.2.
Sessions are XML (https://trec.nist.gov/data/session.html), judgments are lines `TOPIC 0 DOCUMENT GRADE`; both plain or
gzip.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.files import numbered_lines, open_uncompressed

Ints = NDArray[np.int64]

UNJUDGED = -1
"""The grade given here to a document that was not judged; the track's own are -2 (junk) and 0 to 4."""
HIGHEST = 4


class Chain(NamedTuple):
    """A search session: what was shown and clicked of its m documents, in order of first appearance, for each of its
    queries. No document occurs twice in a ranking, or in the clicks of a query."""

    grades: Ints  # m; UNJUDGED where nobody judged
    rankings: tuple[Ints, ...]  # documents, best first (a result shown twice counts where it first stood)
    clicks: tuple[Ints, ...]  # documents in the order of the clicks


def load_sessions(sessions: str | PathLike[str], judgments: str | PathLike[str]) -> list[Chain]:
    """Load the sessions of a file as query chains; grades of documents are those of the session's topic in `judgments`.

    Raise FileNotFoundError if a path does not exist. Raise ValueError, as `NAME: ...` with the line or the session, for
    XML that is malformed, declares a document type or has no session; a result without a rank or a document; a click on
    a rank that was not shown; a judgment that is not four fields with a grade of -2 or 0 to 4.
    """
    grades = _judgments(Path(judgments))
    path = Path(sessions)
    chains = [_chain(path, session, grades) for session in _root(path).iter("session")]
    if not chains:
        raise ValueError(f"{path.name}: sessions: expected at least one <session>, got none")
    return chains


# ---------------------------------------------------------------------------- sessions


class _Plain(ET.TreeBuilder):
    """Builder of an XML tree that raises an error for a document type, since its entities may grow without bound."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"xml: expected no document type, got {describe(name)}")


def _root(path: Path) -> ET.Element:
    parser = ET.XMLParser(target=_Plain())
    with open_uncompressed(path) as file:
        try:
            while block := file.read(2**16):
                parser.feed(block)
            root: ET.Element = parser.close()
        except ET.ParseError as error:
            raise ValueError(f"{path.name}:{error.position[0]}: xml: expected well-formed XML, got {error}") from None
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
    return root


def _chain(path: Path, session: ET.Element, grades: dict[tuple[str, str], int]) -> Chain:
    name = session.get("num", "without a number")
    topic = session.find("topic")
    if topic is None or not topic.get("num"):
        raise ValueError(f'{path.name}: session {name}: topic: expected <topic num="...">, got none')
    place: dict[str, int] = {}
    rankings, clicks = [], []
    for interaction in session.iter("interaction"):
        where = f"{path.name}: session {name}, interaction {interaction.get('num', 'without a number')}"
        ranked = dict(_results(where, interaction))
        for document in ranked.values():
            place.setdefault(document, len(place))
        rankings.append(_distinct(place[ranked[rank]] for rank in sorted(ranked)))
        clicked = list(_clicks(where, interaction))
        for rank in clicked:
            if rank not in ranked:
                raise ValueError(f"{where}: click: expected the rank of a result, got {rank}")
        clicks.append(_distinct(place[ranked[rank]] for rank in clicked))
    number = topic.get("num", "")
    graded = np.array([grades.get((number, document), UNJUDGED) for document in place], np.int64)
    return Chain(graded, tuple(rankings), tuple(clicks))


def _results(where: str, interaction: ET.Element) -> Iterator[tuple[int, str]]:
    """Yield (rank, document) of each result shown in one interaction. Raise ValueError for a rank that occurs twice."""
    ranks = set()
    for result in interaction.iterfind("results/result"):
        rank = _rank(f"{where}: result", result.get("rank"))
        if rank in ranks:
            raise ValueError(f"{where}: result: expected each rank once, got {rank} twice")
        ranks.add(rank)
        id = next(((part.text or "").strip() for part in result if re.fullmatch("clueweb[0-9]+id", part.tag)), "")
        if not id:
            raise ValueError(f"{where}: result {rank}: expected a document, <clueweb09id> or <clueweb12id>, got none")
        yield rank, id


def _clicks(where: str, interaction: ET.Element) -> Iterator[int]:
    for click in interaction.iterfind("clicked/click"):
        yield _rank(f"{where}: click", click.findtext("rank"))


def _rank(where: str, text: str | None) -> int:
    if not re.fullmatch(r"\s*0*[1-9][0-9]{0,8}\s*", text or ""):
        raise ValueError(f"{where}: rank: expected a whole number from 1, got {describe(text)}")
    return int(text or "")


def _distinct(places: Iterable[int]) -> Ints:
    return np.array([*dict.fromkeys(places)], np.int64)


# ---------------------------------------------------------------------------- judgments


def _judgments(path: Path) -> dict[tuple[str, str], int]:
    """Return {(topic, document): grade}; raise ValueError for a malformed line or two different grades of one pair."""
    grades: dict[tuple[str, str], int] = {}
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or not re.fullmatch(rf"-2|[0-{HIGHEST}]", fields[3]):
            expected = f"TOPIC 0 DOCUMENT GRADE, the grade -2 or 0 to {HIGHEST}"
            raise ValueError(f"{path.name}:{number}: judgment: expected {expected}, got {describe(line.strip())}")
        topic, _, document, grade = fields
        if grades.setdefault((topic, document), int(grade)) != int(grade):
            raise ValueError(f"{path.name}:{number}: judgment: expected one grade for {describe(document)}, got two")
    if not grades:
        raise ValueError(f"{path.name}: judgments: expected at least one, got none")
    return grades
