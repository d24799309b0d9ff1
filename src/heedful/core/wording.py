"""Names and probabilities in words, for terminals, pages and pictures."""

from __future__ import annotations


def one_line(name: str, most: int = 40) -> str:
    """Return `name` as one line of at most `most` characters.

    Characters that cannot be printed become question marks, as a terminal could take them for commands.
    """
    plain = "".join(mark if mark.isprintable() else "?" for mark in " ".join(name.split()))
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def share(p: float) -> str:
    """Return the probability `p` as a percentage; if it is not certain it is never rounded to 0 % or 100 %."""
    percent = 100.0 * float(p)
    if percent >= 99.5:
        return "> 99 %" if percent < 100.0 - 1e-9 else "100 %"
    return f"{percent:.0f} %" if percent >= 0.5 else "< 1 %"


def percent(part: float) -> str:
    """Return a fraction or a level, such as 0.9, as a percentage to three figures: "90 %", "99.9 %", "0 %"."""
    return f"{100.0 * float(part):.3g} %"


def count(n: int, one: str, many: str | None = None) -> str:
    """Return the number `n` with its noun: "1 list", "2,000 lists".

    `one` is the noun in the singular; `many` is an irregular plural."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
