"""Parser for the DATABASES setting: the databases that users can query, and who may do so. Pure."""

import json
import re
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from shared.platform.models import Model

_View = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]{0,62}\.[a-z_][a-z0-9_]{0,62}$")]
_Principal = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
_ID = re.compile(r"db-[a-z0-9-]{1,40}", re.ASCII)


class DatabaseSource(Model):
    """A database that users can query, as configured in DATABASES.

    Attributes:
        name: the name shown to users.
        user: a database role, which should have SELECT permission on the views and no other.
        password: None = use an Entra ID token of the app's identity.
        views: the views that users can query, as `schema.view`.
        access: principals who may read all of these views, in the format of a document's access list.
    """

    kind: Literal["postgresql"] = "postgresql"
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    host: str = Field(min_length=1)
    port: int = Field(default=5432, ge=1, le=65535)
    database: str = Field(min_length=1)
    user: str = Field(min_length=1)
    password: str | None = Field(default=None, min_length=1, repr=False)
    views: tuple[_View, ...] = Field(min_length=1, max_length=50)
    access: tuple[_Principal, ...] = Field(min_length=1)

    @property
    def doc_id(self) -> str:
        """Id under which this database is listed among the documents. No document has this id."""
        return f"db-{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether the database runs on this machine. Connections to other hosts are encrypted and
        certificates are verified.
        """
        return self.host in ("127.0.0.1", "::1", "localhost")


def is_database_id(doc_id: str) -> bool:
    """Return whether an id belongs to a database rather than a document. The database may no longer be
    configured.
    """
    return _ID.fullmatch(doc_id) is not None


@cache
def database_sources(text: str) -> tuple[DatabaseSource, ...]:
    """Parse the DATABASES setting, a JSON list of databases.

    Raises:
        ValueError: the text is not a list of databases. The message does not quote any value.
    """
    try:
        sources = TypeAdapter(tuple[DatabaseSource, ...]).validate_python(json.loads(text or "[]"))
    except ValidationError as wrong:
        first = wrong.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the list'}: {first['msg']}") from None
    except ValueError:
        raise ValueError("not JSON") from None
    if len({source.name for source in sources}) < len(sources):
        raise ValueError("two databases have the same name")
    return sources
