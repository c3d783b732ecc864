"""Determines the revision of this repository, for reports."""

import subprocess
from pathlib import Path

_PROJECT = Path(__file__).parents[2]


def revision() -> str:
    """Return the commit, followed by `+changes` if files were modified, or "unknown" outside a repository."""
    head, changed = (
        subprocess.run(["git", *arguments], cwd=_PROJECT, capture_output=True, text=True, check=False)
        for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain"))
    )
    if head.returncode:
        return "unknown"
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")
