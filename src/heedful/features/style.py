"""What an edit of a text changes in its style: differences of features that have names, such as exclamation marks.

A feature is a size (words, words per sentence) or a count (emoji, warm words, a greeting). For every edit and feature
there are two values. `raw` is whether the number rose (1), fell (-1) or stayed (0). `adjusted`, in [-1, 1], is how much
it rose beyond what the change of the length explains: if a draft with n words and k emoji becomes a text with m <= n
words and j <= k emoji, it is j / k - m / n. Its mean is 0 if every word and every emoji is as likely to be kept as any
other, also if they are deleted in groups; a person who only shortens does not seem to dislike emoji.

Words are counted in English texts only (`is_english`), which are known by words that no feature counts; whatever a
person's edits do to other languages, nothing is said about their words. Sizes and marks are counted in all languages;
a letter of Chinese, Japanese or Thai counts as a word.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from heedful.features.texts import (
    EMOJI,
    FIRST,
    HEDGING,
    LINK,
    LIST,
    POLITE,
    SECOND,
    count_sentences,
    is_contracted,
    word_set,
    words,
)


class StyleFeature(NamedTuple):
    """A feature of the style of a text that an edit may change, with the words in which such changes are described.

    `more` and `fewer` complete "write ...", as in "write without emoji"; `none` is for a count that edits bring down to
    0."""

    name: str
    """the name, such as "exclamation marks\""""
    what: str
    """what is counted, in words"""
    more: str
    """how a text is written that has more of it"""
    fewer: str
    """how a text is written that has less of it"""
    none: str = ""
    """how a text is written that has none of it; "" for a size"""
    english: bool = False
    """whether it is counted in English texts only"""


def _count(name: str, what: str, english: bool = False) -> StyleFeature:
    return StyleFeature(name, what, f"with more {name}", f"with fewer {name}", f"without {name}", english)


FEATURES = (
    StyleFeature("length", "words", "longer", "shorter"),
    StyleFeature("sentence length", "words per sentence", "in longer sentences", "in shorter sentences"),
    _count("exclamation marks", "!"),
    _count("question marks", "?"),
    _count("emoji", "emoji, and :) of any kind"),
    _count("list items", "lines that begin with a bullet or a number"),
    StyleFeature(
        "bold and headings",
        "**bold** and # headings of Markdown",
        "with bold text or headings",
        "with less bold text and fewer headings",
        "without bold text and headings",
    ),
    _count("em dashes", "the dash \N{EM DASH}"),
    _count("numbers", "numbers in digits"),
    _count("links", "addresses of the web"),
    StyleFeature(
        "greeting", "whether it begins with Hi, Dear, ...", "with a greeting", "without a greeting",
        "without a greeting", True,
    ),
    StyleFeature(
        "sign-off", "whether it ends with Best regards, Cheers, ...", "with a sign-off", "without a sign-off",
        "without a sign-off", True,
    ),
    _count("contractions", "don't, it's, we'll, ...", True),
    StyleFeature(
        "hedging words", "maybe, perhaps, might, ...", "more cautiously (perhaps, might, probably)",
        "with fewer hedges (perhaps, might, probably)", "without hedges (perhaps, might, probably)", True,
    ),
    StyleFeature(
        "emphatic words", "very, really, absolutely, ...", "more emphatically (very, really, definitely)",
        "with fewer emphatic words (very, really, definitely)", "without emphatic words (very, really, definitely)",
        True,
    ),
    StyleFeature(
        "warm words", "please, thanks, glad, hope, ...", "more warmly (please, thanks, glad)",
        "with fewer warm words (please, thanks, glad)", "without warm words (please, thanks, glad)", True,
    ),
    StyleFeature(
        "formal words", "furthermore, regarding, hereby, ...", "more formally (furthermore, regarding)",
        "less formally (not furthermore, regarding, hereby)", "without formal words (furthermore, regarding, hereby)",
        True,
    ),
    StyleFeature(
        "first person", "I, me, my, we, our, ...", "more in the first person (I, we)",
        "less in the first person (I, we)", "not in the first person (I, we)", True,
    ),
    StyleFeature(
        "second person", "you, your, ...", "addressing the reader more (you)", "addressing the reader less (you)",
        "without addressing the reader (you)", True,
    ),
)  # fmt: skip
SIZES = 2
"""How many of the features, the first ones, are sizes; the others are counts."""
NAMES = tuple(feature.name for feature in FEATURES)

