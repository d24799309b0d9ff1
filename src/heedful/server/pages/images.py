"""Sending the pictures of a study to browsers."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from heedful.server.loop_worker import LoopWorker
from heedful.server.problems import Problem
from heedful.studies.study import picture_in

HEADERS = {
    # An SVG may hold anything: opened by itself it runs no script and loads nothing.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The number of a picture is a digest of its bytes, so its content never changes.
    "cache-control": "private, max-age=86400, immutable",
}


async def image_response(worker: LoopWorker, number: str) -> Response:
    """Return the response that sends the picture with this `number`, a digest of its bytes. Raise Problem (404) if the
    study has none."""
    image = await worker.read(partial(picture_in, worker.loop.path, number))
    if image is None:
        raise Problem("not-found", "there is no such picture")
    return Response(image[0], headers=HEADERS, media_type=image[1])
