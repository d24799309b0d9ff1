"""A state in a file: safetensors for the arrays, a JSON manifest in its header; never a pickle."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from heedful.fold import coerced, generators

SCHEMA = 1


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The arrays and scalars of a state, each with its path of field names."""
    if isinstance(value, tuple):
        for i, part in enumerate(value):
            field = value._fields[i] if hasattr(value, "_fields") else str(i)
            yield from _leaves(part, f"{name}.{field}" if name else field)
    else:
        yield name, value


def _like(template: Any, name: str, arrays: dict[str, Any]) -> Any:
    """The value of the template's structure and types with the contents of `arrays`."""
    if isinstance(template, tuple):
        fields = getattr(template, "_fields", [str(i) for i in range(len(template))])
        parts = [_like(part, f"{name}.{field}" if name else field, arrays) for field, part in zip(fields, template)]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    found = arrays[name]
    wanted = np.asarray(template)
    if found.dtype != wanted.dtype or found.ndim != wanted.ndim:
        raise ValueError(f"{name}: wanted {wanted.dtype} with {wanted.ndim} axes, got {found.dtype} {found.shape}")
    return np.array(found) if isinstance(template, np.ndarray) else type(template)(found.item())


def _manifest(learner: Any) -> str:
    kind = type(learner)
    fields = {name: np.asarray(value).tolist() for name, value in _leaves(coerced(learner), "")}
    return json.dumps({"schema": SCHEMA, "learner": f"{kind.__module__}.{kind.__qualname__}", "fields": fields})


def save_state(path: str | os.PathLike[str], learner: Any, state: Any) -> None:
    """Write `state` of `learner` to `path`: all of it, or (when interrupted) nothing."""
    from safetensors.numpy import save

    arrays = {name: np.array(value, order="C") for name, value in _leaves(state, "")}
    content = save(arrays, metadata={"heedful": _manifest(learner)})
    target = Path(path)
    handle, aside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, target)
    except BaseException:
        os.unlink(aside)
        raise


def load_state(path: str | os.PathLike[str], learner: Any) -> Any:
    """The state of `learner` in the file `path`.

    ValueError where the file is not a snapshot, is damaged, or is another learner's or other hyperparameters'.
    """
    from safetensors import SafetensorError, safe_open

    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"{name}: no such snapshot")
    try:
        with safe_open(name, framework="numpy") as file:
            manifest = (file.metadata() or {}).get("heedful", "null")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{name}: wanted a snapshot, got a file that is damaged or of another kind: {error}") from None
    if json.loads(manifest) != json.loads(_manifest(learner)):
        raise ValueError(f"{name}: wanted a state of {_manifest(learner)}, got one of {manifest}")
    template = coerced(learner).init(generators(0)[2])
    missing = {leaf for leaf, _ in _leaves(template, "")} ^ set(arrays)
    if missing:
        raise ValueError(f"{name}: wanted the fields of the learner's state, got a difference in {sorted(missing)}")
    return _like(template, "", arrays)
