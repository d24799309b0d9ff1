"""Make a learner or a simulated person from text: look up its name, parse its parameters.

A learner is `perceptron`, `second-order:gamma=0.1,epsilon=1`, or one of your own: `FILE.py:Class`, `module:Class`,
`FILE.py:Class:rate=0.1`; where the class is a rule of online convex optimisation, `OnlineConvex` makes it a learner. A
person is `strict:alpha=0.5`, `noisy:depth=10`, `better`, `best`, `position-biased:eta=1`, `cascade:stop=0.7` or
`expected:alpha=0.5`. There is no list: the names of learners are those of the classes in the folder heedful/learners.

The file is long because a learner may also be in a file of the user's own, which is imported here, and elsewhere too.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from heedful import learners
from heedful.core.paths import path_kind
from heedful.learners.coactive.online_convex import OnlineConvex, is_rule
from heedful.spaces.ordinal import Ranks

METHODS = ("init", "propose", "update")

_OWN = re.compile(r"(?P<place>.+?\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?::(?P<assignments>.*))?", re.DOTALL)
_DOCSTRING = re.compile(r"(?P<title>[^:]+): (?P<source>.+?)\.? Interaction: (?P<interaction>[\w-]+)\.?", re.DOTALL)
_OWN_MODULE = "heedful_own_"
"""how the name of the module of a user's own file begins"""
_FROM_DATA = ("n_features", "space")


