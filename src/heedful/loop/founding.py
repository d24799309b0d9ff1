"""A loop is created: its folder or its place in a database, and the first events of its log."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Literal

from heedful.core.paths import new_folder
from heedful.features.encoding import UNSEEN, Encoding, Features
from heedful.loop.interactions.registry import default_learner, interaction_type, learner_version
from heedful.loop.log import Event, Log, now
from heedful.loop.log.event import checksum
from heedful.loop.offer import item_events
from heedful.loop.settings import Manifest, Settings, built_learner, named_learners
from heedful.storage import Address, Place
from heedful.storage.address import LOG


def make_manifest(
    rows: Sequence[Mapping[str, Any]],
    learner: str | None,
    encoding: Encoding | None,
    context: Encoding | None,
    crosses: Sequence[tuple[str, str]] | Literal["all"],
    settings: Settings,
    query_features: Encoding | None,
) -> Manifest:
    """Return the manifest of a new loop with the items `rows`; the other arguments are those of `Loop.create`.

    Raise ValueError, naming the field, if something makes no sense."""
    given: Any = learner
    if isinstance(settings, Settings):
        given = default_learner(settings) if learner is None else learner
        if encoding is None and isinstance(given, str):
            kind = interaction_type(given, settings)
            if kind.arrange is not None:
                if crosses:
                    expected = f"expected none in {kind.words.loop}, which crosses columns itself"
                    raise ValueError(f"crosses: {expected}, got some")
                encoding, context, crosses = kind.arrange(rows, None, context)
            elif query_features is not None or kind.by_number:
                encoding = UNSEEN
    manifest = Manifest.of(given, encoding, context, crosses, settings, query_features)
    interaction_type(manifest.learner, manifest.settings).check_items(manifest, rows)
    return manifest


def new_loop(place: Place, manifest: Manifest, rows: Sequence[Mapping[str, Any]], encoded: Features) -> None:
    """Create a loop at `place` with its `manifest` and the items `rows`, `encoded` as features (n, N), which were
    checked: as a whole or not at all, whenever the process is killed.

    Raise FileExistsError if there is one, and ValueError if the learner makes no sense."""
    learner = built_learner(manifest, named_learners(manifest.learner))
    payload = manifest.to_json(learner_version(learner, manifest.settings))
    events = [Event(0, "loop", "loop", now(), None, None, 0, payload), *item_events(manifest, rows, encoded)]
    events = [event._replace(seq=i) for i, event in enumerate(events, 1)]
    if isinstance(place, Address):
        from heedful.loop.log.table import write_loop

        write_loop(place, secrets.token_bytes(32), [[(*event, checksum(event)) for event in events]], [])
        return
    with new_folder(place) as folder:
        folder.mkdir(mode=0o700)
        with closing(Log(folder / LOG, create=True)) as log, log.writing():
            log.append(events)
