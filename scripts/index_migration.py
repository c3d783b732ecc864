"""Migrates a search index without downtime, for changes that can't be made to the existing index.

    python -m scripts.index_migration adopt content --index content-blocks   give the index an alias, once
    python -m scripts.index_migration plan content      show what would be done
    python -m scripts.index_migration run content       create the new index, write to both, copy
    python -m scripts.index_migration switch content    compare again, then read the new one
    python -m scripts.index_migration back content      read the old one again
    python -m scripts.index_migration drop content      finish: remove the old index
    python -m scripts.index_migration abandon content   finish: remove the new index

Uses the settings of the app. Only one operator may run it at a time. docs/operate.md explains when and why.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from shared.platform.errors import GroundworkError
from shared.platform.settings import Settings, load_settings
from shared.wiring import opened_index_migration

INDEXES = ("content", "documents", "memory")
_TELL_EVERY_S = 10.0
STEPS = ("adopt", "plan", "run", "switch", "back", "drop", "abandon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform one step of a migration. Return 0 if it is done, or 1 if it was refused or failed."""
    parser = argparse.ArgumentParser(
        prog="index_migration", description="Migrate a search index without downtime."
    )
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("which", choices=INDEXES)
    parser.add_argument(
        "--index",
        default="",
        help="existing index for which `adopt` creates the alias; not allowed for other steps",
    )
    options = parser.parse_args(arguments)
    if (options.step == "adopt") != bool(options.index):
        parser.error("--index is required for the step adopt, and not allowed for other steps")
    try:
        print(asyncio.run(_step(load_settings(), options.step, options.which, options.index)))
    except GroundworkError as failed:
        print(failed.detail, *failed.hints, file=sys.stderr)
        return 1
    return 0


async def _step(settings: Settings, step: str, which: str, index: str) -> str:
    async with opened_index_migration(settings, which, _Progress().page) as migration:
        if step == "adopt":
            await migration.adopt(index)
            return f"The alias stands for {index}."
        if step == "plan":
            plan = await migration.plan()
            return _plan_text(plan.source, plan.target, plan.changes, plan.refused)
        if step in ("drop", "abandon"):
            return f"{await (migration.drop() if step == 'drop' else migration.abandon())} is removed."
        counts = await {"run": migration.copy, "switch": migration.switch, "back": migration.back}[step]()
        return f"Done; at this moment {counts.source} rows in the old index, {counts.target} in the new one."


class _Progress:
    """A printer of progress messages, at most one every ten seconds. A large index takes hours."""

    def __init__(self) -> None:
        self._rows = 0
        self._written = 0
        self._told_at = time.monotonic()

    def page(self, rows: int, changed: int) -> None:
        """Record a page of rows that was copied or compared. `changed` is the number of rows that were
        written.
        """
        self._rows += rows
        self._written += changed
        if time.monotonic() - self._told_at >= _TELL_EVERY_S:
            self._told_at = time.monotonic()
            print(f"{self._rows:,} rows read, {self._written:,} written", file=sys.stderr, flush=True)


def _plan_text(source: str, target: str, changes: Sequence[str], refused: Sequence[str]) -> str:
    if not changes:
        return f"{source} has all that cannot be added to it. New fields are added by the app itself."
    lines = [f"{source} differs from the schema in what only a new index can have:", *changes]
    if refused:
        return "\n".join([*lines, "Its rows cannot be copied; ingest the documents again:", *refused])
    return "\n".join([*lines, f"`run` copies its rows to {target}."])


if __name__ == "__main__":
    sys.exit(main())
