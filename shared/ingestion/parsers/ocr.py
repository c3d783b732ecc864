"""Text recognition by Tesseract, where it is installed. Pictures go through a pipe, never through a file."""

import io
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_PROGRAM = "tesseract"
TIMEOUT_S = 60.0  # of one picture; a scanned page takes about 4 s
_MAX_SIDE = 4000  # pixels; more takes time and reads no better (an A4 page at 300 dpi has 3,508)


@cache
def tesseract_path() -> str | None:
    """Where the program is; None when it is not installed."""
    return shutil.which(_PROGRAM)


def recognised_text(picture: "Image") -> str | None:
    """The words in a picture, paragraphs parted by blank lines; None without Tesseract or when it fails."""
    program = tesseract_path()
    if program is None:
        return None
    grey = picture.convert("L")
    grey.thumbnail((_MAX_SIDE, _MAX_SIDE))
    content = io.BytesIO()
    grey.save(content, "PNG")
    command = [program, "-", "-", "--psm", "3"]
    try:
        done = subprocess.run(  # noqa: S603 - a program of this machine, no input in its arguments
            command, input=content.getvalue(), capture_output=True, timeout=TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()
