"""Workspaces: text files of a user that agents write and read, kept for 24 hours.

One blob per file, `workspaces/{digest of the user id}/{name}` in the work container. There are no folders:
names that could change the path are rejected.
"""

import hashlib
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from shared.access.models import UserContext
from shared.access.security_filter import principals
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    AccessDeniedError,
    BudgetExceededError,
    DocumentNotFoundError,
    InvalidQueryError,
    NotFoundError,
)
from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.names import WORK

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 100
MAX_TOTAL_BYTES = 20_000_000
LIFETIME = timedelta(hours=24)
_FOLDER = "workspaces/"
_NAME = re.compile(r"\w(?:[\w .()+-]{0,98}[\w)+-])?")
_NAMED_IN_HINT = 20


class WorkspaceFile(Model):
    """A file in a user's workspace."""

    name: str = Field(description="File name, unique in the workspace.")
    size_bytes: int = Field(description="File size in bytes.")
    modified_at: datetime = Field(description="Time of the last change.")
    expires_at: datetime = Field(description="Time after which the file is deleted.")


class WorkspaceList(Model):
    """The files in the caller's workspace, sorted by name."""

    files: tuple[WorkspaceFile, ...] = Field(description="Unexpired files, sorted by name.")
    count: int = Field(description="Number of files.")


class Workspace:
    """The text files of one user."""

    def __init__(self, blobs: BlobStore, user: UserContext) -> None:
        """Open the workspace of a user. Raise `AccessDeniedError` if the user id is empty."""
        principals(user)
        if not user.user_id:
            raise AccessDeniedError("Only a signed-in user has a workspace.", "Sign in.")
        self._blobs = blobs
        self._folder = _folder_of(user.user_id)

    async def files(self) -> list[WorkspaceFile]:
        """Return the files that have not expired, sorted by name."""
        blobs = [blob async for blob in self._blobs.list_blobs(WORK, self._folder)]
        files = [self._file_of(blob) for blob in blobs]
        return [file for file in files if file.expires_at > datetime.now(UTC)]

    async def find(self, name: str) -> BlobProperties:
        """Return the blob of an unexpired file.

        Raises:
            InvalidQueryError: the name is invalid.
            DocumentNotFoundError: the file doesn't exist; the hint lists the existing ones.
        """
        blob = await self._blobs.properties(WORK, self._path(name))
        if blob is None or self._file_of(blob).expires_at <= datetime.now(UTC):
            raise await self._unknown(name)
        return blob

    async def read(self, name: str) -> str:
        """Return the text of a file. Raises the same errors as `find`."""
        blob = await self.find(name)
        try:
            return (await self._blobs.read(WORK, blob.name)).decode()
        except NotFoundError:  # the file was deleted after `find`
            raise await self._unknown(name) from None

    async def write(self, name: str, text: str, mode: Literal["create", "replace"]) -> tuple[int, str]:
        """Write a file and return its size in bytes and its SHA-256. Writing the same text again only renews
        its lifetime.

        Limits are checked first, so concurrent writes may exceed them slightly.

        Raises:
            InvalidQueryError: the name is invalid, or exists with other content in `create` mode.
            BudgetExceededError: the file is too large, or there are too many.
        """
        path, content = self._path(name), text.encode(errors="replace")
        if len(content) > MAX_FILE_BYTES:
            raise BudgetExceededError(
                f"A file may have at most {MAX_FILE_BYTES:,} bytes.", "Write a shorter text."
            )
        others = {file.name: file.size_bytes for file in await self.files()}
        existing = others.pop(self._name_of(path), None)
        if existing is not None and mode == "create" and await self._blobs.read(WORK, path) != content:
            raise InvalidQueryError(
                f"There is a file {name[:100]!r}.", "Choose another name, or use the mode `replace`."
            )
        if len(others) >= MAX_FILES or sum(others.values()) + len(content) > MAX_TOTAL_BYTES:
            raise BudgetExceededError(
                f"A workspace may have at most {MAX_FILES} files of {MAX_TOTAL_BYTES:,} bytes in total.",
                "Replace an existing file.",
            )
        await self._blobs.write(WORK, path, content)
        return len(content), hashlib.sha256(content).hexdigest()

    async def delete(self, name: str) -> None:
        """Delete a file. Raises the same errors as `find`."""
        await self._blobs.delete(WORK, (await self.find(name)).name)

    def _path(self, name: str) -> str:
        name = unicodedata.normalize("NFC", name)
        if not _NAME.fullmatch(name):
            raise InvalidQueryError(
                "This is not a valid file name.",
                "Up to 100 letters, digits, spaces and . _ - + ( ), such as notes.md; there are no folders.",
            )
        return f"{self._folder}{name}"

    def _name_of(self, path: str) -> str:
        return path.removeprefix(self._folder)

    def _file_of(self, blob: BlobProperties) -> WorkspaceFile:
        modified_at = _modified_at(blob)
        return WorkspaceFile(
            name=self._name_of(blob.name),
            size_bytes=blob.size_bytes,
            modified_at=modified_at,
            expires_at=modified_at + LIFETIME,
        )

    async def _unknown(self, name: str) -> DocumentNotFoundError:
        names = [file.name for file in await self.files()][:_NAMED_IN_HINT]
        return DocumentNotFoundError(
            f"There is no file {name[:100]!r}.", f"Files: {', '.join(names) or 'none'}."
        )


async def purge_workspaces(now: datetime, blobs: BlobStore) -> int:
    """Delete the expired files of all users and return their number."""
    expired = [
        blob.name async for blob in blobs.list_blobs(WORK, _FOLDER) if _modified_at(blob) + LIFETIME <= now
    ]
    await run_together(*(blobs.delete(WORK, name) for name in expired), at_once=16)
    return len(expired)


async def forget_workspace(user_id: str, blobs: BlobStore) -> int:
    """Delete all files of a user and return their number."""
    names = [blob.name async for blob in blobs.list_blobs(WORK, _folder_of(user_id))]
    await run_together(*(blobs.delete(WORK, name) for name in names), at_once=16)
    return len(names)


def _modified_at(blob: BlobProperties) -> datetime:
    return blob.modified_at or datetime.min.replace(tzinfo=UTC)


def _folder_of(user_id: str) -> str:
    return f"{_FOLDER}{digest(user_id)}/"
