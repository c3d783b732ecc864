"""Random keys of one data folder: made on the first start, read afterwards, readable by their owner alone."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "secrets.json"


@dataclass(frozen=True)
class StackSecrets:
    """Keys that the servers of one stack ask of each other; they guard nothing beyond this machine."""

    search_key: str
    model_key: str
    token_secret: str


def load_or_make_secrets(data: Path) -> StackSecrets:
    """The folder's secrets. Tokens and keys stay valid over restarts."""
    path = data / FILE_NAME
    if path.exists():
        return StackSecrets(**json.loads(path.read_text(encoding="utf-8")))
    made = StackSecrets(*(secrets.token_hex(32) for _ in range(3)))
    # Written aside and moved into place: a kill in between must not leave half a file.
    draft = data / f"{FILE_NAME}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(made), file)
    draft.rename(path)
    return made
