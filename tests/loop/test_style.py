"""What edits say about the style that a person wants: from the log to a sentence for a prompt, corrected by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import as_lines
from heedful.features.style import NAMES
from heedful.io import import_lines
from heedful.loop.interactions import telling
from heedful.results.style import StyleStatement
from heedful.server.agent_tools import likes_in_words
from loops import lines_of

THINGS = ("parcel", "letter", "box", "invoice", "order", "book")
NOW = Settings(k=1, control=0.0, exploration=0.0)


def made(folder: Path, name: str = "letters", **settings: Any) -> Loop:
    made = Settings(k=1, control=0.0, exploration=0.0, **settings)
    return Loop.create(folder / f"{name}.heedful", encoding=TEXTS, settings=made)


def draft(i: int) -> str:
    thing = THINGS[i % len(THINGS)]
    return f"Dear customer, the {thing} that you asked us for is here! You may come to our shop and take it with you."


def edit(loop: Loop, i: int, change: Callable[[str], str], person: str | None = "ann") -> None:
    loop.decide([{"id": "a", "text": draft(i)}], id=f"{person}{i}", person=person)
    assert loop.feedback(f"{person}{i}", id=f"e-{person}{i}", edit=change(draft(i))).status == "applied"


def calmer(text: str) -> str:
    return text.replace("!", ".")


def warmer(text: str) -> str:
    return text.replace("You may come", "Thanks, please come").replace("!", ".")


def found(loop: Loop, feature: str, person: str | None = "ann") -> StyleStatement:
    return next(each for each in loop.style_of(person).statements if each.feature == feature)


def test_from_edits_a_sentence(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        assert loop.style_of("ann").unsaid == "ann has edited no text"
        assert loop.style_of(None).unsaid == "nobody has edited a text"
        for i in range(14):
            edit(loop, i, warmer)
        style = loop.style_of("ann")
        wanted = "without exclamation marks and more warmly (please, thanks, glad)"
        assert style.prompt == f"Write in the style that corrections of earlier drafts ask for: {wanted}."
        assert [each.feature for each in style.told] == ["exclamation marks", "warm words"]
        marks = style.told[0]
        assert (marks.edits, marks.more, marks.fewer, marks.occasions, marks.change) == (14, 0, 14, 14, -1.0)
        assert (style.edits, style.english, style.unread, style.unsaid) == (14, 14, 0, "")
        assert sorted(each.feature for each in style.statements) == sorted(NAMES)
        assert loop.style_of("bob").prompt == ""


def test_the_style_of_everybody_says_that_it_is_nobodys_in_particular(tmp_path: Path) -> None:
    """Who edits more counts more: the sentence is in the result, so at each door."""
    with made(tmp_path) as loop:
        for i in range(14):
            edit(loop, i, warmer)
        edit(loop, 14, str, "bob")
        of_ann, of_all = loop.style_of("ann"), loop.style_of()
        assert (of_ann.pooled, of_all.edits) == ("", 15)
        assert "whoever edits more counts more" in of_all.pooled
        lines = [part.text for part in telling.style(of_all) if isinstance(part, telling.Line)]
        assert of_all.pooled in lines
        assert of_all.pooled in of_all._repr_html_()
        assert of_all.pooled in likes_in_words(loop, None)
        assert "counts more" not in likes_in_words(loop, "ann")
        assert loop.style_of("bob").pooled == ""


def test_few_edits_tell_nothing_and_say_so(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(5):
            edit(loop, i, warmer)
            style = loop.style_of("ann")
            assert (style.prompt, style.told) == ("", ())
            many = "1 edit does" if i == 0 else f"{i + 1} edits do"
            assert style.unsaid == f"{many} not suffice to be sure of anything"
        assert found(loop, "exclamation marks").evidence > 5.0


def test_edits_both_ways_tell_nothing_however_many_there_are(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(40):
            edit(loop, i, calmer if i % 2 else lambda text: f"{text[:-1]}!")
        assert loop.style_of("ann").told == ()
        marks = found(loop, "exclamation marks")
        assert (marks.more, marks.fewer, marks.told) == (20, 20, "")


def test_a_person_who_shortens_is_said_to_want_shorter_texts_and_nothing_else(tmp_path: Path) -> None:
    """Half of each text goes, the first or the second half in turn: all counts go down, none more than the length."""
    with made(tmp_path) as loop:
        for i in range(40):
            edit(loop, i, lambda text, first=bool(i % 2): " ".join(np.array_split(text.split(), 2)[first]))
        told = loop.style_of("ann").told
        assert {each.feature for each in told} <= {"length", "sentence length"}
        assert told[0].told.startswith("shorter (by about 50 %, to about ")


def test_how_much_shorter_is_said_of_all_edits_as_the_length_is(tmp_path: Path) -> None:
    """Of fifty edits of 22 words twenty leave 8 words, twenty 20, and ten make it 33: by the median of all they are 9 %
    shorter, by that of those that are shorter 36 %."""
    with made(tmp_path) as loop:
        for i in range(50):
            left = (8, 20, 8, 20, 33)[i % 5]
            edit(loop, i, lambda text, left=left: " ".join((text.split() * 2)[:left]))
        length = found(loop, "length")
    assert (length.edits, length.more, length.fewer) == (50, 10, 40)
    assert length.change == pytest.approx(20 / 22 - 1.0)
    assert length.told == "shorter (by about 9.1 %, to about 20 words)"


def test_a_rare_change_is_said_to_hold_for_some_texts(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(48):
            edit(loop, i, calmer if i % 3 == 0 else str)
        assert loop.style_of("ann").told[0].told == "in some texts with fewer exclamation marks"


def test_each_person_has_their_own_and_everybody_together(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(16):
            edit(loop, i, warmer, "ann")
            edit(loop, i, lambda text: f"{text} 😀", "bob")
            edit(loop, i, lambda text: f"{text} See https://a.example", None)
        assert found(loop, "emoji", "bob").told == "with more emoji"
        assert found(loop, "emoji", "ann").told == ""
        every = loop.style_of()
        assert every.edits == 48
        assert {"emoji", "links"} <= {each.feature for each in every.told}


def test_of_several_edits_of_a_draft_the_last_counts(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        edit(loop, 0, warmer)
        loop.feedback("ann0", id="again", edit=draft(0))
        style = loop.style_of("ann")
        assert style.edits == 1
        assert all(each.more == each.fewer == 0 for each in style.statements)


def test_other_languages_have_no_words(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(14):
            text = f"Liebe Kundin, das Paket {i} ist da und kann in unserem Laden abgeholt werden! Please!"
            loop.decide([{"id": "a", "text": text}], id=f"g{i}", person="ann")
            loop.feedback(f"g{i}", edit=text.replace(" Please!", "").replace("!", "."))
        style = loop.style_of("ann")
        assert (style.edits, style.english) == (14, 0)
        assert "warm words" not in [each.feature for each in style.told]
        assert found(loop, "warm words").edits == 0
        assert found(loop, "exclamation marks").told == "without exclamation marks"


def test_items_on_offer_and_edits_of_attributes_are_read_too(tmp_path: Path) -> None:
    items = [{"id": f"i{i}", "text": draft(i)} for i in range(3)]
    with Loop.create(tmp_path / "l.heedful", encoding=TEXTS, items=items, settings=NOW) as loop:
        for i in range(3):
            loop.decide([f"i{i}"], id=f"d{i}", person="ann")
            loop.feedback(f"d{i}", edit={"text": calmer(draft(i))})
        loop.put_items([{"id": "i0", "text": "Something else!!!!"}])  # the draft stays as it was shown
        loop.decide(id="all", person="ann")
        loop.feedback("all", edit=calmer(draft(1)), item="i1", nearest=True)
        marks = found(loop, "exclamation marks")
        assert (marks.edits, marks.fewer, marks.occasions) == (4, 4, 4)


def test_what_has_no_texts_is_counted_and_said(tmp_path: Path) -> None:
    with made(tmp_path, store_text=False) as loop:
        edit(loop, 0, warmer)
        style = loop.style_of("ann")
        assert (style.edits, style.unread, style.unsaid) == (0, 1, "the loop stores no texts")
    with made(tmp_path, "empty") as loop:
        edit(loop, 0, lambda _: "...")
        style = loop.style_of("ann")
        assert (style.edits, style.unread, style.unsaid) == (0, 1, "no edit has a text with words before and after")


def test_undoing_rolling_back_and_forgetting_take_it_away(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(12):
            edit(loop, i, calmer)
        before, version = loop.style_of("ann"), loop.version
        edit(loop, 12, lambda text: f"{text} 😀")
        assert loop.style_of("ann") != before
        loop.undo("e-ann12")
        assert loop.style_of("ann") == before
        loop.correct_style("ann", always="Be brief.", id="r")
        edit(loop, 13, calmer)
        loop.rollback(version)
        assert loop.style_of("ann") == before
        loop.correct_style("ann", always="Be brief.", id="r2")
        loop.forget("ann")
        gone = loop.style_of("ann")
        assert (gone.edits, gone.rules, gone.prompt) == (0, (), "")
        assert loop.verify() == []
        assert loop.correct_style("ann", always="Be brief.", id="r2").reason == "style r2 was forgotten"
    for path in (tmp_path / "letters.heedful").iterdir():
        assert b"Be brief." not in path.read_bytes()


def test_a_function_of_the_caller_adds_its_words(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(14):
            edit(loop, i, warmer if i != 12 else str)
        asked: list[tuple[str, str]] = []

        def describe(before: str, after: str) -> str:
            asked.append((before, after))
            return ("  is thankful. ", "likes calm", "is thankful", "")[len(asked) - 1]

        style = loop.style_of("ann", describe=describe)
        assert asked == [(draft(i), warmer(draft(i))) for i in (9, 10, 11, 13)]  # of the newest five, those that change
        assert style.described == ("likes calm", "is thankful")
        assert style.prompt.endswith(" Single edits suggest: likes calm; is thankful.")
        with pytest.raises(ValueError, match="describe: expected a function that returns a text, got 5"):
            loop.style_of("ann", describe=lambda *_: 5)  # type: ignore[arg-type,return-value]


# ---------------------------------------------------------------------------- by hand


def test_corrections_by_hand(tmp_path: Path) -> None:
    with made(tmp_path) as loop:
        for i in range(14):
            edit(loop, i, warmer)
        weights, version = loop.weights, loop.version
        answer = loop.correct_style("ann", deny="warm words", id="r1")
        assert (answer.status, answer.learned, loop.version, loop.weights) == ("applied", False, version, weights)
        loop.correct_style("ann", always="Sign with\n the first name.", id="r2")
        loop.correct_style(always="Answer in English.", id="r3")
        assert loop.correct_style("ann", deny="warm words", id="r1").status == "duplicate"
        assert loop.correct_style("ann", deny="emoji", id="r1").status == "rejected"
        assert loop.correct_style("bob", deny="warm words", id="r1").status == "rejected"
        style = loop.style_of("ann")
        assert "warm words" not in [each.feature for each in style.told]
        assert next(each for each in style.statements if each.denied).told == "more warmly (please, thanks, glad)"
        assert style.prompt.endswith("marks. Always: Sign with the first name. Always: Answer in English.")
        assert [rule.event for rule in style.rules] == ["r1", "r2", "r3"]
        assert loop.style_of("bob").prompt == "Always: Answer in English."
        assert [rule.event for rule in loop.style_of().rules] == ["r3"]
        loop.correct_style("ann", deny="exclamation marks")
        assert loop.style_of("ann").unsaid == "all that they tell was denied by hand"
        assert loop.undo("r1").status == loop.undo("r3").status == "applied"
        assert [each.feature for each in loop.style_of("ann").told] == ["warm words"]
        assert loop.style_of("bob").prompt == ""
    with Loop.open(tmp_path / "letters.heedful") as loop:
        assert loop.style_of("ann").rules[0].event == "r2"
        assert loop.verify() == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "style: expected one of deny and always, got neither"),
        ({"deny": "emoji", "always": "x"}, "style: expected one of deny and always, got both"),
        ({"deny": "smileys"}, "deny: expected one of length, .*got 'smileys'"),
        ({"deny": ["emoji"]}, "deny: expected one of length"),
        ({"always": " \n"}, "always: expected a text of printable characters"),
        ({"always": "a\x1bb"}, "always: expected a text of printable characters"),
        ({"always": "x" * 501}, "always: expected a text of at most 500 characters, got 501 characters"),
        ({"always": 5}, "always: expected a text"),
        ({"always": "\ud800"}, "always: expected a text"),
        ({"always": "x", "person": ""}, "person: expected a text of 1 to 200"),
        ({"always": "x", "id": "\n"}, "id: expected a text of 1 to 200"),
    ],
)
def test_a_correction_that_makes_no_sense_is_refused(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with made(tmp_path) as loop:
        with pytest.raises(ValueError, match=told):
            loop.correct_style(given.pop("person", "ann"), **given)
        assert loop.projection.log.counts() == {"loop": 1}


@pytest.mark.parametrize("alpha", [0.0, 0.6, "x", float("nan")])
def test_an_alpha_out_of_range_is_refused(tmp_path: Path, alpha: Any) -> None:
    with made(tmp_path) as loop, pytest.raises(ValueError, match="alpha: expected"):
        loop.style_of("ann", alpha=alpha)


def test_export_and_import_keep_it_and_twice_changes_nothing(tmp_path: Path) -> None:
    with made(tmp_path) as loop, made(tmp_path, "other") as other:
        for i in range(14):
            edit(loop, i, warmer)
            if i == 6:
                loop.correct_style("ann", deny="length", id="r0")
                loop.correct_style(always="Be kind.", id="r1")
                loop.undo("r0")
            if i == 9:
                loop.correct_style("ann", always="Gone.", id="r9")
                loop.rollback(loop.projection.log.find("undo", "undo-r0").seq)  # type: ignore[union-attr]
        loop.correct_style("ann", deny="second person", id="r2")
        lines = lines_of(loop)
        assert {each.status for each in import_lines(other, lines)} == {"applied"}
        assert other.style_of("ann") == loop.style_of("ann")
        assert other.style_of("ann").rules[0].always == "Be kind."
        assert {each.status for each in import_lines(other, lines)} == {"duplicate"}
        bad = [{"id": "x", "deny": "nonsense"}, {"id": "x"}, {"id": "x", "always": "y", "more": 1}, {"always": "y"}]
        told = list(import_lines(other, as_lines({"kind": "style", **line} for line in bad)))
        assert [(each.kind, each.status) for each in told] == [("style", "rejected")] * 4


def test_another_process_sees_it(tmp_path: Path) -> None:
    with made(tmp_path) as loop, Loop.open(tmp_path / "letters.heedful") as other:
        for i in range(12):
            edit(loop, i, calmer)
        loop.correct_style("ann", always="Be brief.")
        assert other.style_of("ann") == loop.style_of("ann")
        assert other.style_of("ann").told[0].told == "without exclamation marks"