class UnknownLearner(ValueError):
    """There is no learner of this `name`."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        """Make the error for the `name`, where one of `names` was expected."""
        names = list(names)
        expected = f"expected {', '.join([*names, 'FILE.py:Class'])} or module:Class"
        super().__init__(f"learner: {expected}, got {name!r}{did_you_mean(name, names)}")
        self.name = name


class LearnerSummary(NamedTuple):
    """The `title` of a learner, its `source` (a paper, or "ours") and its `interaction`, the kind of feedback that it
    takes (coactive, ordinal, rating or pairwise).

    They are from the first paragraph of its docstring, `Title: source. Interaction: X.`; what is missing there is
    empty.
    """

    title: str
    source: str
    interaction: str


# ---------------------------------------------------------------------------- finding learners


@cache
def short_name(name: str) -> str:
    """Return the name of the learner whose class is called `name`: in kebab case, without the words preference and
    perceptron.

    SecondOrderPerceptron is second-order, NMFBandit nmf-bandit, PRank prank; PreferencePerceptron, of which nothing is
    left, is perceptron."""
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z])", "-", name).lower()
    return "-".join(word for word in kebab.split("-") if word not in ("preference", "perceptron")) or "perceptron"


def why_not_learner(cls: object) -> str:
    """Return why `cls` is not the class of a learner, in words that continue a sentence after "it" ("has no ..."); an
    empty text if it is one.
    """
    if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return "is not a NamedTuple"
    missing = [method for method in METHODS if not callable(getattr(cls, method, None))]
    return f"has no {' and no '.join(missing)}" if missing else ""


def find_learners() -> dict[str, type]:
    """Return the class of every learner in the folder heedful/learners, keyed and sorted by name."""
    return dict(_packaged())


@cache
def _packaged() -> dict[str, type]:
    classes = [cls for module in learners.families() for cls in _learners_of(module)]
    return dict(sorted((short_name(cls.__name__), cls) for cls in classes))


def is_packaged(name: str) -> bool:
    """Return True if `name` means a learner of this package."""
    return _find_packaged(name) is not None


def is_own(spec: str) -> bool:
    """Return True if `spec` names a learner of the user's own, FILE.py:Class or module:Class, whose code would have to
    be run to make it."""
    return not is_packaged(spec.strip().partition(":")[0]) and _OWN.fullmatch(spec.strip()) is not None


@cache
def summarise(cls: type) -> LearnerSummary:
    """Return the title, the source and the kind of feedback (interaction) of the learner class `cls`, read from the
    first paragraph of its docstring.
    """
    paragraph = " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
    if match := _DOCSTRING.fullmatch(paragraph):
        return LearnerSummary(**match.groupdict())
    kind = re.search(r"\bInteraction: (\w+)", paragraph)
    return LearnerSummary("", "", kind[1] if kind else "")


def _find_packaged(name: str) -> type | None:
    """Return the learner class of the package with the `name`; None if there is none. Only modules that define such a
    name are imported."""
    classes = (getattr(learners, class_name) for class_name in _defined().get(name, ()))
    return next((cls for cls in classes if not why_not_learner(cls)), None)


@cache
def _defined() -> dict[str, list[str]]:
    """Return the classes of modules of learners, by what learners of that class are called: each loop that is opened
    asks."""
    found: dict[str, list[str]] = {}
    for class_name in filter(lambda each: each[0].isupper(), learners.modules_by_name()):  # functions are no learners
        found.setdefault(short_name(class_name), []).append(class_name)
    return found


def _learners_of(module: ModuleType) -> list[type]:
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and not why_not_learner(value)
    ]


# ---------------------------------------------------------------------------- from a name to a class


def learner_class(name: str) -> type:
    """Return the class of the learner that `name` means: a name of the package, FILE.py:Class or module:Class.
    Parameters after the name are ignored. For a rule of online convex optimisation this is `OnlineConvex`.

    Raise UnknownLearner for an unknown name, with the nearest known one, and ValueError if there is no such class or it
    is not a learner; raise FileNotFoundError if there is no such file.
    """
    cls = cast(type, _resolve(name)[1])
    return OnlineConvex if is_rule(cls) else cls


def _resolve(spec: str) -> tuple[str, Any, str]:
    """Split the text `spec` of a learner: return (its name, its class, the text of its parameters)."""
    name, _, assignments = spec.strip().partition(":")
    if (cls := _find_packaged(name)) is not None:
        return name, cls, assignments
    classes = find_learners()
    match = _OWN.fullmatch(spec.strip())
    if match:
        head = f"{match['place']}:{match['name']}"
        module = (
            _import_file(match["place"]) if match["place"].endswith(".py") else _import_named(match["place"], classes)
        )
        return head, _class_of(module, match["name"], match["place"]), match["assignments"] or ""
    if name.endswith(".py") or spec.strip().endswith(".py"):
        raise ValueError(f"learner: expected {spec}:Class, the learner's class after the file, got {spec!r}")
    raise UnknownLearner(name, classes)


def _class_of(module: ModuleType, name: str, place: str) -> type:
    names = [cls.__name__ for cls in _learners_of(module)]
    if not hasattr(module, name):
        has = f"it has {', '.join(names)}" if names else "it has no learner"
        raise ValueError(f"{place}: expected a class {name}, got none; {has}{did_you_mean(name, names)}")
    cls = getattr(module, name)
    if (reason := why_not_learner(cls)) and not is_rule(cls):
        raise ValueError(f"{place}: {name}: expected a NamedTuple with init, propose and update, but it {reason}")
    return cls  # type: ignore[no-any-return]


def _import_file(place: str) -> ModuleType:
    """Return the module in the file `place`, imported under a name made from its path, so that compiled code finds it
    again."""
    path = Path(place).expanduser().resolve()
    if path_kind(path) != "file":
        raise FileNotFoundError(f"{place}: no such file; expected FILE.py:Class")
    name = f"{_OWN_MODULE}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{_digest(path)}"
    if name in sys.modules:
        return sys.modules[name]
    _importable(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{place}: expected a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(f"{place}: expected a file that can be imported, got {_in_words(error)}") from error
    return module


def _import_named(name: str, names: Iterable[str]) -> ModuleType:
    _importable(os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        hint = did_you_mean(name, names)
        raise ValueError(f"{name}: expected a module that can be imported, got {_in_words(error)}{hint}") from error


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _importable(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'nothing more'}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean X?" with the one of `names` closest to `name`, or an empty text if none is close."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


# ---------------------------------------------------------------------------- to other processes


class Portable:
    """A learner, or a mapping of learners, that is pickled so that another process can load it also if its class is in
    a file of the user's own (FILE.py:Class): that process imports the file.

    What is unpickled is the learner itself; `unwrap` gives it in either case.
    """

    def __init__(self, value: Any) -> None:
        """Wrap a learner, or a mapping with learners as values."""
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (_pack(self.value),)


def class_name(cls: type) -> str:
    """Return how the class of a learner is named: MODULE.Class, or FILE.py:Class in a file of the user's own."""
    if cls.__module__.startswith(_OWN_MODULE):
        return f"{Path(str(sys.modules[cls.__module__].__file__)).name}:{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def unwrap(value: object) -> Any:
    """Return the learner or mapping in a `Portable`, and any other value as it is."""
    return value.value if isinstance(value, Portable) else value


