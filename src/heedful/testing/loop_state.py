"""The state of a loop's model as bytes, to compare two models bit for bit."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from heedful.core.serialization import arrays_of
from heedful.loop import Loop
from heedful.loop.replay import replay


def bits(loop: Loop) -> dict[str, bytes]:
    """Return the state of the loop's model, people included: the bytes of each array and number, by name."""
    with loop.projection.turn:
        return bits_of(loop.projection.model)


def bits_from_scratch(loop: Loop) -> dict[str, bytes]:
    """Return what `bits` would be if the log were folded from its first event, without a snapshot."""
    projection = loop.projection
    with projection.turn:
        return bits_of(replay(projection, projection.log.last()[0], projection.failed).model)


def bits_of(model: Any) -> dict[str, bytes]:
    """Return the state of a model as bytes, by name."""
    state = {name: _bytes(value) for name, value in arrays_of(model.shared, "shared").items()}
    for name, person in model.people.items():
        state |= {f"{name}.{leaf}": _bytes(value) for leaf, value in arrays_of(person.state, "state").items()}
        state[f"{name}.lessons"] = str(person.lessons).encode()
    return state


def _bytes(value: npt.NDArray[Any]) -> bytes:
    return f"{value.dtype} {value.shape} ".encode() + value.tobytes()
