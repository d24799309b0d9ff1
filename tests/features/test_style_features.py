"""Features of style, and what an edit changes in them."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.features.style import FEATURES, NAMES, SIZES, compare, is_english, measure
from heedful.features.texts import FIRST, HEDGING, POLITE, SECOND, word_set

LETTER = """Dear Ann,

we would perhaps like to tell you that the parcel of 3 books (see https://a.example) has arrived!!
It's **very** heavy \N{EM DASH} sorry.

- Please come by.
- Furthermore, bring your passport?

Best regards,
Bob 😀"""


def counts(text: str) -> dict[str, int]:
    return dict(zip(NAMES, measure(text).counts))


def test_what_is_counted() -> None:
    assert counts(LETTER) == {
        "length": measure(LETTER).words,
        "sentence length": 6,
        "exclamation marks": 2,
        "question marks": 1,
        "emoji": 1,
        "list items": 2,
        "bold and headings": 1,
        "em dashes": 1,
        "numbers": 1,
        "links": 1,
        "greeting": 1,
        "sign-off": 1,
        "contractions": 1,
        "hedging words": 1,
        "emphatic words": 1,
        "warm words": 2,
        "formal words": 1,
        "first person": 1,
        "second person": 2,
    }


@pytest.mark.parametrize(
    ("text", "greeting", "sign_off"),
    [
        ("Hi Bob, the parcel is here.", 1, 0),
        ("  Good morning all\nHere it is.", 1, 0),
        ("Dearest parcels of mine", 0, 0),
        ("Here it is.\n\nKind regards\nAnn", 0, 1),
        ("Here it is.\n\nCheers, Ann", 0, 1),
        ("Thanks", 0, 0),  # a text of one line does not end with a sign-off
        ("Here it is.\nThanks to all of you who came to see it yesterday at noon.", 0, 0),
        ("Here it is.\nBest\n1\n2\n3\n4", 0, 0),
        ("", 0, 0),
    ],
)
def test_greetings_and_sign_offs(text: str, greeting: int, sign_off: int) -> None:
    found = counts(text)
    assert (found["greeting"], found["sign-off"]) == (greeting, sign_off)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("The parcel that you ordered is in our shop, and you may come for it.", True),
        ("Your parcel is here!", True),
        ("Sehr geehrte Frau Ann, das Paket ist da und war in der Post, will man es haben.", False),
        ("Le colis que vous avez commandé est arrivé dans notre boutique.", False),
        ("Het pakket is aangekomen, we hebben het in de winkel of bij de buren.", False),
        ("Pakken er kommet, og den er til dig, for vi har den at give i dag.", False),
        ("Paczka przyszła do sklepu i to jest to, co pani zamówiła na jutro.", False),
        ("El paquete que usted pidió ha llegado a nuestra tienda y puede recogerlo.", False),
        ("荷物が届きました。", False),
        ("Ok", False),
    ],
)
def test_english_is_known_from_other_languages(text: str, english: bool) -> None:
    assert is_english(measure(text)) is english


def test_of_two_texts_both_have_to_be_english() -> None:
    long = measure("The parcel that you ordered is in our shop, and you may come for it.")
    german = measure("Das Paket ist im Laden und kann dort heute noch abgeholt werden.")
    assert is_english(long, measure("Parcel arrived."))
    assert not is_english(long, german)
    assert not is_english(measure("Parcel arrived."), measure("Parcel here."))


@pytest.mark.parametrize(
    "more", ["you", "your", "we", "perhaps", "really", "thanks", "furthermore", "our", "I've", "don't"]
)
@pytest.mark.parametrize(
    "text", ["Parcel is here, ", "Parcel 17 arrived today, please collect it soon, ", "Parcel arrived"]
)
def test_a_word_counts_whether_it_is_put_in_or_taken_out(text: str, more: str) -> None:
    """Of a draft with one such word, an edit adds one or removes it: either both are compared, or neither."""
    draft = measure(f"{text} {more} kindly")
    added, removed = measure(f"{text} {more} {more} kindly"), measure(f"{text} kindly")
    up, down = compare(draft, added), compare(draft, removed)
    assert [change is None for change in up] == [change is None for change in down]
    if text != "Parcel arrived":
        assert any(a is not None and a.raw == 1 and b is not None and b.raw == -1 for a, b in zip(up[2:], down[2:]))


@pytest.mark.parametrize(
    ("short", "long"),
    [("it's", "it is"), ("they're", "they are"), ("I've", "I have"), ("isn't", "is not"), ("we'd", "we would")],
)
def test_a_contraction_is_as_english_as_what_it_stands_for(short: str, long: str) -> None:
    assert measure(f"Yes, {short} here").english == measure(f"Yes, {long} here").english >= 1


def test_english_is_known_by_words_that_are_not_counted() -> None:
    listed = "the and of to is that with this have not would they from are it be been which there"
    for word in word_set(listed):
        measures = measure(word)
        assert measures.english >= 1
        assert not any(measures.counts[SIZES:]), word
    for word in POLITE | HEDGING | FIRST | SECOND | {"very", "furthermore", "hope", "obviously"}:
        assert measure(word).english <= 0, word


def test_what_an_edit_changes() -> None:
    changed = dict(zip(NAMES, compare(measure("It is here! It is very heavy!"), measure("It is here."))))
    length, marks, words = changed["length"], changed["exclamation marks"], changed["emphatic words"]
    assert length is not None
    assert marks is not None
    assert words is not None
    assert (length.raw, length.before, length.after) == (-1, 7, 3)
    assert (marks.raw, marks.adjusted) == (-1, pytest.approx(-3 / 7))
    assert (words.raw, words.adjusted) == (-1, pytest.approx(-3 / 7))
    back = dict(zip(NAMES, compare(measure("It is here."), measure("It is here! It is very heavy!"))))
    assert back["exclamation marks"] is not None
    assert back["exclamation marks"].adjusted == pytest.approx(3 / 7)


def test_words_of_other_languages_are_not_compared_and_marks_are() -> None:
    changes = compare(measure("Das Paket ist da! Please kommen!"), measure("Das Paket ist da."))
    assert [change is None for change in changes] == [feature.english for feature in FEATURES]
    assert compare(measure("Here it is."), measure("")) == [None] * len(FEATURES)
    assert compare(measure("!!!"), measure("Here.")) == [None] * len(FEATURES)


def test_the_letters_of_scripts_without_spaces_are_words() -> None:
    change = compare(measure("荷物が届きました。とても重いです。"), measure("荷物が届きました。"))[0]
    assert change is not None
    assert change.raw == -1


@pytest.mark.parametrize("group", [1, 3, 5])
@pytest.mark.parametrize("m", [1, 4, 9, 12])
def test_a_person_who_deletes_no_matter_what_dislikes_nothing(group: int, m: int) -> None:
    """Of 12 words, some with emoji, the `m` from any of them on are kept: the mean of `adjusted` is zero, exactly."""
    words = ["word😀"] * group + ["word"] * (12 - group)
    draft, found = measure(" ".join(words)), []
    for start in range(12):
        change = compare(draft, measure(" ".join((words[start:] + words[:start])[:m])))[NAMES.index("emoji")]
        assert change is not None
        found.append(change.adjusted)
    assert np.mean(found) == pytest.approx(0.0, abs=1e-12)
    assert m == 12 or max(np.abs(found)) > 0.1


@pytest.mark.parametrize(
    ("text", "words"), [("*", 0), ("Best ", 1), ("a\n", 1), ("1,2.", 2), ("Best regards, a b c\n", 5), ("Hi " * 9, 9)]
)
def test_a_long_text_is_measured_in_a_moment(text: str, words: int) -> None:
    """Its length is that of the largest body that a server takes; with quadratic time it would take hours."""
    n = 1_000_000 // len(text)
    assert measure(text * n).words in (words * n, 1)


def test_every_feature_has_words_for_both_directions() -> None:
    assert len(set(NAMES)) == len(FEATURES)
    for i, feature in enumerate(FEATURES):
        assert feature.more != feature.fewer
        assert bool(feature.none) == (i >= SIZES)
