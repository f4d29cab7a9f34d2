"""A model that says what a test tells it, at an HTTP address of this machine. Law: only the official SDK talks to it.

It answers `POST /v1/messages` with the next command as a tool's use, and with an end when there is none left.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast


class Model(ThreadingHTTPServer):
    """The endpoint, its commands, and the requests that it was sent."""

    daemon_threads = True

    def __init__(self, commands: Sequence[Mapping[str, object]]) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.commands = list(commands)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """What the SDK takes as its base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def results(self) -> list[tuple[str, bool]]:
        """Each result the tool gave: its text, and whether it was an error."""
        found = {
            block["tool_use_id"]: (block["content"], block.get("is_error", False))
            for request in self.requests
            for message in request["messages"]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        }
        return list(found.values())


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        model = cast("Model", self.server)
        model.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        turn = len(model.requests)
        content: dict[str, object] = {"type": "text", "text": "Done."}
        if turn <= len(model.commands):
            content = {"type": "tool_use", "id": f"toolu_{turn}", "name": "memory", "input": model.commands[turn - 1]}
        message = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [content],
            "stop_reason": "end_turn" if content["type"] == "text" else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def scripted(*commands: Mapping[str, object]) -> Iterator[Model]:
    """A model that gives these commands one by one."""
    with Model(commands) as model:
        thread = Thread(target=model.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()
