"""Printed answers: text, sources, figures, warnings and next questions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from cli.api import Api
from cli.terminal import Terminal, clean

_BORDER = re.compile(r"(?<!\\)\|")
# The API uses the page label "S." in all languages. A publisher's name or a document type may precede or
# follow it.
_SOURCE_PLACES = re.compile(r"\(Source: (?:[^()\n]|\([^()\n]{0,300}\)){1,900}\)")
_PAGE = re.compile(r", S\. (\d{1,6})(?=[,;)])")
_OWN_ADDRESS = re.compile(r"\]\((/api/[^)\s]+)\)")


def with_page_labels(text: str) -> str:
    """Return the text of an answer or summary with English page labels in its sources."""
    return _SOURCE_PLACES.sub(lambda source: _PAGE.sub(r", p. \1", source[0]), text)


def print_answer(api: Api, terminal: Terminal, answer: Mapping[str, Any]) -> None:
    """Print an answer with absolute URLs and English page labels."""
    text = with_page_labels(str(answer.get("text", "")))
    terminal.markdown(_OWN_ADDRESS.sub(lambda match: f"]({api.absolute(match[1])})", text))
    if answer.get("citations"):
        terminal.say("")
    print_citations(api, terminal, answer.get("citations") or ())
    for number, figure in enumerate(answer.get("figures") or (), start=1):
        address = figure.get("image_url") or api.absolute(str(figure.get("path", "")))
        place = f"{figure.get('filename', '')}{_page(figure)}"
        _link(terminal, f"Figure {number}: {place}", address)
    unsupported = answer.get("unsupported_claims")
    if unsupported:
        statements = "1 statement is" if unsupported == 1 else f"{unsupported} statements are"
        terminal.say(f"{statements} not supported by a quotation.", "yellow")
    for question in answer.get("next_questions") or ():
        terminal.say(f"Next: {question}", "dim")


def print_citations(api: Api, terminal: Terminal, citations: Sequence[Mapping[str, Any]]) -> None:
    """Print each citation: number, file, page or time, verification, quotation and URLs."""
    for cited in citations:
        is_computed = cited.get("kind") == "table"
        mark = "computed" if is_computed else "verified" if cited.get("verified") else "not verified"
        if cited.get("kind") == "web":
            mark = f"from outside, {mark} on a snapshot of {str(cited.get('fetched_at', ''))[:10]}"
        publisher = f", published by {cited['published_by']}" if cited.get("published_by") else ""
        sheets = dict.fromkeys(f"{sheet['filename']}{_page(sheet)}" for sheet in cited.get("tables") or ())
        places = "; ".join(sheets) or f"{cited['filename']}{_page(cited)}"
        terminal.say(f"[{cited['n']}] {places}{publisher} ({mark})", "bold")
        if is_computed:
            _print_calculation(terminal, cited)
        else:
            terminal.say(f"    “{cited['quote']}”", "dim")
        if cited.get("url"):
            _link(terminal, "   ", api.absolute(str(cited["url"])))
        if cited.get("source_url"):
            _link(terminal, "    Original:", str(cited["source_url"]))


def _print_calculation(terminal: Terminal, cited: Mapping[str, Any]) -> None:
    """Print the result of a calculation, followed by the query in words and in SQL."""
    # The quotation contains the first rows with numbers formatted as in the answer. `rows` in the JSON has
    # raw values for programs.
    _, *lines = cited["quote"].splitlines() or [""]
    rows = [[cell.strip().replace("\\|", "|") for cell in _BORDER.split(line)[1:-1]] for line in lines]
    terminal.table(cited["columns"], rows, nothing="No rows.")
    if more := cited["row_count"] - len(rows):
        terminal.say(f"    and {more:,} more", "dim")
    terminal.say(f"    {cited['sql_in_words']}", "dim")
    terminal.say(f"    {cited['sql']}", "dim")


def _page(citation: Mapping[str, Any]) -> str:
    seconds = citation.get("start_seconds")
    if seconds is not None:
        return f", at {int(seconds) // 60}:{int(seconds) % 60:02d}"
    return f", page {citation['page_number']}" if citation.get("page_number") else ""


def _link(terminal: Terminal, name: str, address: str) -> None:
    address = clean(address)
    label = Text(clean(f"{name} "))
    # Only http and https addresses become links, because other schemes could start programs.
    is_link = terminal.output.is_terminal and address.startswith(("http://", "https://"))
    label.append(address, style=f"link {address}" if is_link else "")
    if terminal.output.is_terminal:
        terminal.output.print(label, soft_wrap=True)
    else:
        terminal.say(label.plain)