_WARM = POLITE | word_set(
    "happy hope hoping love lovely great wonderful delighted pleased pleasure wish wishing congratulations "
    "enjoy warm warmly"
)
_EMPHATIC = word_set(
    "very really extremely absolutely definitely totally completely truly incredibly highly certainly clearly "
    "obviously undoubtedly entirely exactly simply literally super"
)
_FORMAL = word_set(
    "furthermore moreover additionally consequently therefore thus hence hereby herewith regarding concerning "
    "pursuant aforementioned hereafter notwithstanding nevertheless henceforth accordingly whereas whereby thereof "
    "sincerely respectfully cordially utilize utilise commence facilitate endeavour endeavor inquire ascertain"
)
_ENGLISH = word_set("the and of to is that with this have not would they from are it be been which there")
"""Frequent words of English, about a sixth of most texts. None of them is counted by a feature: otherwise an edit that
takes such a word out could leave a text too little English to be counted, and one that puts it in could not."""
_ENDINGS = {"s": "is", "re": "are", "ve": "have", "d": "would", "t": "not"}
"""What the end of a contraction stands for, so that "it's" is as English as "it is"."""
_OTHERS = word_set(
    "de het een en van niet zijn der die das und ist nicht ein eine mit den auf le la les des et est une pour dans el "
    "los las que por una og er det til att och ett som med na jest nie się che di il un não da um para и в не на"
)
"""Frequent words of other languages in which some words of `_ENGLISH` occur, and of their neighbours."""
_LEAST, _SHARE = 8, 0.06
"""How many words a text has at least that shows its language by itself, and the share of them that is in `_ENGLISH` if
it is a draft in English."""

