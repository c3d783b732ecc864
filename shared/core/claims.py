"""Which statement a citation belongs to. Pure."""

_RECENT_CHARS = 4000  # a table whose header row is farther up is rare; the row alone must do then
_MAX_LINE_CHARS = 500


def last_claim(text: str) -> str:
    """The line that `text` ends with; a row of a table comes with the table's header row before it.

    The whole line, because a cell alone ("9 bar") says nothing; of a long one the last 500 characters.
    """
    lines = text[-_RECENT_CHARS:].rstrip().split("\n")
    line = lines[-1][-_MAX_LINE_CHARS:].strip()
    if not lines[-1].lstrip().startswith("|"):
        return line
    header = lines[-1]
    for above in reversed(lines[:-1]):
        if not above.lstrip().startswith("|"):
            break
        header = above
    return line if header is lines[-1] else f"{header[:_MAX_LINE_CHARS].strip()}\n{line}"
