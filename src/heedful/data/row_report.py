"""What became of the rows of somebody else's file, or of the events that are written in somebody else's format."""

from collections import Counter
from dataclasses import dataclass, field

ALREADY = "in this loop already: it was exported from it"
"""Why a row is not used that this very loop wrote: nothing is wrong with it."""

FORGOTTEN = "forgotten in this loop"
"""Why a row is not used that was in the loop, and that `forget` erased."""

UNDONE = "undone or rolled back"
"""Why feedback is not written in another format: it does not count."""

REPEATED = "the same answer stands elsewhere in the file, by its {by}"
"""Why a row is not used whose answer another row has, its newest version."""


@dataclass
class Report:
    """What became of rows that were read, or of events that were written in another format; complete once all are done.

    `rows` and `used` count them by what they are ("queries", "events", "pairs", ...); `dropped` counts those that were
    not used, by reason, and `examples` has the first of them for each reason, mostly as NAME:LINE: field: expected ...,
    got .... `left_out` counts the parts of used rows that were ignored.
    """

    rows: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, example: str) -> None:
        """Count one more row that is not used, for this reason; `example` describes it, and is kept if
        it is the first.
        """
        self.dropped[reason] += 1
        self.examples.setdefault(reason, example)
