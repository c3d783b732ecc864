"""Rights of a document: from its sidecar, its blob's metadata, or the default. Pure. Fails closed.

Whatever cannot be understood opens the document to its owner alone; no owner, and nobody reads it.
"""

import json
from collections.abc import Mapping

from shared.access.models import UserContext
from shared.access.security_filter import may_read
from shared.documents.state import DocumentState, Rights
from shared.evidence.document_prompt import web_address

ADMIN = "admin"


def is_admin(user: UserContext) -> bool:
    """Whether the identity provider gave the user the application role of administrators."""
    return ADMIN in user.roles


def may_see(user: UserContext, state: DocumentState) -> bool:
    """Rights that are wanted count as well as those applied only where both admit the user.

    While rights change, the narrower of the two holds; before the first success only the wanted ones exist.
    A deleted document is seen by nobody.
    """
    applied = may_read(user, state.rights.acl) or not state.blob_etag
    return not state.is_deleted and applied and may_read(user, state.wanted_rights.acl)


def may_change(user: UserContext, state: DocumentState) -> bool:
    """Owners and administrators change and delete a document. The role alone lets nobody read it."""
    return is_admin(user) or user.user_id == state.wanted_rights.owner_id


_TEXTS = ("owner_id", "project_id", "source_url", "published_by")
_MAX_PRINCIPALS = 500


class _UnreadableError(ValueError):
    """What came as rights is not in a form that is understood."""


def decide_rights(metadata: Mapping[str, str], sidecar: str | None, default_access: str) -> Rights:
    """Who may read the document, and where it belongs.

    A sidecar says more than blob metadata, and metadata more than the default, each field for itself.

    Args:
        metadata: of the blob, keys in lower case: `acl` and those of `_TEXTS`.
        sidecar: content of NAME.acl.json: a list of principals, or an object with the same fields.
        default_access: principals, comma separated, for documents that bring no list.
    """
    texts = _texts(metadata)
    acl: tuple[str, ...] = ()
    warning = None
    try:
        fields = _read_sidecar(sidecar) if sidecar is not None else {}
        texts |= _texts(fields)
        acl = _principals(fields.get("acl", metadata.get("acl", default_access)))
    except _UnreadableError as error:
        warning = f"{error} Only the owner can read the document."
    if "owner_id" in texts:
        acl = (*acl, texts["owner_id"])
    elif not acl and warning is None:
        warning = "Nobody can read the document: it has no access list and no owner."
    return Rights(acl=tuple(sorted(set(acl))), warning=warning, **texts)


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    """Owner, project and source, as far as they are named; a source is a plain address of the web."""
    texts = {}
    for name in _TEXTS:
        value = fields.get(name, "")
        if not isinstance(value, str | None):
            raise _UnreadableError("An owner, a project or a source is not a text.")
        text = (value or "").strip()
        if text and (name != "source_url" or web_address(text)):
            texts[name] = text
    return texts


def _read_sidecar(sidecar: str) -> Mapping[str, object]:
    try:
        content = json.loads(sidecar)
    except ValueError:
        raise _UnreadableError("The sidecar is not JSON.") from None
    fields = {"acl": content} if isinstance(content, list) else content
    if not isinstance(fields, dict) or not {"acl", *_TEXTS}.issuperset(fields):
        raise _UnreadableError(f"The sidecar is neither a list nor an object of acl, {', '.join(_TEXTS)}.")
    return fields


def _principals(value: object) -> tuple[str, ...]:
    """From a list, a JSON list as text, or names separated by commas."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise _UnreadableError("The access list begins like JSON and is not.") from None
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _UnreadableError("The access list is not a list of names.")
    if len(names) > _MAX_PRINCIPALS:
        raise _UnreadableError(f"The access list has more than {_MAX_PRINCIPALS} entries.")
    return tuple(name.strip() for name in names if name.strip())
