"""A loop is created: its folder or its place in a database, and the first event of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from heedful.features.encoding import UNSEEN, Encoding
from heedful.loop import snapshots
from heedful.loop.interactions.registry import default_learner, interaction_type, learner_version
from heedful.loop.log import Event, Log, now
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


@contextmanager
def new_loop(place: Place, manifest: Manifest) -> Iterator[None]:
    """Create a loop at `place`, whose log has its `manifest` and nothing else, and remove it if the block raises.

    Raise FileExistsError if there is one, and ValueError if the learner makes no sense."""
    learner = built_learner(manifest, named_learners(manifest.learner))
    if not isinstance(place, Address):
        snapshots.make_folder(place)
    log = None
    try:
        log = Log(place if isinstance(place, Address) else place / LOG, create=True)
        payload = manifest.to_json(learner_version(learner, manifest.settings))
        with log.writing():
            log.append([Event(1, "loop", "loop", now(), None, None, 0, payload)])
        log.close()
        yield
    except BaseException:
        if not isinstance(place, Address):
            snapshots.remove_folder(place)
        elif log is not None:
            log.store.drop()
        raise
