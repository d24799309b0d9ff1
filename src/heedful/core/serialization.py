"""Save a learner's state to a file and load it: safetensors for the arrays, JSON in its header; never a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.fold import F, Learner, S, T, X, Y, coerce, generators
from heedful.core.paths import path_kind, replacing

SCHEMA = 1


def physical_memory() -> int:
    """Return the size of this machine's memory in bytes, or 2^62 where the system does not tell it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**62


def _check_there(file: Path) -> None:
    """Raise ValueError if reading `file` would use up memory: its space on the disk is far below its size, or it is
    larger than a quarter of memory."""
    status = file.stat()
    on_disk = 512 * getattr(status, "st_blocks", status.st_size)
    if status.st_size > 4 * on_disk + 2**20:
        raise ValueError(f"{file}: expected a snapshot that is all there, got {on_disk} of {status.st_size} bytes")
    if status.st_size > physical_memory() // 4:  # it is there twice while it is read
        raise ValueError(f"{file}: expected a snapshot that fits into memory, got {status.st_size} bytes")


def _leaves(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Iterate over the arrays and scalars in nested tuples: (path, value). A path is field names joined by dots
    (indices in plain tuples), below `name`."""
    if isinstance(value, tuple):
        for i, part in enumerate(value):
            field = value._fields[i] if hasattr(value, "_fields") else str(i)
            yield from _leaves(part, f"{name}.{field}" if name else field)
    else:
        yield name, value


def _like(template: Any, name: str, arrays: dict[str, npt.NDArray[Any]], grows: bool = False) -> Any:
    """Return a value with the structure and types of `template`, filled from `arrays`; raise ValueError where a dtype
    or a shape (where it `grows`, the number of axes) does not fit."""
    if isinstance(template, tuple):
        fields = getattr(template, "_fields", [str(i) for i in range(len(template))])
        longer = grows or bool(getattr(template, "grows", False))
        parts = [
            _like(part, f"{name}.{field}" if name else field, arrays, longer) for field, part in zip(fields, template)
        ]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    array = arrays[name]
    expected = np.asarray(template)
    fits = array.ndim == expected.ndim if grows else array.shape == expected.shape
    if array.dtype != expected.dtype or not fits:
        raise ValueError(f"{name}: expected {expected.dtype} {expected.shape}, got {array.dtype} {array.shape}")
    return np.array(array) if isinstance(template, np.ndarray) else type(template)(array.item())


def _fields(learner: object) -> dict[str, object]:
    """Return the name of the learner's class and its hyperparameters, as they are written next to a state in its
    file."""
    kind = type(learner)
    return {
        "learner": _plain_name(f"{kind.__module__}.{kind.__qualname__}"),
        "fields": {name: np.asarray(value).tolist() for name, value in _leaves(coerce(learner), "")},
    }


def _plain_name(name: str) -> str:
    """Return the dotted name of a learner; for those of this package without the module, which may change."""
    package = __name__.partition(".")[0]
    return re.sub(rf"^{package}\..*\.(?=\w+$)", f"{package}.", name)


def _digest(arrays: dict[str, npt.NDArray[Any]], manifest: dict[str, object]) -> str:
    """Return the SHA-256 (hex) of `arrays` (names, dtypes, shapes, bytes) and `manifest`, which detects every changed
    bit."""
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode())
    for name, value in sorted(arrays.items()):
        digest.update(f"{name} {value.dtype} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).data)  # not a copy of its bytes: an array may be most of the memory
    return digest.hexdigest()


def pack_arrays(arrays: dict[str, npt.NDArray[Any]], about: dict[str, Any]) -> bytes:
    """Return `arrays`, by name, as the content of a safetensors file, with a checksum and the JSON-able values `about`
    them in its header."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    manifest = {"schema": SCHEMA, **about}
    content: bytes = save(arrays, metadata={"heedful": json.dumps(manifest | {"sha256": _digest(arrays, manifest)})})
    return content


def unpack_arrays(content: bytes, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return (the arrays by name, the JSON values about them) from `content`, as `pack_arrays` made it.

    Raise ValueError, beginning with `name`, if it is something else, is damaged, or has another schema version."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        length = int.from_bytes(content[:8], "little")
        manifest = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["heedful"])
        return _check_digest(arrays, manifest, name)
    except (SafetensorError, KeyError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"{name}: expected a snapshot, got one that is damaged or of another kind: {error}") from None


def _check_digest(
    arrays: dict[str, npt.NDArray[Any]], manifest: dict[str, Any], name: object
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return `arrays` and the rest of `manifest`; raise ValueError or KeyError if its checksum or its schema
    is wrong."""
    digest, schema = manifest.pop("sha256"), manifest["schema"]
    if digest != _digest(arrays, manifest):
        raise ValueError(f"{name}: expected a whole snapshot, got one whose content was changed since: it is damaged")
    if schema != SCHEMA:
        raise ValueError(f"{name}: expected a snapshot of schema {SCHEMA}, got {schema}")
    return arrays, manifest


def write_arrays(path: str | os.PathLike[str], arrays: dict[str, npt.NDArray[Any]], about: dict[str, Any]) -> None:
    """Write `arrays`, by name, to the file `path`, with a checksum and the JSON-able values `about` them in its header.

    The file is replaced atomically and flushed to disk. Raise OSError if it cannot be written (IsADirectoryError for a
    folder).
    """
    content = pack_arrays(arrays, about)
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: expected a file to write, got a folder")
    with replacing(target) as file:
        file.write(content)


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return (the arrays by name, the JSON values about them in the header) from the file `path`, as `write_arrays`
    wrote it.

    Raise FileNotFoundError if there is no such file; raise ValueError if it is of another kind, is damaged, has another
    schema version, or is too large for memory.
    """
    from safetensors import SafetensorError, safe_open

    file = Path(path)
    kind = path_kind(file)
    if kind != "file":
        got = "a folder" if kind == "folder" else "no such file"
        raise FileNotFoundError(f"{file}: expected a snapshot, got {got}")
    _check_there(file)
    try:
        with safe_open(file, framework="numpy") as opened:
            manifest = json.loads((opened.metadata() or {})["heedful"])
            arrays = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
        manifest["sha256"], manifest["schema"]
    except (SafetensorError, KeyError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{file}: expected a snapshot, got a file that is damaged or of another kind: {error}"
        ) from None
    return _check_digest(arrays, manifest, file)


def arrays_of(state: object, name: str = "") -> dict[str, npt.NDArray[Any]]:
    """Return copies of the arrays and scalars of `state`, nested named tuples, as arrays keyed by path: field names
    joined by dots, below `name` where it is given."""
    return {leaf: np.array(value) for leaf, value in _leaves(state, name)}


def stacked(states: Sequence[Any], name: str = "") -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of n `states` of one type, as `arrays_of` returns those of one, stacked (n, ...); none of no
    state."""
    if not states or not isinstance(states[0], tuple):
        return {name: np.array(states)} if states else {}
    found = dict[str, npt.NDArray[Any]]()
    for i, field in enumerate(getattr(states[0], "_fields", range(len(states[0])))):
        found |= stacked([state[i] for state in states], f"{name}.{field}" if name else str(field))
    return found


def state_like(template: T, arrays: dict[str, npt.NDArray[Any]], name: str = "") -> T:
    """Return a state with the structure and types of `template`, filled from `arrays`, which `arrays_of(state, name)`
    made.

    Raise ValueError if the paths, dtypes or shapes do not fit; where a tuple of the template declares `grows`, arrays
    may have another length.
    """
    other = {leaf for leaf, _ in _leaves(template, name)} ^ set(arrays)
    if other:
        raise ValueError(f"expected the fields of the learner's state, got a difference in {sorted(other)}")
    state: T = _like(template, name, arrays)
    return state


def save_state(path: str | os.PathLike[str], learner: Learner[X, Y, F, S], state: S) -> None:
    """Write `state` of `learner` to the file `path`, atomically, with the learner's name and hyperparameters.

    Raise ValueError if the state does not belong to the learner; raise OSError if the file cannot be written.
    """
    template = coerce(learner).init(generators(0)[2])
    if type(state) is not type(template):
        raise ValueError(f"state: expected a {type(template).__name__} of {learner!r}, got a {type(state).__name__}")
    arrays = arrays_of(state)
    try:
        state_like(template, arrays)
    except ValueError as error:
        raise ValueError(f"state: {error}") from None
    write_arrays(path, arrays, _fields(learner))


def load_state(path: str | os.PathLike[str], learner: Learner[X, Y, F, S]) -> S:
    """Return the state of `learner` from the file `path`, as `save_state` wrote it.

    Raise FileNotFoundError if there is no such file; raise ValueError if it is of another kind, is damaged, or belongs
    to another learner or to other hyperparameters.
    """
    arrays, manifest = read_arrays(path)
    expected = {"schema": SCHEMA, **_fields(learner)}
    if manifest != expected:
        raise ValueError(f"{path}: expected a state of {expected}, got one of {manifest}")
    try:
        return state_like(coerce(learner).init(generators(0)[2]), arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
