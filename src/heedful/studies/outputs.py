"""Reads answers of several models to the same prompts, for a blind comparison: a folder with one entry for each model.

An entry is a table (CSV, JSON lines, Parquet) called after the model, with a row for each prompt, or a folder called
after the model, with a text file for each prompt. An entry called `prompts`, a table or a folder, has the prompts'
texts, if those of the models have only their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

from heedful.core.paths import path_kind
from heedful.core.validation import describe
from heedful.data.files import cut_list
from heedful.data.messages import is_message, messages_in, says_more
from heedful.data.spreadsheet import text_of
from heedful.data.table import open_table
from heedful.studies.reading import LONGEST, LeftOut, read_text, readable

PROMPTS = "prompts"
"""The name of the entry with the texts of prompts."""
MODELS = 200
"""The most models of a comparison."""
MOST_PROMPTS = 10_000
"""The most prompts of a comparison."""
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
COLUMNS = {
    "id": ("id", "promptid", "questionid", "key", "number"),
    "prompt": ("prompt", "instruction", "question", "input", "messages"),
    "answer": ("answer", "output", "response", "completion", "generation", "text"),
}
"""Headings by which the columns of a table are found, apart from case, blanks and punctuation."""
NO_TEXT = "expected an answer of text, got one that calls tools or holds something else"
_NAME = 150
"""The most characters of the name of a model or the id of a prompt."""


class Outputs(NamedTuple):
    """Answers of models to prompts.

    - `prompts`: the text of each prompt by its id; "" if nobody says it.
    - `answers`: by model, the answer to each prompt by the prompt's id.
    - `left_out`: what could not be taken, and what is missing, in words.
    """

    prompts: dict[str, str]
    answers: dict[str, dict[str, str]]
    left_out: tuple[LeftOut, ...] = ()

    def models(self, prompt: str) -> list[str]:
        """Return the models that answered a prompt, in the order of `answers`."""
        return [model for model, answers in self.answers.items() if prompt in answers]

    @property
    def questions(self) -> int:
        """How many pairs of answers to the same prompt there are."""
        return sum(comb(len(self.models(prompt)), 2) for prompt in self.prompts)


def read_outputs(folder: Path) -> Outputs:
    """Read the answers of models in `folder`, an entry for each.

    Prompts that fewer than two models answered are left out. Raise FileNotFoundError if there is no such folder, and
    ValueError, with the place, for a table without an answer and a prompt or an id, the same prompt twice in one entry,
    two texts of one prompt, two entries of one name, and if there are not two models that answered the same prompt.
    """
    if not (kind := path_kind(folder)):
        raise FileNotFoundError(f"{folder}: no such folder")
    if kind != "folder":
        raise ValueError(f"{folder.name}: expected a folder with an entry for each model, got a file")
    prompts, answers, left_out = dict[str, str](), dict[str, dict[str, str]](), list[LeftOut]()
    first_place = dict[str, str]()  # where the text of a prompt was read
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
        is_folder = path_kind(path) == "folder"
        name = path.name if is_folder else path.name.removesuffix(".gz").rpartition(".")[0]
        if not is_folder and not path.name.removesuffix(".gz").lower().endswith(TABLES):
            left_out.append(LeftOut(path.name, f"expected a folder, or a table ({', '.join(TABLES)})"))
            continue
        if path.is_symlink() and folder.resolve() not in path.resolve().parents:
            left_out.append(LeftOut(path.name, "expected an entry of this folder, got a link to elsewhere"))
            continue
        _check_name(path.name, "model", name)
        if name in answers:
            raise ValueError(f"{path.name}: expected one entry for each model, got another one of {name!r}")
        answers_of_model = answers.setdefault(name, {})
        for where, id, prompt, answer in (
            _texts(path, left_out) if is_folder else _rows(path, name == PROMPTS, left_out)
        ):
            _check_name(where, "id", id)
            if id in answers_of_model:
                raise ValueError(f"{where}: id: expected each prompt once, got {describe(id)} again")
            answers_of_model[id] = ""
            if prompt and prompts.setdefault(id, prompt) != prompt:
                expected = f"the prompt of {describe(id)} as in {first_place[id]}"
                raise ValueError(f"{where}: prompt: expected {expected}, got {describe(prompt)}")
            first_place.setdefault(id, where)
            if name == PROMPTS:
                continue
            if not answer or len(answer) > LONGEST or "\0" in answer:
                left_out.append(LeftOut(where, f"expected 1 to {LONGEST:,} characters of answer, got {len(answer):,}"))
                del answers_of_model[id]
            else:
                answers_of_model[id] = answer
    answers.pop(PROMPTS, None)
    return _sifted(folder, prompts, answers, left_out)


def _sifted(
    folder: Path, prompts: dict[str, str], answers: dict[str, dict[str, str]], left_out: list[LeftOut]
) -> Outputs:
    """Return what can be compared: prompts that two models answered, with what is missing named."""
    if not 2 <= len(answers) <= MODELS:
        problems = "".join(f"; {part.name}: {part.why}" for part in left_out[:5])
        if not answers:
            problems += "; a model is a table, MODEL.csv or MODEL.jsonl, with id, prompt and answer, "
            problems += "or a folder of texts"
        raise ValueError(f"{folder.name}: expected 2 to {MODELS} models, got {len(answers)}{problems}")
    ids = list(dict.fromkeys(id for texts in answers.values() for id in texts))
    shared = {id: prompts.get(id, "") for id in ids if sum(id in texts for texts in answers.values()) >= 2}
    if not shared:
        raise ValueError(f"{folder.name}: expected a prompt that two models or more answered, got none")
    if len(shared) > MOST_PROMPTS:
        raise ValueError(f"{folder.name}: expected at most {MOST_PROMPTS:,} prompts, got {len(shared):,}")
    alone = [id for id in ids if id not in shared]
    if alone:
        left_out.append(LeftOut(_counted(alone, "prompt"), f"one model alone answered: {cut_list(alone, 3)}"))
    for model, texts in answers.items():
        missing = [id for id in shared if id not in texts]
        if missing:
            left_out.append(LeftOut(model, f"no answer to {_counted(missing, 'prompt')}: {cut_list(missing, 3)}"))
    sure = {model: {id: texts[id] for id in shared if id in texts} for model, texts in answers.items()}
    return Outputs(shared, {model: texts for model, texts in sure.items() if texts}, tuple(left_out))


def _counted(names: list[str], what: str) -> str:
    return f"{len(names):,} {what}{'' if len(names) == 1 else 's'}"


def _check_name(where: str, field: str, name: str) -> None:
    if not name.strip() or len(name) > _NAME or not name.isprintable():
        raise ValueError(f"{where}: {field}: expected 1 to {_NAME} printable characters, got {describe(name)}")


Found = tuple[str, str, str | None, str]
"""Where an answer was read, the id of its prompt, the text of the prompt (None if it is not there), and the answer."""


def _rows(path: Path, prompts: bool, left_out: list[LeftOut]) -> Iterator[Found]:
    """Yield the answers in a table, or its `prompts` alone; answers that are no text go to `left_out`."""
    placed = open_table(path, texts=True).located()
    header = list(dict.fromkeys(key for _, row in placed for key in row))
    named = {role: _column(header, role) for role in COLUMNS}
    needed = ["id", "prompt"] if prompts else ["answer"]
    for role in needed:
        if named[role] is None:
            raise ValueError(f"{path.name}: {role}: expected a column such as {role}, got {cut_list(header)}")
    if named["id"] is None and named["prompt"] is None:
        raise ValueError(f"{path.name}: prompt: expected a column such as prompt or id, got {cut_list(header)}")
    for where, row in placed:
        prompt = None if named["prompt"] is None else _text(where, named["prompt"], row.get(named["prompt"])).strip()
        id = prompt if named["id"] is None else _text(where, named["id"], row.get(named["id"])).strip()
        cell = "" if named["answer"] is None or prompts else _read(where, named["answer"], row.get(named["answer"]))
        if not id:
            raise ValueError(f"{where}: {named['id'] or named['prompt']}: expected a prompt, got nothing")
        if named["id"] is None:
            id = _short(id)
        if prompt is not None and len(prompt) > LONGEST:
            raise ValueError(f"{where}: prompt: expected at most {LONGEST:,} characters, got {len(prompt):,}")
        if isinstance(cell, list) and any(is_message(message) and says_more(message) for message in cell):
            left_out.append(LeftOut(where, NO_TEXT))
        else:
            yield where, id, prompt, _text(where, named["answer"], cell).strip()


def _short(prompt: str) -> str:
    """Return the id of a prompt that is named by its text: its beginning on one line, with a digest if it is longer."""
    from hashlib import sha256

    line = " ".join(prompt.split())
    line = "".join(mark if mark.isprintable() else "?" for mark in line)
    if line == prompt and len(line) <= 80:
        return line
    return f"{line[:60]}... {sha256(prompt.encode()).hexdigest()[:12]}"


def _column(header: list[str], role: str) -> str | None:
    names = {re.sub(r"[\W_]", "", name.casefold()): name for name in reversed(header)}
    return next((names[name] for name in COLUMNS[role] if name in names), None)


def _read(where: str, column: str | None, cell: Any) -> Any:
    """Return a cell as it is, or the list of messages that its text is."""
    if not isinstance(cell, str):
        return cell
    try:
        return messages_in(cell) or cell
    except ValueError as error:
        raise ValueError(f"{where}: {column}: {error}: write JSON lines") from None


def _text(where: str, column: str | None, cell: Any) -> str:
    """Return a cell as text. A list of messages becomes their contents, each after its role if there are several."""
    cell = _read(where, column, cell)
    if cell is None:
        return ""
    if isinstance(cell, str):
        return text_of(cell).replace("\r\n", "\n")
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return str(int(cell)) if float(cell).is_integer() else str(cell)
    if isinstance(cell, list) and cell and all(is_message(part) and isinstance(part["content"], str) for part in cell):
        alone = len(cell) == 1
        return "\n\n".join(part["content"] if alone else f"{part['role']}: {part['content']}" for part in cell)
    raise ValueError(f"{where}: {column}: expected a text, or a list of messages, got {describe(cell)}")


def _texts(folder: Path, left_out: list[LeftOut]) -> Iterator[Found]:
    """Yield the answers, or the prompts, in the text files of a folder; files that are no texts go to `left_out`."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path, text in readable(paths, read_text, left_out, f"{folder.name}/"):
        prompt, answer = (text, "") if folder.name == PROMPTS else (None, text)
        yield f"{folder.name}/{path.name}", path.stem, prompt, answer


def same_prompts(before: Outputs, now: Outputs) -> str:
    """Return, in words, what of `before` reads otherwise in `now`: a prompt or an answer; "" if nothing does."""
    for id, text in before.prompts.items():
        if text and now.prompts.get(id, text) not in (text, ""):
            return f"the prompt {describe(id)} has another text"
    for model, texts in before.answers.items():
        other = now.answers.get(model, {})
        changed = list(islice((id for id in texts if other.get(id, texts[id]) != texts[id]), 1))
        if changed:
            return f"the answer of {describe(model)} to {describe(changed[0])} has another text"
    return ""


def merge_outputs(before: Outputs, now: Outputs) -> Outputs:
    """Return both together: what is new in `now` comes after what is in `before`, and nothing of that is lost."""
    answers = {model: {**before.answers.get(model, {}), **texts} for model, texts in now.answers.items()}
    answers = {**{model: answers.get(model, texts) for model, texts in before.answers.items()}, **answers}
    prompts = {**now.prompts, **{id: text or now.prompts.get(id, "") for id, text in before.prompts.items()}}
    order = dict.fromkeys([*before.prompts, *now.prompts])
    return Outputs({id: prompts[id] for id in order}, answers, now.left_out)