_BOLD = re.compile(r"\*\*[^*\n]+\*\*|^#{1,6}[^\S\n]+\S", re.MULTILINE)
_NUMBER = re.compile(r"[0-9]+(?:[.,:][0-9]+)*+")
_LETTERS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no spaces between words."""
_GREETING = re.compile(r"(?:hi|hello|hey|dear|greetings|good[ \t]+(?:morning|afternoon|evening|day))\b", re.IGNORECASE)
_SIGN_OFF = re.compile(
    r"(?:(?:best|kind|warm|many)[ \t]+(?:regards|wishes|thanks)|regards|best|sincerely|cheers|thanks|thank you|"
    r"warmly|love|take care|yours(?:[ \t]+(?:truly|sincerely|faithfully))?|"
    r"(?:respectfully|sincerely)[ \t]+yours|with[ \t]+(?:best|kind|warm)[ \t]+(?:regards|wishes))"
    r"[,.!]?(?:[ \t]+\w+){0,3}[.!]?\s*",
    re.IGNORECASE,
)
_LAST = 3
"""How many lines with text from the end a sign-off may stand on."""


class StyleMeasures(NamedTuple):
    """What is measured of one text."""

    words: int
    """how many words it has; of scripts without spaces, letters"""
    counts: tuple[int, ...]
    """the number of each of FEATURES; of sentences in place of their length"""
    english: int
    """how many of its words are among the most frequent ones of English, less twice as many as are frequent in other
    languages"""


def measure(text: str) -> StyleMeasures:
    """Return what the features of style are of a `text`, in a time that grows as its length."""
    tokens = words(text)
    n, counted = len(tokens), Counter(tokens)
    heads, ends = Counter[str](), Counter[str]()
    for word, count in counted.items():
        head, _, end = word.partition("'")
        heads[head.removesuffix("n") if end == "t" else head] += count  # don't, isn't
        ends[_ENDINGS.get(end, "")] += count
    if not text.isascii():
        n += len(_LETTERS.findall(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]

    def among(vocabulary: frozenset[str], counter: Counter[str] = counted) -> int:
        return sum(counter[word] for word in vocabulary)

    counts = (
        n,
        count_sentences(text),
        text.count("!"),
        text.count("?"),
        len(EMOJI.findall(text)),
        len(LIST.findall(text)),
        len(_BOLD.findall(text)),
        text.count("\N{EM DASH}"),
        len(_NUMBER.findall(text)),
        len(LINK.findall(text)),
        int(bool(lines) and _GREETING.match(lines[0]) is not None),
        int(len(lines) > 1 and any(_SIGN_OFF.fullmatch(line[:100]) is not None for line in lines[1:][-_LAST:])),
        sum(count for word, count in counted.items() if is_contracted(word)),
        among(HEDGING),
        among(_EMPHATIC),
        among(_WARM),
        among(_FORMAL),
        among(FIRST, heads),
        among(SECOND, heads),
    )
    english = among(_ENGLISH, heads) + among(_ENGLISH, ends)
    return StyleMeasures(n, counts, english - 2 * among(_OTHERS, heads))


def is_english(draft: StyleMeasures, edited: StyleMeasures | None = None) -> bool:
    """Return whether a draft and, if given, what it became by an edit seem to be English.

    A draft of 8 words or more shows it by the share of its words that are frequent in English, a shorter one together
    with the edited text. Of the edited text less is asked, so that what an edit changes hardly ever decides whether it
    is counted: one frequent word from 8 words on, and of fewer words that they are no frequent words of another
    language."""
    total = draft.english + (0 if edited is None else edited.english)
    if draft.english < max(_SHARE * draft.words, 1) if draft.words >= _LEAST else total < 1:
        return False
    return edited is None or edited.english >= (1 if edited.words >= _LEAST else 0)


class StyleChange(NamedTuple):
    """What an edit changed in one feature."""

    raw: int
    """1 if there is more of it in the edited text, -1 if less, 0 if as much"""
    adjusted: float
    """how much more of it there is than the change of the length explains, from -1 to 1; `raw` for sizes"""
    before: float
    """the number in the draft"""
    after: float
    """the number in the edited text"""


def compare(draft: StyleMeasures, edited: StyleMeasures) -> list[StyleChange | None]:
    """Return what the edit of `draft` to `edited` changed in each of FEATURES, (19,).

    None stands for a feature of English in a text that does not seem to be English. If either text has no words, all
    are None."""
    n, m = draft.words, edited.words
    if not n or not m:
        return [None] * len(FEATURES)
    english, before, after = is_english(draft, edited), draft.counts, edited.counts
    longer, sentences = _sign(m - n), (max(before[1], 1), max(after[1], 1))
    slower = _sign(m * sentences[0] - n * sentences[1])
    changes: list[StyleChange | None] = [StyleChange(longer, longer, n, m)]
    changes.append(StyleChange(slower, slower, n / sentences[0], m / sentences[1]))
    for feature, k, j in zip(FEATURES[SIZES:], before[SIZES:], after[SIZES:]):
        applies = english or not feature.english
        changes.append(StyleChange(_sign(j - k), _adjusted(k, j, n, m), k, j) if applies else None)
    return changes


def _adjusted(k: int, j: int, n: int, m: int) -> float:
    """Return how much an edit raises a feature beyond what the change of the length explains, from -1 to 1.

    The draft has n words and the feature k times, the edited text m words and the feature j times. If both only
    shrink, that is j / k - m / n: the share of the feature that is kept, less the share of the words that is kept. If
    they grow, the same is taken from the other side: the share of the edited text's words that were there before, less
    that share of the feature."""
    kept = min(k, j) / k - min(n, m) / n if k else 0.0
    old = min(k, j) / j - min(n, m) / m if j else 0.0
    return max(-1.0, min(kept - old, 1.0))


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
