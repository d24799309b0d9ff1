"""A support assistant that learns from what people do to its drafts.

Every request comes with eight drafts (here from templates, in your case from a language model), one is shown, and an
editor turns it into what they want to send. A loop learns from each edit which draft to show next. Measured: how many
words the editor had to change, against showing the first draft, as drafts come.

    python examples/learn_from_edits.py                    # the core dependencies, no network
    python examples/learn_from_edits.py --vectors          # the caller's own vectors instead of readable features
    python examples/learn_from_edits.py --plot edits.png   # needs matplotlib

Nobody here is real: the editors have hidden tastes, leave some of what they dislike, have whims, and at times no time.
The first table compares forms of feedback; the second shows one model for two people at odds, which helps less; the
third an editor without a taste, where there is next to nothing to learn: that every edit adds digits.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful import TEXTS, Loop, Settings, infer

# ---------------------------------------------------------------------------- drafts

FORMS = ("edit", "nearest", "thumb")
STYLES: dict[str, tuple[str, ...]] = {
    "greeting": ("none", "hi", "dear"),
    "opening": ("none", "warm", "formal"),
    "steps": ("prose", "bullets"),
    "length": ("short", "long"),
    "tone": ("plain", "hedged", "sure"),
    "contracted": ("no", "yes"),
    "emoji": ("no", "yes"),
    "closing": ("none", "friendly", "formal"),
}
Style = dict[str, str]


class Topic(NamedTuple):
    """What an answer has to say: what happened, why, what to do."""

    finding: str
    reason: str
    steps: tuple[str, ...]


TOPICS = (
    Topic("parcel [number] is waiting at the depot", "the driver found nobody at home and took it back",
          ("choose a new day on the tracking page", "leave a phone number for the driver", "have the card ready")),
    Topic("payment [number] was taken twice", "the bank answered too late and the till asked again",
          ("wait two working days", "look at the next statement", "write again if it is still there")),
    Topic("account [number] is locked", "the password was wrong five times in a row",
          ("open the reset page", "follow the link in the message", "choose a new password", "sign in again")),
    Topic("invoice [number] has the old address", "the change came after the invoice was made",
          ("check the new address in the profile", "press the button for a new copy")),
    Topic("order [number] cannot be changed any more", "it was packed an hour after it came",
          ("let it come", "print the label for returns", "send it back within thirty days")),
)  # fmt: skip
OPENING = {
    "warm": ("Thank you so much for writing to us, and sorry about the trouble!", "Great that you asked, thanks!"),
    "formal": ("We acknowledge receipt of the above request.", "Reference is made to the message received today."),
}
TONE = {
    "plain": ("It turns out that", "The reason is that"),
    "hedged": ("It seems that perhaps", "This is probably because, it appears,"),
    "sure": ("We have definitely confirmed that", "The reason is clearly and exactly that"),
}
PADDING = (
    "For the sake of completeness, here is some background that may be of use later on.",
    "The same applies to other cases of this kind, which are handled by the same team in the same way.",
    "All of this is also described in the help pages, together with the answers to other common questions.",
)
CLOSING = {"friendly": "Have a lovely day, and do write again!", "formal": "Yours faithfully, Customer Service"}


def render(topic: Topic, style: Style, facts: bool) -> str:
    """The draft of that style; a language model does not know the facts, the editor puts them in."""
    known = ("Kim", "48213") if facts else ("[name]", "[number]")
    not_ = "don't" if style["contracted"] == "yes" else "do not"
    is_ = "it's" if style["contracted"] == "yes" else "it is"
    lines = {"none": [], "hi": [f"Hi {known[0]},"], "dear": [f"Dear {known[0]},"]}[style["greeting"]]
    lines += OPENING.get(style["opening"], ())
    lines.append(f"{TONE[style['tone']][0]} {topic.finding.replace('[number]', known[1])}.")
    lines.append(f"{TONE[style['tone']][1]} {topic.reason}.")
    if style["length"] == "long":
        lines += PADDING
    lines.append(f"What to do, and {is_} not much:")
    lines += (
        [f"- {step}" for step in topic.steps] if style["steps"] == "bullets" else [f"{', then '.join(topic.steps)}."]
    )
    lines.append(f"Please {not_} answer from another address.")
    if style["emoji"] == "yes":
        lines += ["😀 🎉"]
    lines += [CLOSING[style["closing"]]] if style["closing"] != "none" else []
    return "\n".join(lines)


# ---------------------------------------------------------------------------- editors

EDITORS: dict[str, Style] = {  # what each wants; what is not named stays as it is
    "brief": {"greeting": "none", "opening": "none", "steps": "bullets", "length": "short", "emoji": "no",
              "closing": "none"},
    "warm": {"greeting": "hi", "opening": "warm", "contracted": "yes", "emoji": "yes", "closing": "friendly"},
    "formal": {"greeting": "dear", "opening": "formal", "steps": "prose", "contracted": "no", "emoji": "no",
               "closing": "formal"},
    "careful": {"tone": "hedged", "length": "long", "steps": "bullets", "emoji": "no"},
    "certain": {"tone": "sure", "length": "short", "opening": "none", "contracted": "yes"},
    "facts only": {},
}  # fmt: skip


def edited(style: Style, wants: Style, rng: np.random.Generator) -> Style:
    """What the editor makes of a draft: mostly what they want, some of it left, some of it whim; at times no time."""
    busy, care, whim = rng.random() < 0.1, rng.random(len(STYLES)) < 0.85, rng.random(len(STYLES)) < 0.05
    pick = rng.random(len(STYLES))
    out = dict(style)
    for i, (part, values) in enumerate(STYLES.items()):
        if not busy and care[i] and part in wants:
            out[part] = wants[part]
        elif not busy and whim[i] and wants:
            out[part] = values[int(pick[i] * len(values))]
    return out


def distance(a: str, b: str) -> int:
    """How many words must be put in, taken out or replaced to make b of a (Levenshtein), row by row."""
    left, right = a.split(), np.array(b.split())
    places = np.arange(right.size + 1)
    row = places
    for i, word in enumerate(left, 1):
        best = np.concatenate([[i], np.minimum(row[1:] + 1, row[:-1] + (right != word))])
        row = np.minimum.accumulate(best - places) + places  # insertions run along the row
    return int(row[-1])


class Request(NamedTuple):
    """One request: who edits, the drafts, what they would make of each, and how many words that changes."""

    editor: str
    drafts: list[str]
    edits: list[str]
    words: list[int]
    slip: bool  # whether a thumb goes the wrong way


def requests(editors: list[str], rounds: int, seed: int, drafts: int = 8) -> Iterator[Request]:
    """The same stream for whoever learns from it: only which draft is shown differs."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        topic, mood = TOPICS[int(rng.integers(len(TOPICS)))], int(rng.integers(2**32))
        styles = [{part: str(rng.choice(values)) for part, values in STYLES.items()} for _ in range(drafts)]
        editor = editors[t % len(editors)]
        before = [render(topic, style, facts=False) for style in styles]
        wanted = [edited(style, EDITORS[editor], np.random.default_rng(mood)) for style in styles]
        after = [render(topic, style, facts=True) for style in wanted]
        yield Request(editor, before, after, [distance(a, b) for a, b in zip(before, after)], rng.random() < 0.1)


