"""Features of a text: its words, hashed into buckets, and its style, as readable traits.

All are pure functions of the text with the same results on every machine: the hash is CRC-32, square roots are exact by
IEEE 754, and logarithms are rounded to four decimals, to which all libraries agree.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import Counter
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

# A run of marks before a space or the end, a mark that needs no space after it, a blank line, or a line that begins an
# item of a list. Runs are taken whole (++, and from their start), so that no text takes more than linear time.
SENTENCE = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]”’*_]*+(?=\s|$)|[。！？]|\n[^\S\n]*\n|\n(?=[^\S\n]*(?:[-*+•‣◦–]|[0-9]{1,3}[.)])[^\S\n])"
)
LIST = re.compile(r"^[^\S\n]*(?:[-*+•‣◦–]|[0-9]{1,3}[.)])[^\S\n]+\S", re.MULTILINE)
HEADING = re.compile(r"^(?:#{1,6}[^\S\n]+\S|\*\*[^*\n]+\*\*:?[^\S\n]*$)", re.MULTILINE)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
EMOJI = re.compile("[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf]|(?<!\\w)[:;]-?[()DP](?!\\w)")
LINK = re.compile(r"https?://|(?<![\w/.])www\.", re.IGNORECASE)


def word_set(listed: str) -> frozenset[str]:
    """Return the words in `listed`, which stand there with spaces between."""
    return frozenset(listed.split())


POLITE = word_set(
    "please kindly thanks thank sorry apologies apologise apologize pardon appreciate appreciated grateful "
    "welcome glad cheers"
)
HEDGING = word_set(
    "maybe perhaps possibly probably might could seems seem seemingly apparently appears somewhat likely unlikely "
    "roughly approximately guess suppose presumably arguably unsure usually generally often sometimes"
)
_CONFIDENT = word_set(
    "definitely certainly clearly obviously absolutely undoubtedly surely always never must exactly indeed "
    "completely totally entirely guaranteed undeniably precisely"
)
FIRST = word_set("i me my mine myself we us our ours ourselves")
SECOND = word_set("you your yours yourself yourselves")
_CONTRACTED = ("n't", "'ll", "'re", "'ve", "'m", "'d")
_IS = word_set("it's that's there's here's what's who's where's how's he's she's let's")


class Trait(NamedTuple):
    """A readable feature of a text's style: (measured value - `mean`) / `scale`.

    - `name`: the name of the feature, such as "length".
    - `what`: what is measured, in words, such as "log2(1 + words)".
    - `mean`, `scale`: usual values of the measured number and of its spread, in plain English prose.
    """

    name: str
    what: str
    mean: float
    scale: float


# Round numbers of plain English prose, a paragraph or two; not fitted to anything.
TRAITS = (
    Trait("length", "log2(1 + words)", 6, 2),
    Trait("sentences", "log2(1 + sentences)", 2, 1),
    Trait("words per sentence", "log2(1 + words / sentences)", 4, 1),
    Trait("list items", "root of the lines that begin with a bullet or a number", 0, 1),
    Trait("headings", "root of the lines that are `# headings` or **bold** alone", 0, 1),
    Trait("code", "root of the fenced blocks and `spans` of code", 0, 1),
    Trait("digits", "digits per 100 characters", 1, 2),
    Trait("exclamation marks", "root of their number", 0, 1),
    Trait("question marks", "root of their number", 0, 1),
    Trait("polite words", "please, thanks, sorry, ... per 100 words", 0, 1),
    Trait("hedging words", "maybe, perhaps, might, ... per 100 words", 0.5, 1),
    Trait("confident words", "definitely, clearly, always, ... per 100 words", 0.5, 1),
    Trait("contractions", "don't, it's, we'll, ... per 100 words", 1, 2),
    Trait("first person", "I, me, my, we, our, ... per 100 words", 2, 2),
    Trait("second person", "you, your, ... per 100 words", 1, 2),
    Trait("emoji", "root of the emoji and :) of any kind", 0, 1),
    Trait("links", "root of the addresses", 0, 1),
)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case: letters and digits of any script, with apostrophes inside ("don't")."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    return _WORD.findall(text.lower())


def is_contracted(word: str) -> bool:
    """Return whether a word in lower case is an English contraction, such as "don't", "we'll" or "it's"."""
    return word.endswith(_CONTRACTED) or word in _IS


def count_sentences(text: str) -> int:
    """Return the number of sentences and list items of a text; those without a word do not count."""
    return sum(_WORD.search(piece) is not None for piece in SENTENCE.split(text))


def bucket(word: str, buckets: int) -> int:
    """Return the bucket of a word, 0 to `buckets` - 1: the CRC-32 of its UTF-8 modulo `buckets`."""
    return zlib.crc32(word.encode()) % buckets


def hash_words(text: str, buckets: int) -> list[tuple[int, float]]:
    """Return (bucket, value) for each bucket, of `buckets` in all, into which words of `text` fall. The value is the
    square root of the bucket's share of the words.

    The root makes the value grow more slowly than the count, and gives the vector of values the length 1 for all texts.
    """
    tokens = words(text)
    counts = Counter(bucket(word, buckets) for word in tokens)
    return [(place, math.sqrt(count / len(tokens))) for place, count in counts.items()]


def traits(text: str) -> list[float]:
    """Return the measured values of the style of a text, such as its length, one for each of TRAITS in their order,
    before subtracting the mean and dividing by the scale.
    """
    tokens = words(text)
    counts = Counter(tokens)
    heads = Counter[str]()
    for word, count in counts.items():
        heads[word.partition("'")[0]] += count
    sentences = count_sentences(text)
    n = len(tokens)

    def rate(times: int, of: int, more: int) -> float:
        """Return `times` per hundred of `of` + `more`; `more` prevents one word alone from being 100 percent."""
        return 100 * times / (of + more)

    def words_in(vocabulary: frozenset[str], of: Counter[str]) -> float:
        return rate(sum(of[word] for word in vocabulary), n, 50)

    contracted = sum(count for word, count in counts.items() if is_contracted(word))
    return [
        _log2(1 + n),
        _log2(1 + sentences),
        _log2(1 + n / max(sentences, 1)),
        math.sqrt(len(LIST.findall(text))),
        math.sqrt(len(HEADING.findall(text))),
        math.sqrt((len(_FENCE.findall(text)) + 1) // 2 + len(_SPAN.findall(text))),
        rate(sum(map(text.count, "0123456789")), len(text), 100),
        math.sqrt(text.count("!")),
        math.sqrt(text.count("?")),
        words_in(POLITE, counts),
        words_in(HEDGING, counts),
        words_in(_CONFIDENT, counts),
        rate(contracted, n, 50),
        words_in(FIRST, heads),
        words_in(SECOND, heads),
        math.sqrt(len(EMOJI.findall(text))),
        math.sqrt(len(LINK.findall(text))),
    ]


def _log2(value: float) -> float:
    return round(math.log2(value), 4)
