"""Text recognition by the Tesseract library, with limits on memory and time.

Tesseract converts a picture to a table of words. It aborts the process when it runs out of memory, so
memory is checked in advance, and pictures that need too much are rejected.
"""

import mmap
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from PIL.Image import Image

from shared.platform.loading import load_module

Problem = Literal["off", "missing", "time", "memory", "failed"]
"""Reason why a picture could not be read."""

_SUFFIX = ".traineddata"
# Data files for page orientation and equations, which aren't data of a language.
_NO_LANGUAGE = frozenset({"osd", "equ"})
_FIRST = ("eng", "deu")
# Maximum number of languages. Each further language takes time, and similar letters are confused more often.
_MAX_LANGUAGES = 3
# Folder of the language data, relative to the Python environment or to the packages.
_PLACE = Path("share", "tessdata")
# Fixed memory of an engine, and additional memory per pixel. Measured with eng+deu: 161 MB of address space
# for 3.7 million pixels and 248 MB for 12.1 million, of which 68 MB remain allocated after the import.
_ENGINE_BYTES, _BYTES_PER_PIXEL = 60 << 20, 12


def is_installed(languages: Path | None = None) -> bool:
    """Return whether text recognition can be used, because the library and its language data are installed.
    The library isn't imported.
    """
    return find_spec("tesserocr") is not None and bool(_languages(_data_folder(languages)))


def open_engines(languages: Path | None = None) -> "Engines":
    """Return Tesseract engines for the pictures of one document. Call this only if `is_installed`."""
    folder = _data_folder(languages)
    return Engines(folder, _languages(folder))


def _data_folder(languages: Path | None) -> Path:
    if languages is not None:
        return languages
    places = [Path(path) / _PLACE for path in (sys.prefix, *sys.path)]
    return next((place for place in places if place.is_dir()), places[0])


@cache
def _languages(folder: Path) -> tuple[str, ...]:
    """Return up to three languages that have data in a folder: English and German first, the others by
    name.
    """
    with suppress(OSError):
        names = {path.stem for path in folder.iterdir() if path.suffix == _SUFFIX} - _NO_LANGUAGE
        ordered = [*(name for name in _FIRST if name in names), *sorted(names - set(_FIRST))]
        return tuple(ordered[:_MAX_LANGUAGES])
    return ()


class Engines:
    """Pool of Tesseract engines with the same languages, which can read several pictures concurrently."""

    def __init__(self, folder: Path, languages: Sequence[str]) -> None:
        self.folder = folder
        self.languages = "+".join(languages)
        self._idle: list[Any] = []
        self._changed = threading.Condition()
        self._promised_bytes = 0

    def read(self, picture: Image, timeout_s: float) -> tuple[str, Problem | None]:
        """Return the table of words that Tesseract recognises in a greyscale picture, and the problem if the
        picture could not be read.
        """
        size_bytes = _ENGINE_BYTES + _BYTES_PER_PIXEL * picture.width * picture.height
        with self._memory(size_bytes) as fits:
            return self._recognise(picture, timeout_s) if fits else ("", "memory")

    def close(self) -> None:
        """Free the memory of all engines."""
        while self._idle:
            self._idle.pop().End()

    def _recognise(self, picture: Image, timeout_s: float) -> tuple[str, Problem | None]:
        try:
            engine = self._idle.pop() if self._idle else self._new_engine()
            engine.SetImage(picture)
            if not engine.Recognize(max(1, int(1000 * timeout_s))):
                return "", "time"
            table: str = engine.GetTSVText(0)
            engine.Clear()
            self._idle.append(engine)
        except MemoryError:
            return "", "memory"
        except (RuntimeError, OSError, ValueError):
            return "", "failed"
        return table, None

    def _new_engine(self) -> Any:
        # Use one thread per picture, because the cores read several pictures at once.
        os.environ["OMP_THREAD_LIMIT"] = "1"
        tesserocr = load_module("tesserocr")
        return tesserocr.PyTessBaseAPI(path=str(self.folder), lang=self.languages, psm=tesserocr.PSM.AUTO)

    @contextmanager
    def _memory(self, size_bytes: int) -> Iterator[bool]:
        """Reserve memory, waiting until other pictures have freed enough of it. Yield False if even all of
        the memory would not be enough.
        """
        with self._changed:
            while not (fits := _is_free(size_bytes + self._promised_bytes)) and self._promised_bytes:
                self._changed.wait()
            self._promised_bytes += size_bytes
        try:
            yield fits
        finally:
            with self._changed:
                self._promised_bytes -= size_bytes
                self._changed.notify_all()


def _is_free(size_bytes: int) -> bool:
    """Return whether the process can allocate this much address space."""
    try:
        mmap.mmap(-1, size_bytes).close()
    except (OSError, MemoryError):
        return False
    return True