# ---------------------------------------------------------------------------- the loop


def embedded(text: str) -> list[float]:
    """A stand-in for your own vectors: words thrown into 48 buckets by a hash, with a sign. Put your model here."""
    vector = [0.0] * 48
    for word in text.lower().split():
        place = zlib.crc32(word.encode())
        vector[place % 48] += 1.0 if place & 1024 else -1.0
    return [value / math.sqrt(1 + len(text.split())) for value in vector]


def item(text: str, vectors: bool) -> dict[str, Any]:
    """A text as the loop sees it: as it is, for its readable features, or as the caller's vector."""
    return {"vector": embedded(text)} if vectors else {"text": text}


def answer(form: str, request: Request, j: int, vectors: bool) -> dict[str, Any]:
    """What the editor of draft j tells the loop."""
    if form == "thumb":
        return {"thumb": "up" if (request.words[j] <= 20) != request.slip else "down"}
    nearest = {"nearest": True} if form == "nearest" else {}
    return {"edit": request.edits[j] if not vectors else item(request.edits[j], True), **nearest}


def taught(folder: Path, stream: list[Request], form: str, vectors: bool, shrink: float = 0.0) -> tuple[Curve, Loop]:
    """(words changed in each round, the loop), where a loop chooses the draft and learns from the answer."""
    encoding = TEXTS
    if vectors:  # an encoding of vectors has a scale, which it takes from some: here those of the first requests
        some = [text for request in stream[:20] for text in request.drafts]
        encoding = infer([{"id": i, **item(text, True)} for i, text in enumerate(some)], identifier="id")
    loop = Loop.create(folder, encoding=encoding, settings=Settings(k=1, shrink=shrink))
    changed = []
    for t, request in enumerate(stream):
        drafts = [{"id": str(j), **item(text, vectors)} for j, text in enumerate(request.drafts)]
        decision = loop.decide(drafts, id=f"request-{t}", person=request.editor)
        j = int(decision.shown[0])
        loop.feedback(decision.id, id=f"answer-{t}", **answer(form, request, j, vectors))
        changed.append(request.words[j])
    return np.array(changed, float), loop


# ---------------------------------------------------------------------------- the experiment

Curve = Any  # words changed in each round
ALONE = [name for name, wants in EDITORS.items() if wants]


class Experiment(NamedTuple):
    """Who edits, with each seed, and how what is shown is chosen: (form of the answer, shrink of the offsets)."""

    title: str
    editors: list[list[str]]
    ways: dict[str, tuple[str, float]]


EXPERIMENTS = (
    Experiment("One editor, another with each seed", [[name] for name in ALONE], {f: (f, 0.0) for f in FORMS}),
    Experiment(
        "Two editors of opposite tastes take turns",
        [["brief", "warm"]],
        {"one for both": ("edit", 0.0), "offsets": ("edit", 5.0)},
    ),
    Experiment("An editor who only puts in names and numbers", [["facts only"]], {"edit": ("edit", 0.0)}),
)


