"""Names of uploaded files: what a sender calls them, made into a path that is safe everywhere. Pure.

Every uploader has a folder of their own, so a name says nothing of anybody else's files, and nobody can
replace what is not theirs (docs/decisions/0008-uploads-by-owner.md).
"""

import re
import unicodedata

from shared.core.document_ids import SIDECAR_SUFFIX, digest
from shared.errors import CallerError

UPLOADS = "uploads"
MAX_NAME_BYTES = 200  # file systems take 255; a sidecar's suffix and a copy's number come on top
MAX_PATH_CHARS = 900  # the service takes 1,024
MAX_DEPTH = 10
_SEPARATORS = re.compile(r"[/\\]+")
_FORM_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n"}  # WHATWG HTML, multipart/form-data encoding
# Names that Windows keeps for devices, whatever their suffix: nobody there could save such a file.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|\Z)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"  # they belong to the spelling of Persian, of Indian languages, and of emoji


def clean_filename(name: str) -> str:
    """The last part of a path, without what cannot stand in a name; quotes and all scripts are kept.

    Raises:
        CallerError: nothing is left, or the name is that of an access list.
    """
    for escape, mark in _FORM_ESCAPES.items():
        name = name.replace(escape, mark)
    cleaned = _clean_segment(_SEPARATORS.split(name)[-1])
    if not cleaned:
        raise CallerError(
            "The file has no usable name.", "Send a file name with a suffix, such as report.pdf."
        )
    if cleaned.lower().endswith(SIDECAR_SUFFIX):
        raise CallerError(
            f"A name that ends in {SIDECAR_SUFFIX} is that of an access list.",
            "Change who may read a document with PUT /api/documents/{id}/access.",
        )
    return _shortened(cleaned)


def clean_folder(folder: str) -> str:
    """A path of folders below the uploader's own; "" for none. `.` and `..` lead nowhere and are dropped.

    Raises:
        CallerError: it is nested too deeply.
    """
    segments = [
        _shortened(cleaned) for part in _SEPARATORS.split(folder) if (cleaned := _clean_segment(part))
    ]
    if len(segments) > MAX_DEPTH:
        raise CallerError(f"The folder is nested more than {MAX_DEPTH} levels deep.", "Send fewer levels.")
    return "/".join(segments)


def upload_path(user_id: str, folder: str, filename: str) -> str:
    """The blob of an upload, of names that are clean. The same user and names give the same document.

    Raises:
        CallerError: the whole path is too long.
    """
    path = uploads_of(user_id) + "/".join(part for part in (folder, filename) if part)
    if len(path) > MAX_PATH_CHARS:
        raise CallerError("The path of the file is too long.", "Shorten the folder or the file name.")
    return path


def uploads_of(user_id: str) -> str:
    """How the names of all blobs begin that the user uploaded."""
    # A digest: user ids may hold any character, and readers see paths.
    return f"{UPLOADS}/{digest('uploader', user_id)[:16]}/"


def is_upload(blob_name: str) -> bool:
    """Whether the blob came, or was to come, through the API."""
    return blob_name.startswith(f"{UPLOADS}/")


def upload_folder(blob_name: str) -> str | None:
    """The folder that the sender named, "" for none; None of a file that came otherwise."""
    return "/".join(blob_name.split("/")[2:-1]) if is_upload(blob_name) else None


def _clean_segment(segment: str) -> str:
    composed = unicodedata.normalize("NFC", segment)
    visible = "".join(mark for mark in composed if not _is_control(mark))
    # A blob's path must not end in a dot; a leading or trailing blank is never meant.
    trimmed = " ".join(visible.split()).rstrip(". ").strip()
    return f"_{trimmed}" if _RESERVED.match(trimmed) else trimmed


def _is_control(mark: str) -> bool:
    """Control and format characters (a right-to-left override can disguise a suffix), halves of pairs."""
    if mark.isspace():
        return False
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Co", "Cn") and mark not in _JOINERS


def _shortened(name: str) -> str:
    """At most MAX_NAME_BYTES in UTF-8, the suffix kept."""
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f"{dot}{suffix}" if stem and len(suffix) <= 10 else ""
    room = MAX_NAME_BYTES - len(ending.encode())
    start = (stem if ending else name).encode()[:room].decode("utf-8", "ignore")
    return start.rstrip(". ") + ending
