"""Names and probabilities in words, for terminals, pages and pictures."""

from __future__ import annotations

import re
import unicodedata

OBEYED = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Characters, as within the brackets of a regular expression, that are not shown but obeyed: control characters, ends
of lines, and those that turn the direction of what follows. Those that join letters, or emoji, are none."""
UNPRINTABLE = re.compile(f"[{OBEYED}]")
BAR = 1.6448536269514722
"""Half the length of a bar, in standard deviations: a normal distribution has 90 % of its mass within."""


def spelling(name: str) -> str:
    """Return `name` without what may differ where the same is meant: case, blanks and the code of a letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def one_line(name: str, most: int = 40) -> str:
    """Return `name` as one line of at most `most` characters.

    Characters that cannot be printed become question marks, as a terminal could take them for commands.
    """
    plain = "".join(mark if mark.isprintable() else "?" for mark in " ".join(name.split()))
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def share(p: float) -> str:
    """Return the probability or share `p` as a whole percentage: "42 %".

    What is not certain is never rounded to 0 % or 100 %, but is "< 1 %" or "> 99 %"."""
    percent = 100.0 * float(p)
    if percent >= 99.5:
        return "> 99 %" if percent < 100.0 - 1e-9 else "100 %"
    return f"{percent:.0f} %" if percent > 0.5 else "< 1 %"


def share_of(n: int, of: int) -> str:
    """Return the share of `n` in `of`, two counts, as `share` does; "0 %" means none, or that `of` is 0."""
    return share(n / of) if n and of else "0 %"


def percent(part: float, figures: int = 3, sign: bool = False) -> str:
    """Return a fraction or a level, such as 0.9, as a percentage: "90 %", "99.9 %", "0 %".

    It has at most so many `figures`, and with `sign` a "+" or "-"."""
    rounded = float(f"{100.0 * float(part):.{figures}g}")  # 100, where the format alone writes 1e+02
    return f"{rounded:+g} %" if sign else f"{rounded:g} %"


def count(n: int, singular: str, plural: str | None = None) -> str:
    """Return the number `n` with its noun: "1 list", "2,000 lists".

    `singular` is the noun in the singular; `plural` is an irregular plural."""
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"
