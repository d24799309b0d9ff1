"""What the source cites is tested: every equation, theorem, lemma and algorithm it names, a test names too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SRC = TESTS.parent / "src" / "heedful"
CITATION = re.compile(
    r"(?:\[(?P<paper>[A-Z]\d\d)\]\s+)?(?P<kind>Eq\.|Theorem|Lemma|Corollary|Algorithm)s? "
    r"(?P<numbers>\d+(?: (?:and|to) \d+)*)"
)


def citations(text: str) -> Iterator[tuple[str, str, int]]:
    """(paper, kind, number) of each: "[J15] Algorithms 1 to 3" is three. The paper is "" where no key stands before."""
    for match in CITATION.finditer(re.sub(r"\s*\n[\s#]*", " ", text)):
        words = match["numbers"].split()
        numbers = [int(words[0])]
        for joint, word in zip(words[1::2], words[2::2]):
            numbers += range(numbers[-1] + 1, int(word) + 1) if joint == "to" else [int(word)]
        for number in numbers:
            yield match["paper"] or "", match["kind"], number


def cited(paths: list[Path]) -> dict[tuple[str, str, int], list[str]]:
    found: dict[tuple[str, str, int], list[str]] = {}
    for path in sorted(paths):
        for citation in citations(path.read_text()):
            found.setdefault(citation, []).append(path.name)
    return found


SOURCE = cited(list(SRC.rglob("*.py")))
TESTED = [p for p in TESTS.rglob("*.py") if p.name not in ("naive.py", Path(__file__).name)]
TEXTS = [(path.read_text(), {(kind, n) for _, kind, n in citations(path.read_text())}) for path in TESTED]


@pytest.mark.parametrize(("paper", "kind", "number"), sorted(SOURCE))
def test_every_citation_of_the_source_has_a_test(paper: str, kind: str, number: int) -> None:
    """In a file that names the paper too, where the source does; the pseudo-code alone does not count."""
    files = [text for text, names in TEXTS if (kind, number) in names and (not paper or f"[{paper}]" in text)]
    assert files, f"[{paper or 'no key'}] {kind} {number}, cited in {SOURCE[paper, kind, number]}, is in no test"


def test_citations_are_found_as_they_are_written() -> None:
    text = """see [J15] Algorithms 1 to 3 and [C12] Eq. 4; Theorem 1,
    Lemma 4 (Eq. 22 and 23), by
    # Algorithm
    # 6, but neither Section 7 nor Table 8."""
    assert list(citations(text)) == [
        ("J15", "Algorithm", 1),
        ("J15", "Algorithm", 2),
        ("J15", "Algorithm", 3),
        ("C12", "Eq.", 4),
        ("", "Theorem", 1),
        ("", "Lemma", 4),
        ("", "Eq.", 22),
        ("", "Eq.", 23),
        ("", "Algorithm", 6),
    ]
    assert ("J15", "Algorithm", 6) in SOURCE
    assert ("J15", "Eq.", 5) in SOURCE
