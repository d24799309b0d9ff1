"""Pages of a list: a decision that continues an earlier one, without what was shown there.

A request names the decision before it (`after`). What the pages before showed is left out of its candidates, so that in
the log a page is a decision like any other, among the candidates that were left. A page has the arm of the page before
it: a list that two learners draft is drafted on, by the same coins.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.core.validation import describe
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.packing import LoggedDecision
from heedful.results.answers import Arm

MOST_PAGES = 1000
"""The most pages of a list."""
ASKS = "after: expected none in {loop}, which shows no pages of a list, got {got}"
"""Why a question does not continue another one, in words."""


class EarlierPages(NamedTuple):
    """What the next page of a list needs to know of the pages before it."""

    last: str
    """the id of the page before"""
    arm: Arm
    """the arm of the page before"""
    shown: frozenset[str]
    """the names of all that the pages before show, on offer or not"""
    experiment: str = ""
    """the id of the experiment whose learners drafted the pages before; "" if none did"""
    first: str = ""
    """the id of the first page that they drafted, by which the coins are drawn"""
    tossed: int = 0
    """how many coins were tossed for the pages before"""
    opening: int | None = None
    """the side, 0 or 1, that has a pick left, if the page before ended in the middle of a round; otherwise None"""


def earlier_pages(history: History, after: object, person: str | None) -> EarlierPages:
    """Return what the pages before the next page show: the decision with the id `after` and those that it continues.

    `history` is the loop's log with its model, `person` is whom the next page is for. Raise ValueError, naming the
    field, if loops of this kind show no lists, or if there is no such decision for this person."""
    if not history.interaction.ranks:
        raise ValueError(ASKS.format(loop=history.interaction.words.loop, got=describe(after)))
    page = page_before(history, records.check_id("after", after), person)
    pages = [page]
    while page.record.after:
        before = history.find_decision(page.record.after)
        if before is None or before.seq >= page.seq:  # written by something else
            break
        pages.append(page := before)
        if len(pages) > MOST_PAGES:
            raise ValueError(f"after: expected at most {MOST_PAGES} pages of a list, got more")
    shown = frozenset(name for page in pages for name in _shown_names(page))
    last = pages[0]
    found = EarlierPages(last.id, last.record.arm, shown)
    if last.record.arm != "interleaved":
        return found
    drafted = [page.record.proposal for page in pages if page.record.arm == "interleaved" and page.record.proposal]
    if not drafted:
        return found
    experiment = drafted[0]["experiment"]
    drafted = [each for each in drafted if each["experiment"] == experiment]
    first = [page for page in pages if page.record.proposal.get("experiment") == experiment][-1]
    coins = [coin for each in reversed(drafted) for coin in each["coins"]]
    picked = sum(len(each["teams"]) for each in drafted)
    opening = 1 - coins[-1] if picked < 2 * len(coins) else None
    return found._replace(experiment=experiment, first=first.id, tossed=len(coins), opening=opening)


def page_before(history: History, id: str, person: str | None) -> LoggedDecision:
    """Return the decision with this `id`, which a page for `person` continues.

    Raise ValueError if there is none in the log of `history`, or if it is for another person."""
    found = history.find_decision(id)
    if found is None:
        gone = history.log.is_forgotten("decision", id)
        why = "was forgotten" if gone else "is not in the log"
        raise ValueError(f"after: expected an earlier decision, got {describe(id)}, which {why}")
    if found.person != person:
        raise ValueError(f"after: expected a decision for the same person, got {describe(id)}, which was for another")
    return found


def _shown_names(page: LoggedDecision) -> list[str]:
    """Return the names of what a page shows, including items that were not on offer."""
    return [page.names[j] for j in page.record.shown] + [name for at, name in page.record.unknown if at >= 0]
