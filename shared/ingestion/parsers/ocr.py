"""Text recognition by Tesseract, where it is installed: within a budget of time for a document.

Pictures go through a pipe, never through a file. A picture is not read when the program is missing, fails or
takes too long, or when the budget is spent; who asks is told which.
"""

import io
import os
import shutil
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from shared.ingestion.parsers.ocr_table import Recognised, read_table

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 200  # below 150 small print is lost; above 200 it reads no better and takes longer (unmeasured here)
PICTURE_TIMEOUT_S = 60.0  # a scanned page takes about 4 s
_PROGRAM = "tesseract"
_QUARTERS = (2, 1, 3)  # by which a page is turned when it cannot be made out; most often upside down
_AT_ONCE = 2
_WAITING = 4  # pictures that may wait for their turn: a page takes 4 MB
_MAX_SIDE_PX = 4000  # an A4 page at 300 dpi has 3,508
_LIST_TIMEOUT_S = 10.0
_LANGUAGES = ("eng", "deu", "fra", "spa", "ita", "nld", "por")  # of those that are installed, the first three
_MAX_LANGUAGES = 3  # each one more takes longer, and confuses letters of the others


@cache
def tesseract_path() -> str | None:
    """Where the program is; None when it is not installed."""
    return shutil.which(_PROGRAM)


@cache
def installed_languages(program: str) -> tuple[str, ...]:
    """Those of our list that the program can read, in the order of our list."""
    try:
        done = subprocess.run(  # noqa: S603 - a program of this machine, no input in its arguments
            [program, "--list-langs"], capture_output=True, timeout=_LIST_TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return ()
    installed = set(done.stdout.decode("utf-8", "replace").split())
    return tuple(language for language in _LANGUAGES if language in installed)[:_MAX_LANGUAGES]


class TextRecognition:
    """Reads the pictures of one document."""

    def __init__(self, budget_s: float) -> None:
        """`budget_s`: seconds from the first picture on, for all of them; 0 = none is read."""
        self._budget_s = budget_s
        self._ends_at: float | None = None
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ocr")
        self._room = BoundedSemaphore(_AT_ONCE + _WAITING)

    @property
    def is_available(self) -> bool:
        """Whether pictures can be read at all."""
        return self._budget_s > 0 and tesseract_path() is not None

    def submit(self, picture: "Image") -> "Future[Recognised | None]":
        """What stands in a picture; None when it was not read. Waits for room."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._budget_s
        grey = picture.convert("L")
        grey.thumbnail((_MAX_SIDE_PX, _MAX_SIDE_PX))
        self._room.acquire()
        future = self._pool.submit(self._read, grey)
        future.add_done_callback(lambda _: self._room.release())
        return future

    def read(self, picture: "Image") -> str | None:
        """The words of one picture, at once, paragraphs parted by blank lines; None when it was not read."""
        recognised = self.submit(picture).result()
        return None if recognised is None else recognised.text

    def close(self) -> None:
        """Give up what has not begun, and wait for the rest."""
        self._pool.shutdown(cancel_futures=True)

    def _read(self, grey: "Image") -> Recognised | None:
        """What stands in a picture, whichever way up it lies."""
        best = self._read_upright(grey)
        for quarters in _QUARTERS:
            if best is None or not best.is_doubtful:
                break
            turned = self._read_upright(grey.rotate(90 * quarters, expand=True))
            if turned is not None and turned.confidence > best.confidence:
                best = turned.turned_back(quarters)
        return best

    def _read_upright(self, grey: "Image") -> Recognised | None:
        program = tesseract_path()
        left_s = (self._ends_at or 0.0) - time.monotonic()
        if program is None or left_s <= 0:
            return None
        content = io.BytesIO()
        grey.save(content, "PNG", compress_level=1)
        languages = installed_languages(program)
        command = [
            program,
            "-",
            "-",
            "--psm",
            "3",
            *(["-l", "+".join(languages)] if languages else []),
            "tsv",
        ]
        try:
            done = subprocess.run(  # noqa: S603 - a program of this machine, no input in its arguments
                command,
                input=content.getvalue(),
                capture_output=True,
                timeout=min(left_s, PICTURE_TIMEOUT_S),
                check=True,
                # One thread each: two at once use both cores better than two threads of one do.
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )
        except (subprocess.SubprocessError, OSError):
            return None
        return read_table(done.stdout.decode("utf-8", "replace"), grey.size)
