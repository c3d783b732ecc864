"""The worker process that parses files: `python -c "…; main()"`, one JSON line in, one JSON line out.

A file may crash it or hang it; its owner (`parser_process`) sees to that. It ends when its input ends, so it
does not outlive the host.
"""

import json
import os
import sys
from typing import Any

from shared.ingestion.parse_file import ParseJob, RenderJob, parse_file, render
from shared.platform.errors import BadDocumentError, GroundworkError
from shared.platform.models import Model

MEMORY_LIMIT_BYTES = 3 << 30  # of address space; the 252-page filing of financebench takes 0.3 GB of it


class WorkerReply(Model):
    """What the worker answers: nothing but `ok`, or why the file cannot be read."""

    ok: bool
    reason: str = ""
    hint: str = ""


def main() -> None:
    """Serve until the input ends."""
    # Libraries may print: only this module writes to the pipe that the owner reads.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    for line in sys.stdin:
        replies.write(_answer(line).model_dump_json() + "\n")
        replies.flush()


def _answer(line: str) -> WorkerReply:
    try:
        _do(json.loads(line))
    except MemoryError:
        limit_gib = MEMORY_LIMIT_BYTES >> 30
        return _refused(
            BadDocumentError(
                f"Reading the file takes more than {limit_gib} GiB of memory.", "Split the file."
            )
        )
    except GroundworkError as refused:
        return _refused(refused)
    except Exception as error:  # noqa: BLE001 - a parser met what it was not made for; the file's owner is told
        return _refused(
            BadDocumentError(
                f"The file's structure is not understood ({type(error).__name__}).", "Export the file again."
            )
        )
    return WorkerReply(ok=True)


def _do(asked: dict[str, Any]) -> None:
    if asked.get("kind") == "render":
        render(RenderJob.model_validate(asked))
        return
    job = ParseJob.model_validate(asked)
    job.target.write_text(parse_file(job).model_dump_json(), encoding="utf-8", errors="replace")


def _refused(error: GroundworkError) -> WorkerReply:
    return WorkerReply(ok=False, reason=error.detail, hint=" ".join(error.hints))


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit; the time limit holds there, too
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = MEMORY_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
