"""The catalog of indexes in a data folder: create, update, delete, and load at start."""

import secrets
import threading
import urllib.parse
from pathlib import Path
from typing import Final

from local.search_server.definition import FieldDefinition, IndexDefinition
from local.search_server.errors import RequestError, conflict, not_found, precondition_failed
from local.search_server.index import Index, define
from local.search_server.schema import Schema
from local.search_server.store import IndexStore, open_store

_SUFFIX: Final = ".sqlite"
# Attributes of a field that can change without rebuilding the index.
_CHANGEABLE: Final = {"retrievable", "search_analyzer", "synonym_maps"}


class Catalog:
    """Thread-safe collection of all indexes by name, stored as one SQLite file each.

    Raises:
        RequestError: 404 for an unknown index, 409 for a name in use, 412 for a different etag, 400 for an
        invalid definition.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()
        self._indexes: dict[str, Index] = {}
        for path in sorted(folder.glob("*" + _SUFFIX)):
            index = _load(path)
            if index is not None:
                self._indexes[index.schema.definition.name] = index

    def close(self) -> None:
        with self._lock:
            for index in self._indexes.values():
                index.close()
            self._indexes.clear()

    def has(self, name: str) -> bool:
        return name in self._indexes

    def get(self, name: str) -> Index:
        try:
            return self._indexes[name]
        except KeyError:
            raise not_found(f"No index with the name '{name}' was found in the service.") from None

    def all(self) -> list[Index]:
        return [self._indexes[name] for name in sorted(self._indexes)]

    def create(self, definition: IndexDefinition) -> Index:
        with self._lock:
            if definition.name in self._indexes:
                raise conflict(f"Cannot create index '{definition.name}' because it already exists.")
            return self._create(definition)

    def create_or_update(
        self, definition: IndexDefinition, if_match: str | None, if_none_match: str | None
    ) -> tuple[Index, bool]:
        """Create an index or change its definition. Return the index, and whether it is new."""
        with self._lock:
            index = self._indexes.get(definition.name)
            check_precondition(index.etag if index else None, if_match, if_none_match)
            if index is None:
                return self._create(definition), True
            schema = Schema(definition.with_defaults())
            _check_change(index.schema.definition.fields, schema.definition.fields)
            index.redefine(schema, new_etag())
            return index, False

    def delete(self, name: str, if_match: str | None, if_none_match: str | None) -> None:
        with self._lock:
            index = self.get(name)
            check_precondition(index.etag, if_match, if_none_match)
            del self._indexes[name]
            index.close()
            for part in self._folder.glob(_path(self._folder, name).name + "*"):
                part.unlink(missing_ok=True)

    def _create(self, definition: IndexDefinition) -> Index:
        schema = Schema(definition.with_defaults())
        store = IndexStore(_path(self._folder, definition.name))
        etag = new_etag()
        with store.writing() as connection:
            define(connection, schema, etag)
        index = Index(schema, store, etag)
        self._indexes[definition.name] = index
        return index


def new_etag() -> str:
    return f'"0x{secrets.token_hex(8).upper()}"'


def check_precondition(etag: str | None, if_match: str | None, if_none_match: str | None) -> None:
    """Raise a 412 error unless the etag satisfies If-Match and If-None-Match. `etag` is None if the resource
    doesn't exist.
    """
    if if_match is not None and not _matches(etag, if_match):
        raise precondition_failed()
    if if_none_match is not None and _matches(etag, if_none_match):
        raise precondition_failed()


def _matches(etag: str | None, header: str) -> bool:
    if etag is None:
        return False
    return header.strip() == "*" or header.strip().strip('"') == etag.strip('"')


def _path(folder: Path, name: str) -> Path:
    return folder / (urllib.parse.quote(name, safe="") + _SUFFIX)


def _load(path: Path) -> Index | None:
    store, definition, etag = open_store(path)
    if definition is None or etag is None:
        # The process was killed while it created this index, so no client was told that it exists.
        store.close()
        return None
    return Index(Schema(IndexDefinition.model_validate_json(definition)), store, etag)


def _check_change(before: list[FieldDefinition], after: list[FieldDefinition]) -> None:
    """Raise an error if an existing field was removed, or if one of its fixed attributes changed."""
    by_name = {field.name: field for field in after}
    for old in before:
        new = by_name.get(old.name)
        if new is None or old.model_dump(exclude=_CHANGEABLE) != new.model_dump(exclude=_CHANGEABLE):
            raise RequestError(
                f"Existing field '{old.name}' cannot be changed or deleted. Build a new index instead.",
                code="OperationNotAllowed",
            )