def _pack(value: object) -> tuple[str, Any, Any]:
    """Return the pickled form of a learner, of a mapping of learners, or of any other value: (how, class, parts).

    `how` says how to rebuild it. "mapping": parts are (key, packed value). "own": the class is FILE:NAME, a file of the
    user's own, and parts are the packed fields. "tuple": the same with the class itself. "value": parts is the value as
    it is.
    """
    if isinstance(value, Mapping):
        return "mapping", "", [(key, _pack(part)) for key, part in value.items()]
    module = sys.modules.get(type(value).__module__)
    if isinstance(value, tuple) and module is not None and module.__name__.startswith(_OWN_MODULE):
        return "own", f"{module.__file__}:{type(value).__name__}", [_pack(part) for part in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "tuple", type(value), [_pack(part) for part in value]
    return "value", "", value


def _unpack(packed: tuple[str, Any, Any]) -> Any:
    how, cls, parts = packed
    if how == "value":
        return parts
    if how == "mapping":
        return {key: _unpack(part) for key, part in parts}
    if how == "own":
        place, _, name = cls.rpartition(":")
        cls = getattr(_import_file(place), name)
    return cls(*[_unpack(part) for part in parts])


# ---------------------------------------------------------------------------- from a class to a learner


def make_learner(spec: str, *, n_features: int, space: Any, **defaults: object) -> Any:
    """Return the learner of the text `spec`, `NAME` or `NAME:FIELD=VALUE,FIELD=VALUE`.

    Its fields n_features and space come from the arguments, and cannot be set by the text; n_ranks comes from a `space`
    of grades where the text does not set it. `defaults` fill fields of these names that have no default of their own.
    Raise ValueError, naming the field, for an unknown field, a value of another type, and a field without a value;
    raise the errors of `learner_class` for the name.
    """
    name, cls, assignments = _resolve(spec)
    if is_rule(cls):
        return OnlineConvex(n_features, space, _build(name, cls, _parse(name, assignments), {}))
    filled = {field: value for field, value in defaults.items() if field not in cls._field_defaults}
    filled |= {"n_features": n_features, "space": space}
    if isinstance(space, Ranks):
        filled["n_ranks"] = space.k
    return _build(name, cls, _parse(name, assignments), filled)


def make_user(spec: str) -> Any:
    """Return the simulated person of the text `spec`: strict:alpha=A (0 < A <= 1), noisy:depth=D, better:exact=BOOL,
    best, position-biased:eta=E, cascade:stop=P, expected:alpha=A,strict=A.

    Raise ValueError for an unknown name, or a parameter that is not valid.
    """
    from heedful.worlds.users import USERS

    name, _, assignments = spec.strip().partition(":")
    if name not in USERS:
        raise ValueError(f"user: expected {', '.join(USERS)}, got {name!r}{did_you_mean(name, USERS)}")
    user = _build(name, USERS[name], _parse(name, assignments), {})
    try:
        user.check()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return user


def _parse(name: str, assignments: str) -> dict[str, str]:
    """Parse `a=1,b=2` into a mapping from fields to texts; raise ValueError, beginning with `name`, if it has another
    form or a field twice."""
    values: dict[str, str] = {}
    for part in assignments.split(",") if assignments.strip() else []:
        field, equals, value = (piece.strip() for piece in part.partition("="))
        if not (field and equals and value):
            raise ValueError(f"{name}: parameters: expected FIELD=VALUE, separated by commas, got {part!r}")
        if field in values:
            raise ValueError(f"{name}: {field}: expected one value, got two")
        values[field] = value
    return values


def parameters(spec: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the values that the text `spec`, `NAME:FIELD=VALUE,...`, gives to its fields, by field. `fields` has the
    known fields with the types to convert to.

    Raise ValueError for an unknown field or a value of another type.
    """
    name, _, assignments = spec.strip().partition(":")
    texts = _parse(name, assignments)
    for field in texts:
        if field not in fields:
            raise ValueError(f"{name}: expected {', '.join(fields)}, got {field!r}{did_you_mean(field, fields)}")
    return {field: _convert(f"{name}: {field}", text, fields[field]) for field, text in texts.items()}


def _build(name: str, cls: Any, texts: Mapping[str, str], filled: Mapping[str, Any]) -> Any:
    fields = [field for field in cls._fields if field not in _FROM_DATA]
    for field in texts:
        if field in _FROM_DATA and field in cls._fields:
            raise ValueError(f"{name}: {field}: it comes from the data and cannot be given")
        if field not in fields:
            expected = f"expected {', '.join(fields)}" if fields else "it has no parameters"
            raise ValueError(f"{name}: {expected}, got {field!r}{did_you_mean(field, fields)}")
    hints = typing.get_type_hints(cls)
    values = {field: value for field, value in filled.items() if field in cls._fields}
    values |= {field: _convert(f"{name}: {field}", text, hints.get(field)) for field, text in texts.items()}
    missing = [field for field in cls._fields if field not in values and field not in cls._field_defaults]
    if missing:
        raise ValueError(f"{name}: {', '.join(missing)}: expected a value, got none; write {name}:{missing[0]}=VALUE")
    return cls(**values)


def _convert(where: str, text: str, kind: Any) -> Any:
    if kind is str:
        return text
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if kind in (int, float):
            return kind(text)
    except (KeyError, ValueError):
        expected = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ValueError(f"{where}: expected {expected}, got {text!r}") from None
    raise ValueError(f"{where}: expected a field of int, float, bool or str, which text can give; it is {kind}")
