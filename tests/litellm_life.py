"""What tests/test_example_routing.py does with the real LiteLLM, in an environment that has it.

    python litellm_life.py URL_OF_HEEDFUL URL_OF_ENDPOINT

It prints the ids of the feedback that it gave, which the loop's log must have."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

from litellm import Router
from litellm.types.router import CustomRoutingStrategyBase

from heedful.client import Client
from litellm_routing import RESPONSES, HeedfulStrategy, prompt_of

POEM = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a poem about rain"}]
SUM = [{"role": "user", "content": [{"type": "text", "text": "a sum of numbers"}]}]


def router(endpoint: str, *names: str) -> Router:
    """A router over deployments of one group, each a model of the endpoint."""
    return Router(
        model_list=[
            {
                "model_name": "auto",
                "litellm_params": {"model": f"openai/{name}", "api_base": endpoint, "api_key": "k"},
                "model_info": {"id": name},
            }
            for name in names
        ],
        num_retries=2,
        retry_after=0,
    )


def same_parameters() -> None:
    """The methods have the parameters of those that they override, in the same order."""
    for name in ("get_available_deployment", "async_get_available_deployment"):
        ours, theirs = (inspect.signature(getattr(cls, name)) for cls in (HeedfulStrategy, CustomRoutingStrategyBase))
        assert list(ours.parameters) == list(theirs.parameters), (name, ours, theirs)


async def asynchronously(strategy: HeedfulStrategy, with_it: Router) -> list[str]:
    """A response, and one that is streamed; the ids of the feedback on them."""
    response: Any = await with_it.acompletion(model="auto", messages=SUM, user="ann")
    given = [(await strategy.afeedback(response.id, thumb="down", id="async")).event]
    chunks = [chunk async for chunk in await with_it.acompletion(model="auto", messages=POEM, stream=True)]
    [id] = {chunk.id for chunk in chunks}
    return [*given, (await strategy.afeedback(id, edit={"changed": 0.25}, id="stream")).event]


def main(heedful: str, endpoint: str) -> None:
    """Live it."""
    same_parameters()
    assert prompt_of(POEM, None) == "a poem about rain"
    assert prompt_of(SUM, None) == "a sum of numbers"
    assert prompt_of(None, ["x", "y"]) == "x\ny"
    with Client(heedful, timeout=60.0) as client:
        loop = client.loop("route")
        with_it = router(endpoint, "small", "large")
        strategy = HeedfulStrategy(with_it, loop)
        response: Any = with_it.completion(model="auto", messages=POEM, user="ann")
        name = response.choices[0].message.content.split()[0]
        decision = RESPONSES.decision_of(response.id)
        assert decision.shown == (name,), (decision, response)
        given = [strategy.feedback(response.id, thumb="up", id="sync").event]
        given += asyncio.run(asynchronously(strategy, with_it))
        shown = {line["id"]: line for line in loop.events(kinds=["decision"], follow=False)}
        assert shown[decision.id]["person"] == "ann"
        assert shown[decision.id]["context"] == {"prompt": "a poem about rain"}
        refused = ""
        try:
            RESPONSES.decision_of("chatcmpl-nobody", patience=0.0)
        except LookupError as error:
            refused = str(error)
        assert refused.endswith("got chatcmpl-nobody"), refused

        failing = router(endpoint, "broken", "small")  # what fails is not tried again
        strategy = HeedfulStrategy(failing, loop)
        for i in range(4):
            response = failing.completion(model="auto", messages=POEM)
            assert response.choices[0].message.content.startswith("small"), response
            assert RESPONSES.decision_of(response.id).shown == ("small",)
            given.append(strategy.feedback(response.id, thumb="up", id=f"failing-{i}").event)

    with Client("http://127.0.0.1:9", timeout=0.2) as away:  # nobody listens: the first deployment answers
        without = router(endpoint, "large", "small")
        strategy = HeedfulStrategy(without, away.loop("route"))
        response = without.completion(model="auto", messages=POEM)
        assert response.choices[0].message.content.startswith("large"), response
        assert RESPONSES.decision_of(response.id).fallback
    print(*given)


if __name__ == "__main__":
    main(*sys.argv[1:])
