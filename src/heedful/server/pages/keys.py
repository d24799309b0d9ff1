"""The page of keys, on which a visitor whose key has the scope `admin` makes and revokes keys of their tenant."""

from __future__ import annotations

from starlette.responses import Response

from heedful.core.validation import describe
from heedful.server.auth import Caller
from heedful.server.keys import SCOPES, Key, in_order, mask_prefix
from heedful.server.pages import session
from heedful.server.pages.page import Page, Visit, back, folder_for, in_thread, render

MEANING = {
    "decide": "ask what to show",
    "feedback": "correct what was shown, and take corrections back",
    "read": "see these pages, what was learned, and every event",
    "admin": "make loops and keys, change items, forget people, keep snapshots",
    "metrics": "read the figures for Prometheus",
}
"""scope -> what a key with it may do, in words"""
ECHOED = 300
"""The most characters of an invalid field that are shown again in the form."""


async def make(visit: Visit) -> Response:
    """Handle the form that makes a key: render the page with the new key, which is shown only this once.

    If a field is invalid, render the form again (422) with the reason."""
    scopes = tuple(scope for scope in SCOPES if f"scope-{scope}" in visit.form)
    name, typed = visit.form.get("name", "").strip(), visit.form.get("rate", "").strip()
    try:
        if more := sorted(set(scopes) - visit.caller.scopes):
            raise ValueError(f"scopes: expected what your own key may, got {more[0]} too")
        first = not visit.caller.prefix
        if first and not {"read", "admin"} <= set(scopes):
            raise ValueError("scopes: expected read and admin too, as the first key has to make the others")
        keys = await _all(visit)
        own_rate, most = _limits(visit, keys)
        rate = _rate(typed, own_rate, most)
        expires = next((key.expires for key in keys if key.prefix == visit.caller.prefix), None)
        made, text = await in_thread(
            visit.service.pool,
            visit.service.keys.create,
            name,
            tenant=visit.caller.tenant,
            scopes=scopes,
            rate=rate,
            expires=expires,  # no later than the key that makes it
            by=visit.actor,
        )
    except ValueError as error:
        again = {"name": mask_prefix(name)[:ECHOED], "scopes": scopes, "rate": mask_prefix(typed)[:ECHOED]}
        return await _render(visit, 422, fields=again, wrong=mask_prefix(str(error)))
    if not first:
        return await _render(visit, secret=text, made=made.name)
    signed_in = visit._replace(caller=Caller(made.tenant, made.scopes, made.prefix))
    response = await _render(signed_in, secret=text, made=made.name, begun=True)
    await session.begin(visit.service, visit.request, response, made.prefix)
    return response


def _rate(text: str, default: float | None, most: float | None) -> float | None:
    """Return the rate limit in `text`, in requests per second; `default` if it is empty."""
    try:
        rate = float(text) if text else default
    except ValueError:
        raise ValueError(f"rate: expected a number of requests a second, or nothing, got {describe(text)}") from None
    if rate is not None and most is not None and rate > most:
        raise ValueError(f"rate: expected at most your own {most:g} requests a second, got {rate:g}")
    return rate


def _limits(visit: Visit, keys: list[Key]) -> tuple[float | None, float | None]:
    """Return (rate limit set for the caller's key, the one in force for it), in requests per second, or None."""
    rate = next((key.rate for key in keys if key.prefix == visit.caller.prefix), None)
    return rate, visit.service.options.rate if rate is None else rate


async def revoke(visit: Visit) -> Response:
    """Handle the form that revokes for good the key whose `prefix` it has. Raise LookupError if the tenant has no such
    key."""
    prefix = visit.form.get("prefix", "")
    keys = visit.service.keys

    def end() -> None:
        mine = [key.prefix for key in keys.all() if key.tenant == visit.caller.tenant]
        keys.revoke(prefix if prefix in mine else "", visit.actor)

    await in_thread(visit.service.pool, end)
    visit.service.authenticator.refresh()  # so that the key is refused from the next request on
    return await session.end(visit.service, visit.request) if prefix == visit.caller.prefix else back("/keys")


async def _all(visit: Visit) -> list[Key]:
    return await in_thread(visit.service.pool, visit.service.keys.all)


async def _render(visit: Visit, status: int = 200, **more: object) -> Response:
    """Render the list of keys, with the form that makes another, with the HTTP `status`."""
    keys = await _all(visit)
    first = not keys
    _, most = _limits(visit, keys)
    allowed = in_order(visit.caller.scopes)
    mine = [key for key in keys if key.tenant == visit.caller.tenant]
    context = {
        "keys": mine,
        "admins": [key.prefix for key in mine if key.revoked is None and "admin" in key.scopes],
        "in_order": in_order,
        "folder": folder_for(visit.service, visit.request),
        "first": first,
        "scopes": [(scope, MEANING[scope]) for scope in allowed],
        "fields": {"name": "", "scopes": allowed if first else ("decide", "feedback"), "rate": ""},
        "most": "" if most is None else f"{most:g}",
        "wrong": "",
        "secret": "",
        "made": "",
        "begun": False,
    }
    return render(visit, "keys.html", status, tab="keys", **context | more)


PAGES = (
    Page("GET", "/keys", ("admin",), _render),
    Page("POST", "/keys", ("admin",), make),
    Page("POST", "/keys/revoke", ("admin",), revoke),
)
