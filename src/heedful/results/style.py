"""What edits say of how somebody writes."""

from __future__ import annotations

from typing import NamedTuple

from heedful.core.notebooks import table


class StyleStatement(NamedTuple):
    """What a person's edits say about one feature of style."""

    feature: str
    """the name of the feature, such as "exclamation marks\""""
    told: str
    """how the person wants texts, such as "without exclamation marks"; "" if it cannot be told"""
    edits: int
    """in how many edits it could be counted; words are counted in English texts only"""
    more: int
    """how many of them raised it"""
    fewer: int
    """how many lowered it"""
    occasions: int
    """how many edits could have lowered it, as the draft had some; all for a size, or if more raised it"""
    change: float | None
    """the median change, as a share, over the edits in which it could be counted and was not 0 in the draft; None if
    there are none"""
    evidence: float
    """the evidence for the direction of most, at most 1e12; 1 is none"""
    denied: bool
    """whether somebody denied it by hand, so that it is in no prompt"""


class StyleRule(NamedTuple):
    """A correction by hand that is in effect: the id of its `event`, whom it is for, and the feature that it denies or
    what always holds."""

    event: str
    """the id of the event, which `Loop.undo` takes"""
    person: str | None
    """whom it is for; None for everybody"""
    deny: str
    """the feature that nothing is said of; "" if it says what always holds"""
    always: str
    """what always holds; "" if it denies a feature"""


class Style(NamedTuple):
    """What a person's corrections of texts say about the style that they want."""

    person: str | None
    """whose; None for all people of the loop together"""
    prompt: str
    """the style in words, ready for a prompt; "" if nothing can be told"""
    edits: int
    """how many edits could be read; of several edits of one draft the last counts"""
    english: int
    """how many of them are of English texts, in which words are counted"""
    unread: int
    """how many edits have no texts in the log, or texts without words"""
    alpha: float
    """the probability, at most, that any statement about this person is ever false"""
    statements: tuple[StyleStatement, ...]
    """all features: those first of which something can be told, the others by their evidence"""
    rules: tuple[StyleRule, ...]
    """the corrections by hand that are in effect, the oldest first"""
    described: tuple[str, ...]
    """what the caller's function said of single edits, the newest last; nothing was tested there"""
    unsaid: str
    """why nothing can be told from edits, in words; "" if something can"""
    pooled: str
    """without a person, in a sentence, what the edits of everybody together say and what they do not; "" for a person,
    and without edits"""

    @property
    def told(self) -> tuple[StyleStatement, ...]:
        """the statements that are in the prompt"""
        return tuple([each for each in self.statements if each.told and not each.denied])

    def _repr_html_(self) -> str:
        rows = [(s.feature, s.told or "cannot be told", s.fewer, s.more, s.edits, s.evidence) for s in self.statements]
        notes = [note for note in (self.prompt, self.unsaid, self.pooled) if note]
        return table(
            f"Style of {self.person or 'all'}", ["feature", "", "fewer", "more", "edits", "evidence"], rows, notes
        )
