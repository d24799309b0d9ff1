"""A routing strategy of LiteLLM: a loop chooses the model for each prompt, and learns from thumbs and edits.

    from litellm import Router
    from litellm_routing import HeedfulStrategy
    from heedful.client import Client

    router = Router(model_list=[
        {"model_name": "auto", "model_info": {"id": "small"}, "litellm_params": {"model": "openai/gpt-4o-mini"}},
        {"model_name": "auto", "model_info": {"id": "large"}, "litellm_params": {"model": "openai/gpt-4o"}},
    ])
    client = Client("http://127.0.0.1:8710", key="hk_...", timeout=0.2)
    strategy = HeedfulStrategy(router, client.loop("route"))
    response = router.completion(model="auto", messages=[{"role": "user", "content": "A poem about rain."}])
    strategy.feedback(response.id, thumb="up")  # or edit={"from": the answer, "to": the edited text}

The loop is made with `heedful init route models.csv --route` and served with `heedful serve`. The `id` in `model_info`
is the name of the model in the table of the loop. If the loop's server is away, the first deployment of the list
answers (`heedful.client`), and feedback is told once it is back. If a model fails and LiteLLM tries again, the loop
chooses among the others.

It needs litellm, which heedful does not depend on, and the extra `client`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

MOST = 10_000
"""How many responses are remembered, the newest."""
DECISION, TRIED = "heedful_decision", "heedful_tried"
"""Where the metadata of a request hold the decision for it, and the models that failed already."""


class Responses(CustomLogger):
    """Remembers which decision each of the last responses came from. One is enough for all strategies of a process."""

    def __init__(self) -> None:
        super().__init__()
        self._decisions: OrderedDict[str, Any] = OrderedDict()
        self._came = threading.Condition()

    def log_success_event(self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Take from LiteLLM that a request had a response."""
        metadata = (kwargs.get("litellm_params") or {}).get("metadata") or {}
        decision, id = metadata.get(DECISION), getattr(response_obj, "id", None)
        if decision is not None and id is not None:
            with self._came:
                self._decisions[id] = decision
                while len(self._decisions) > MOST:
                    self._decisions.popitem(last=False)
                self._came.notify_all()

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Take from LiteLLM that a request had a response."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def decision_of(self, response: str, patience: float = 2.0) -> Any:
        """Return the loop's decision for the response with the id `response`.

        LiteLLM tells of a response in another thread, a moment after it: wait up to `patience` seconds for that. Raise
        LookupError for a response that is not known, or not any more."""
        with self._came:
            if not self._came.wait_for(lambda: response in self._decisions, patience):
                raise LookupError(f"response: expected the id of one of the last {MOST:,} responses, got {response}")
            return self._decisions[response]


RESPONSES = Responses()


class HeedfulStrategy(CustomRoutingStrategyBase):
    """Chooses a deployment of `router` for each request by a loop of routes, and takes feedback on the responses.

    `loop` is one of `heedful.client.Client` (or a `heedful.Loop`). `embed` makes the embedding of a prompt, for a loop
    that was made with `--embedding`; otherwise the loop gets the prompt's text. It registers itself with `router`, and
    `RESPONSES` in `litellm.callbacks`, from where LiteLLM tells the id of each response."""

    def __init__(self, router: Any, loop: Any, embed: Callable[[str], Sequence[float]] | None = None) -> None:
        self._router, self._loop, self._embed = router, loop, embed
        register = getattr(router, "register_plugin", None) or router.set_custom_routing_strategy
        register(self)
        if RESPONSES not in litellm.callbacks:
            litellm.callbacks.append(RESPONSES)

    # ------------------------------------------------------------------------ choosing

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, Any]] | None = None,
        input: str | list[Any] | None = None,  # as LiteLLM calls it
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the deployment, an element of the router's list, that answers a request for the group `model`."""
        asked: dict[str, Any] = {} if request_kwargs is None else request_kwargs
        group = self._deployments(model)
        names = list(group)
        metadata = asked.setdefault("metadata", {})
        tried = metadata.setdefault(TRIED, [])
        left = [name for name in names if name not in tried] or names
        text = prompt_of(messages, input)
        context = {"prompt": text} if self._embed is None else {"embedding": list(self._embed(text))}
        decision = self._loop.decide(left, context=context, person=asked.get("user"), show=1)
        metadata[DECISION] = decision
        tried.append(decision.shown[0])
        return group[decision.shown[0]]

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, Any]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return what `get_available_deployment` returns, without keeping other tasks waiting."""
        return await asyncio.to_thread(
            self.get_available_deployment, model, messages, input, specific_deployment, request_kwargs
        )

    def _deployments(self, model: str) -> dict[str, Any]:
        """Return the deployments of the group `model`, by the name of the loop's model, which is their id."""
        registry = getattr(self._router, "registry", None)
        every = list(registry().all() if callable(registry) else self._router.model_list)
        found = {each["model_info"]["id"]: each for each in every if each["model_name"] == model}
        if not found:
            known = ", ".join(sorted({each["model_name"] for each in every}))
            raise ValueError(f"model: expected one of {known}, got {model}")
        return found

    # ------------------------------------------------------------------------ feedback

    def feedback(self, response: str, **form: Any) -> Any:
        """Send feedback on the response with the id `response`; return the loop's answer.

        `form` is thumb="up", edit={"from": ..., "to": ...}, or another form of feedback of a loop of routes."""
        return self._loop.feedback(RESPONSES.decision_of(response), **form)

    async def afeedback(self, response: str, **form: Any) -> Any:
        """Send feedback as `feedback` does, without keeping other tasks waiting."""
        return await asyncio.to_thread(self.feedback, response, **form)


def prompt_of(messages: Sequence[Mapping[str, Any]] | None, input: str | list[Any] | None) -> str:
    """Return the text of the last message of a user in `messages`, or else the `input` of a request for an embedding.

    Of a message of several parts these are the texts; "" if there is none."""
    for message in reversed(messages or ()):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            return "\n".join(str(part["text"]) for part in content or () if part.get("type") == "text")
    return input if isinstance(input, str) else "\n".join(map(str, input or ()))
