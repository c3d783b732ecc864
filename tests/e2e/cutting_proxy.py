"""A proxy that forwards bytes to a server and cuts each connection after a given number of bytes."""

import contextlib
import socket
import threading
from typing import Self

_PIECE = 4096


class CuttingProxy:
    """A proxy on a free loopback port. It is a context manager.

    Args:
        port: the port of the server.
        cut_after: number of response bytes for each connection, in order. Further connections are not cut.
    """

    def __init__(self, port: int, cut_after: list[int]) -> None:
        self.cuts = 0
        self._port = port
        self._left = list(cut_after)
        self._listening = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return  # the listener was closed
            far = socket.create_connection(("127.0.0.1", self._port))
            budget = self._left.pop(0) if self._left else None
            threading.Thread(target=self._hand_on, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._hand_on, args=(far, near, budget), daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, budget: int | None) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE if budget is None else min(_PIECE, budget)):
                target.sendall(piece)
                if budget is not None:
                    budget -= len(piece)
                    if budget <= 0:
                        self.cuts += 1
                        break
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