class Result(NamedTuple):
    """Words changed, seeds x rounds, by how drafts were chosen; and what was learned from edits, in words."""

    title: str
    curves: dict[str, Curve]
    told: dict[str, str]


def run(experiment: Experiment, folder: Path, rounds: int, seeds: int, vectors: bool = False) -> Result:
    """All ways on the same requests; a new loop for each way and seed."""
    title, editors, ways = experiment
    rows: dict[str, list[Curve]] = {name: [] for name in ("first draft", *ways, "best draft")}
    told: dict[str, str] = {}
    for seed in range(seeds):
        who = editors[seed % len(editors)]
        stream = list(requests(who, rounds, seed))
        rows["first draft"].append(np.array([request.words[0] for request in stream], float))
        rows["best draft"].append(np.array([min(request.words) for request in stream], float))
        for name, (form, shrink) in ways.items():
            path = folder / f"{title} {name} {seed}".lower().replace(" ", "-").replace(",", "")
            changed, loop = taught(path, stream, form, vectors, shrink)
            with loop:
                rows[name].append(changed)
                if name == "edit" and not vectors:
                    told.setdefault(", ".join(who), in_words(loop.weights))
    return Result(title, {name: np.array(each) for name, each in rows.items()}, told)


def in_words(weights: dict[str, float], most: int = 5) -> str:
    """The strongest weights of readable features, without those next to nothing."""
    named = {name.removeprefix("text: "): w for name, w in weights.items() if name.startswith("text: ")}
    strong = [name for name in sorted(named, key=lambda name: -abs(named[name]))[:most] if abs(named[name]) > 0.05]
    return ", ".join(f"{'more' if named[name] > 0 else 'less'} {name} ({named[name]:+.1f})" for name in strong)


def cell(values: Curve, sign: str = "") -> str:
    """Mean and standard error of one number for each seed; the mean alone for one seed."""
    error = f" ± {values.std(ddof=1) / math.sqrt(values.size):.1f}" if values.size > 1 else ""
    return f"{values.mean():{sign}.1f}{error}"


def table(result: Result) -> str:
    """Words changed a request, by rounds; the last line is the difference to the first draft."""
    first = result.curves["first draft"]
    rounds = first.shape[1]
    cuts = [cut for cut in (0, 5, 20, 50, 100, 200, 500) if cut < rounds] + [rounds]
    parts = [(f"{a + 1}-{b}", slice(a, b)) for a, b in itertools.pairwise(cuts)] + [("all", slice(None))]
    rows = [["rounds", *result.curves]]
    rows += [[name, *(cell(curve[:, part].mean(axis=1)) for curve in result.curves.values())] for name, part in parts]
    apart = [cell((curve - first).mean(axis=1), "+") for curve in result.curves.values()]
    rows.append(["difference", "", *apart[1:]])
    return "\n".join("".join(f"{each:>17}" for each in row) for row in rows)


def plot(results: list[Result], path: str) -> None:
    """Means of ten rounds at a time, one panel a table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(results), figsize=(5 * len(results), 4), squeeze=False)
    for result, panel in zip(results, panels[0]):
        for name, curve in result.curves.items():
            step = min(10, curve.shape[1])
            whole = curve[:, : curve.shape[1] // step * step].reshape(curve.shape[0], -1, step).mean(axis=2)
            panel.plot((np.arange(whole.shape[1]) + 0.5) * step, whole.mean(axis=0), label=name)
        panel.set(title=result.title, xlabel="requests", ylabel="words changed", ylim=(0, None))
        panel.legend()
    figure.tight_layout()
    figure.savefig(path)


def check_number(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def main(words: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A support assistant that learns from the edits of its drafts.")
    parser.add_argument("--rounds", type=check_number, default=100, help="requests, for each seed")
    parser.add_argument("--seeds", type=check_number, default=5)
    parser.add_argument("--vectors", action="store_true", help="the caller's own vectors instead of readable features")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves (needs matplotlib)")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="a new folder for the loops, which stay there")
    given = parser.parse_args(words)
    with contextlib.ExitStack() as stack:
        if given.keep is not None:
            given.keep.mkdir(parents=True)
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results = []
        print(f"Words that an editor changes in the draft shown: mean ± standard error of {given.seeds} seeds.")
        print("first draft: as drafts come, nothing learned. best draft: chosen by who knows the edits beforehand.")
        for experiment in EXPERIMENTS:
            result = run(experiment, folder, given.rounds, given.seeds, given.vectors)
            results.append(result)
            print(f"\n{result.title}\n{table(result)}", flush=True)
            if result.told:
                print("\nWhat the edits taught, strongest first (weights in the model's own units):")
                for who, words_learned in result.told.items():
                    print(f"  {who + ':':11} {words_learned}")
        if given.plot:
            plot(results, given.plot)
            print(f"\nDrawn: {given.plot}")


if __name__ == "__main__":
    main()
