"""Pictures of a study, as a browser is given them."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from heedful.server.loop_worker import LoopWorker
from heedful.server.problems import Problem
from heedful.studies.study import picture_in

HEADERS = {
    # Whatever is in it: where it is opened by itself it runs nothing, and asks nobody for anything.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # A number is that of the bytes: what it stands for never changes.
    "cache-control": "private, max-age=86400, immutable",
}


async def image_response(worker: LoopWorker, number: str) -> Response:
    """The picture of that number. Problem where the study has none."""
    found = await worker.read(partial(picture_in, worker.loop.path, number))
    if found is None:
        raise Problem("not-found", "there is no such picture")
    return Response(found[0], headers=HEADERS, media_type=found[1])
