"""A stand-in for an endpoint that speaks OpenAI's API for chat completions, for the examples that route prompts."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatEndpoint(ThreadingHTTPServer):
    """Answers each chat completion with "MODEL answers PROMPT"; the model `broken` with an error 500.

    With "stream" the answer comes in two chunks, as server-sent events."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        """the bodies of the requests, with the header "authorization" as `key`"""
        self.numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """What comes before /chat/completions."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ChatEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append({**body, "key": self.headers.get("authorization")})
        if self.path != "/v1/chat/completions":
            self._send(404, b'{"error": {"message": "no such path"}}')
        elif body["model"] == "broken":
            self._send(500, b'{"error": {"message": "out of order"}}')
        else:
            self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        text = f"{body['model']} answers {body['messages'][-1]['content']}"
        made = {"id": f"chatcmpl-{next(self.server.numbers)}", "created": 1, "model": body["model"]}
        if body.get("stream"):
            parts: list[tuple[dict[str, str], str | None]] = [
                ({"role": "assistant", "content": text[:5]}, None),
                ({"content": text[5:]}, None),
                ({}, "stop"),
            ]
            chunks = [
                {**made, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": why}]}
                for d, why in parts
            ]
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            self._send(200, events.encode(), "text/event-stream")
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
            answer = {**made, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send(200, json.dumps(answer).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def chat_endpoint() -> Iterator[ChatEndpoint]:
    """Serve a stand-in for as long as the block takes."""
    endpoint = ChatEndpoint()
    thread = threading.Thread(target=endpoint.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        endpoint.server_close()
        thread.join()
