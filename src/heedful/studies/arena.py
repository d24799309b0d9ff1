"""An arena: people compare answers of two models to the same prompt, without knowing whose they are.

It is a study whose items are models. Which prompt a question is about stands in the context of its decision; the texts
are in the file outputs.json of the study's folder, to which models, prompts and answers can be added. A person is asked
about all prompts, in an order of their own, before one comes again; the loop's learner chooses the two models.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.features import encode_names
from heedful.loop import Loop
from heedful.loop.snapshots import read_own
from heedful.storage import Place
from heedful.studies.answers import decision_id, prompt_of, study_answers
from heedful.studies.outputs import Outputs, merge_outputs, same_prompts
from heedful.studies.reading import Material
from heedful.studies.study import Study, create_study, write_own

if TYPE_CHECKING:
    from heedful.boards.leaderboard import Leaderboard

FILE = "outputs.json"
LARGEST = 2**30
"""The most bytes of outputs.json."""
WINNER = {"first": "model_a", "second": "model_b", "equal": "tie", "both_bad": "both_bad", "cannot_judge": "unsure"}
"""How battles call each answer of a study."""
BATTLES = ("model_a", "model_b", "winner", "judge", "prompt", "length_a", "length_b")


class Battle(NamedTuple):
    """One answer in an arena: model_a was on the left, `winner` is one of WINNER's values, `judge` the person, `prompt`
    the prompt's id, and lengths are those of the answers in characters.
    """

    model_a: str
    model_b: str
    winner: str
    judge: str
    prompt: str
    length_a: int
    length_b: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of outputs.json."""

    prompts: dict[str, str]
    answers: dict[str, dict[str, str]]


def create_arena(path: Path, outputs: Outputs, study: Study, goal: Any) -> Loop:
    """Create an arena of these outputs in the new folder `path` and return its loop, open.

    `study` and `goal` are as in `create_study`, and so are the errors."""
    rows = [{"name": model} for model in outputs.answers]
    material = Material("answers", rows, encode_names(rows, identifier="name"), {}, outputs.left_out)
    prompts = encode_names([{"prompt": id} for id in outputs.prompts], identifier="prompt")
    return create_study(path, material, study, goal, context=prompts, files={FILE: _encoded(outputs)})


def extend_arena(loop: Loop, outputs: Outputs) -> tuple[int, list[str]]:
    """Add models, prompts and answers that are new to the arena `loop`; return (how many models are new, the names of
    models that are no longer there).

    Raise ValueError if a prompt or an answer has another text than before: votes were about that one."""
    if not isinstance(loop.path, Path):
        raise ValueError("SOURCE: expected the study's folder: a loop in a database has no outputs")
    before = outputs_of(loop.path)
    if before is None:
        raise ValueError("SOURCE: expected what the study began with, got answers of models")
    if difference := same_prompts(before, outputs):
        expected = f"the texts that the study began with, but {difference}"
        raise ValueError(f"SOURCE: expected {expected}; --name begins another")
    now = merge_outputs(before, outputs)
    if now._replace(left_out=()) != before:
        write_own(loop.path / FILE, _encoded(now))
    new = [model for model in outputs.answers if model not in loop.items]
    if new:
        loop.put_items([{"name": model} for model in new])
    return len(new), [model for model in loop.items if model not in outputs.answers]


def _encoded(outputs: Outputs) -> bytes:
    content = msgspec.json.format(msgspec.json.encode(_File(outputs.prompts, outputs.answers)), indent=1)
    if len(content) > LARGEST:
        raise ValueError(
            f"SOURCE: expected at most {LARGEST // 2**20:,} MiB of answers, got {len(content) / 2**20:,.0f}"
        )
    return content


