"""The server's life: a port, an address with a token, and a quiet end."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from dataclasses import dataclass, field

import uvicorn

from microtome.errors import RequestError
from microtome.explorer.guard import ANYWHERE, LOOPBACK
from microtome.explorer.server import application
from microtome.explorer.session import Session


@dataclass
class Doorway:
    """An open port on ``host``, and the token that lets in; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self.socket = socket.socket(family)
        # A port that a page of ours has just left can be taken again at once.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((self.host, self.port))
            # From here on a browser waits, where it would be refused before the model is loaded.
            self.socket.listen()
        except (OSError, OverflowError) as error:
            self.socket.close()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise RequestError(
                f"{self.host} port {self.port} can't be opened: {(reason or 'unknown').lower()}",
                "give another --port, or none for any that is free",
            ) from error
        self.port = self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """What to open in a browser."""
        host = socket.gethostname() if self.host in ANYWHERE else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?token={self.token}"


def check_host(host: str, *, is_sure: bool) -> None:
    """Refuse to open a port to other machines, unless somebody is sure."""
    if host not in LOOPBACK and not is_sure:
        raise RequestError(
            f"--host {host} lets other machines in: whoever has the address can read the rows and"
            " write checkpoints here",
            "add --i-know if you mean it; ssh -L is safer",
        )


def server_of(session: Session, door: Doorway) -> uvicorn.Server:
    """The server, ready to ``run(sockets=[door.socket])``."""
    app = application(session, token=door.token, host=door.host)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    return uvicorn.Server(config)


def serve(session: Session, door: Doorway, *, browser: bool) -> None:
    """Answer until Ctrl-C."""
    if browser and _has_screen():
        threading.Timer(0.5, webbrowser.open, (door.address,)).start()
    server_of(session, door).run(sockets=[door.socket])


def _has_screen() -> bool:
    """Whether a browser would have a window: one that runs in the terminal is in the way."""
    shown = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in shown)
