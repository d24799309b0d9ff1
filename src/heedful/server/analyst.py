"""A process that answers a server's questions about logs. It opens loops for reading only, and keeps a few open.

`python -m heedful.server.analyst [OWN ...]` talks over the socket that is its standard input: each message is its
length in four bytes, then msgpack. A question is (path or database URL, key there, name of a method of `Loop`, its
arguments, its named arguments). An answer is b"+" and the result, or b"-" and (kind, detail, headers) of a problem."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from heedful.loop import Loop
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Experiment, PlannedExperiment, Promotion
from heedful.results.explanation import Why
from heedful.results.health import Health
from heedful.results.report import Report
from heedful.results.style import Style
from heedful.server.problems import Problem, as_problem
from heedful.server.server_log import write_log
from heedful.storage import Address, Place

QUESTIONS: dict[Callable[..., Any], Any] = {
    Loop.evaluate: Evaluation,
    Loop.experiment: Experiment,
    Loop.health: Health,
    Loop.plan_experiment: PlannedExperiment,
    Loop.promotions: tuple[Promotion, ...],
    Loop.report: Report,
    Loop.style_of: Style,
    Loop.why: Why,
}
"""The methods of a loop that read much of its log -> the type of the result."""
NICE = 10
"""How far the processes of analyses stand back behind the server: at 10 they get a tenth of a core that both want."""
OPEN = 4
"""The most loops that such a process keeps open."""
RAISED = {"bad-input": ValueError, "not-found": LookupError}
"""The errors that are the caller's fault, by the kind of their problem; a route may answer them in another way."""


def pack(place: Place, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> bytes:
    """Return the question what the method `name` of the loop at `place` returns, called with these arguments."""
    path, key = (place.url, place.key) if isinstance(place, Address) else (str(place), None)
    return msgspec.msgpack.encode((path, key, name, arguments, named))


def unpack(name: str, answer: bytes) -> Any:
    """Return the result in the `answer` to a question about the method `name`, or raise the error in it."""
    if answer.startswith(b"+"):
        [kind] = [kind for method, kind in QUESTIONS.items() if method.__name__ == name]
        return msgspec.msgpack.decode(memoryview(answer)[1:], type=kind)
    kind, detail, headers = msgspec.msgpack.decode(memoryview(answer)[1:])
    raise RAISED[kind](detail) if kind in RAISED else Problem(kind, detail, headers=headers)


class Analyst:
    """Answers questions about loops, of which it keeps those open that were asked about last."""

    def __init__(self, own: Sequence[str]) -> None:
        """Open loops whose learner may be one of the user's `own`, each FILE.py:Class."""
        self._own = own
        self._loops: dict[Place, Loop] = {}

    def answer(self, question: bytes) -> bytes:
        """Return the answer to a `question`."""
        path, key, name, arguments, named = msgspec.msgpack.decode(question)
        place = Path(path) if key is None else Address(path, key)
        [method] = [each for each in QUESTIONS if each.__name__ == name]
        try:
            loop = self._open(place)
            loop.projection.look()  # also at who was forgotten
            return b"+" + msgspec.msgpack.encode(method(loop, *arguments, **named))
        except Exception as error:
            problem = as_problem(error, "not-found")
            if problem.status >= 500 and place in self._loops:
                self._loops.pop(place).close()
            return b"-" + msgspec.msgpack.encode((problem.kind, str(problem), problem.headers))

    def _open(self, place: Place) -> Loop:
        loop = self._loops.pop(place, None)
        if loop is not None and not loop.projection.log.store.is_there():
            loop.close()
            loop = None
        if loop is None:
            try:
                loop = Loop.open(place, learner=self._own, read_only=True)
            except (LookupError, ValueError) as error:  # the server has it open: it is not what was asked
                raise RuntimeError(f"{place}: {error}") from error
        self._loops[place] = loop  # the last is the newest
        if len(self._loops) > OPEN:
            self._loops.pop(next(iter(self._loops))).close()
        return loop


def main(own: Sequence[str]) -> None:
    """Answer what comes by the standard input, a socket, until its other end is closed."""
    write_log()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with contextlib.suppress(OSError):  # what a container forbids; where memory runs out, this goes before the server
        os.nice(NICE)
        Path("/proc/self/oom_score_adj").write_text("500")
    analyst, questions = Analyst(own), queue.SimpleQueue[bytes]()
    connection = socket.socket(fileno=0)

    def listen() -> None:
        with connection.makefile("rb") as file:
            while len(head := file.read(4)) == 4:
                questions.put(file.read(int.from_bytes(head, "big")))
        os._exit(0)  # the server has ended, whatever is under way

    threading.Thread(target=listen, daemon=True).start()
    while True:
        answer = analyst.answer(questions.get())
        connection.sendall(len(answer).to_bytes(4, "big") + answer)


if __name__ == "__main__":
    main(sys.argv[1:])