def outputs_of(path: Place) -> Outputs | None:
    """Return the prompts and answers of the arena in the folder `path`; None if it is a study of another kind.

    Raise ValueError if the file is damaged."""
    if not isinstance(path, Path):
        return None
    try:
        about = (path / FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _read(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, changed: int, size: int) -> Outputs:
    """Return what the file holds. `changed` and `size` tell its versions apart."""
    try:
        file = decoder(_File).decode(read_own(path, FILE, most=LARGEST))
    except msgspec.MsgspecError as error:
        raise ValueError(f"{FILE}: expected prompts and answers as they were written, got others: {error}") from None
    return Outputs(file.prompts, file.answers)


# ---------------------------------------------------------------------------- questions


def request_of(loop: Loop, outputs: Outputs, person: str, number: int) -> dict[str, Any]:
    """Return what is asked of the loop for question `number` of a person, as the fields of `Loop.decide`.

    A question that was asked before has its id alone. Otherwise the prompt is the next in the person's order, and the
    candidates are the models on offer that answered it; after all prompts have come, two whose answers to it the person
    has not compared."""
    id = decision_id(person, number)
    if loop.projection.find_decision(id) is not None:
        return {"id": id, "person": person}
    offered = set(loop.items)
    models = {prompt: [model for model in outputs.models(prompt) if model in offered] for prompt in outputs.prompts}
    prompts = sorted((prompt for prompt in models if len(models[prompt]) > 1), key=lambda prompt: _key(person, prompt))
    if not prompts:
        raise ValueError("candidates: expected two models on offer that answered the same prompt, got none")
    for step in range(len(prompts)):
        prompt = prompts[(number + step) % len(prompts)]
        pairs = list(combinations(models[prompt], 2))
        asked_pairs = _asked_pairs(loop, person, number, prompt) if number >= len(prompts) else set()
        left = [pair for pair in pairs if frozenset(pair) not in asked_pairs]
        if left:
            break
    else:
        left = pairs  # all was compared: from the beginning
    chosen = (
        models[prompt] if len(left) == len(pairs) else list(left[int(_key(person, f"{number}")[:8], 16) % len(left)])
    )
    return {"id": id, "person": person, "candidates": chosen, "context": {"prompt": prompt}, "repeats": True}


def _key(person: str, what: str) -> str:
    """Return a key by which prompts are in a random order that stays the same for a person."""
    return blake2b(f"{person}\0{what}".encode(), digest_size=16).hexdigest()


def _asked_pairs(loop: Loop, person: str, number: int, prompt: str) -> set[frozenset[str]]:
    """Return the pairs of models that a person compared on a prompt, in their questions before `number`."""
    pairs = set()
    for earlier in range(number):
        decision = loop.projection.find_decision(decision_id(person, earlier))
        if decision is not None and prompt_of(decision) == prompt:
            pairs.add(frozenset(decision.names[j] for j in decision.record.shown))
    return pairs


# ---------------------------------------------------------------------------- answers


def battles(loop: Loop, outputs: Outputs, people: Collection[str] | None = None) -> Iterator[Battle]:
    """Yield the answers given in an arena, in the order of its log, without those that were taken back.

    If `people` is given, only their answers are yielded."""
    for answer in study_answers(loop):
        if len(answer.shown) == 2 and (people is None or answer.person in people):
            lengths = [len(outputs.answers.get(model, {}).get(answer.prompt, "")) for model in answer.shown]
            yield Battle(*answer.shown, WINNER[answer.answer], answer.person, answer.prompt, *lengths)


def leaderboard_of(loop: Loop, people: Collection[str] | None = None) -> Leaderboard | None:
    """Return the leaderboard of an arena, from the answers of `people` (None: of all); None if nobody has answered.

    Raise ValueError if the study in the loop's folder is none of models."""
    outputs = outputs_of(loop.path)
    if outputs is None:
        raise ValueError(f"{loop.path.name}: expected an arena of models, got another study")
    votes = tuple(battles(loop, outputs, people))
    if all(battle.winner == "unsure" for battle in votes):
        return None
    return _leaderboard(votes)._replace(file=loop.path.name.removesuffix(".heedful"))


@lru_cache(maxsize=8)
def _leaderboard(votes: tuple[Battle, ...]) -> Leaderboard:
    """Return the leaderboard of votes. Pages of a study ask for it every few seconds, mostly of the same votes."""
    from heedful.boards.leaderboard import leaderboard

    return leaderboard([battle._asdict() for battle in votes])
