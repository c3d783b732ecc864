"""ZIP containers, checked before a library unpacks them: bombs, encryption, document types.

Declared sizes can be trusted as a limit: zipfile never unpacks more than an entry declares.
"""

import zipfile
from pathlib import Path
from zipfile import ZipFile

from shared.errors import BadDocumentError

MAX_ENTRIES = 20_000
MAX_UNPACKED_BYTES = 1 << 30
MAX_RATIO = 200  # of all entries together; a sheet of equal rows reaches about 60
_RATIO_COUNTS_FROM_BYTES = 50 << 20  # below, nothing can be harmed
_ENCRYPTED = 1  # bit 0 of an entry's flags, APPNOTE.TXT 4.4.4
_PROLOGUE_BYTES = 4096
# ECMA-376 part 2, 8.1.4: a part shall hold no document type declaration; entities come with one.
_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_DAMAGED_HINT = "Check that it opens in its program; copy or export it again."


def check_zip(path: Path) -> None:
    """Let only a harmless archive pass.

    Raises:
        BadDocumentError: damaged, encrypted, a bomb, or with entities in its XML.
    """
    try:
        with ZipFile(path) as archive:
            _check_sizes(archive.infolist(), path.stat().st_size)
            for entry in archive.infolist():
                if entry.filename.endswith((".xml", ".rels")):
                    _check_prologue(archive, entry)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise BadDocumentError("The file is damaged or incomplete.", _DAMAGED_HINT) from error


def _check_sizes(entries: list[zipfile.ZipInfo], packed_bytes: int) -> None:
    unpacked_bytes = sum(entry.file_size for entry in entries)
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise BadDocumentError("The file is encrypted.", "Remove the password and drop it again.")
    is_bomb = unpacked_bytes > _RATIO_COUNTS_FROM_BYTES and unpacked_bytes > MAX_RATIO * packed_bytes
    if len(entries) > MAX_ENTRIES or unpacked_bytes > MAX_UNPACKED_BYTES or is_bomb:
        raise BadDocumentError(
            f"The file unpacks to {unpacked_bytes >> 20} MiB in {len(entries)} parts: more than a document "
            f"of {packed_bytes >> 10} KiB should (a decompression bomb?).",
            "Split the file, or export its content in another format.",
        )


def _check_prologue(archive: ZipFile, entry: zipfile.ZipInfo) -> None:
    import zlib

    try:
        with archive.open(entry) as part:
            prologue = part.read(_PROLOGUE_BYTES)
    except zlib.error as error:
        raise BadDocumentError("The file is damaged or incomplete.", _DAMAGED_HINT) from error
    if any(mark in prologue for mark in _DOCTYPES):
        raise BadDocumentError(
            "The file declares XML entities, which no Office program writes.",
            "Open it in its program and save it again.",
        )
