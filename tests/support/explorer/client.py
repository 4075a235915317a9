"""A running explorer, and a plain client that may send anything."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from microtome.explorer.serving import Doorway, server_of
from microtome.explorer.session import Session

PATIENCE = 120  # seconds after which something hangs, however busy the machine is


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Requests to one explorer, as one page sends them."""

    def __init__(self, door: Doorway, page: str = "page") -> None:
        self.door, self.page = door, page

    def other(self, page: str) -> Client:
        return Client(self.door, page)

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.send("GET", path, None, headers)

    def post(self, name: str, body: object, **headers: str | None) -> Answer:
        return self.send("POST", f"/api/{name}", json.dumps(body).encode(), headers)

    def send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str | None]
    ) -> Answer:
        """Headers that are None aren't sent; ``_`` in their names is ``-``."""
        host = f"{self.door.host}:{self.door.port}"
        sent = {"Host": host, "X-Microtome-Token": self.door.token, "X-Microtome-Page": self.page}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.door.host, self.door.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()


@contextmanager
def running(session: Session) -> Iterator[Client]:
    """The explorer of a session on a free port, in a thread."""
    door = Doorway()
    server = server_of(session, door)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door.socket]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has ended"
        time.sleep(0.01)
    try:
        yield Client(door)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        door.socket.close()


def nothing_told(done: int, total: int) -> None:
    """A score's progress, not listened to."""
