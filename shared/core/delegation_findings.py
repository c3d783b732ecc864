"""What sub-agents found, for the main agent's prompt and for the reader. Pure.

Findings are a model's words about material: they go into a prompt escaped, as notes to be checked, and what
the answer quotes is quoted from `<documents>` alone. What was found on the web is no evidence: it is shown
apart, by rule and not by a model, each statement with the host of its pages as a link.
"""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote, urlsplit

from shared.core.delegation_words import SubagentWords
from shared.core.prompts import element
from shared.core.reader_text import readable
from shared.models.subagents import Finding, FoundProof, SubagentState

_MOST_FINDINGS = 24  # and no more characters than these: some 1,100 tokens of the main agent's prompt
_MOST_CHARS = 4_000
_MOST_OPEN = 8
_MOST_WEB = 8  # statements of the web: the section stays shorter than an answer
_MOST_LINKS = 3  # of one statement
_MOST_NOTES = 3
_MOST_URL_CHARS = 2_000
_URL_SIGNS = "/:?&=#%@+,;!~$-._"  # others are written as %XX: none of these ends a Markdown link


def findings_xml(states: Sequence[SubagentState]) -> str:
    """`<findings>` with statements, proved ones first, and what stayed open; empty when there are none."""
    findings = [finding for state in states for finding in state.findings if finding.kind != "web"]
    findings.sort(key=lambda finding: not finding.proofs)
    parts = list(_fitting(map(_finding, findings[:_MOST_FINDINGS])))
    if not parts:
        return ""
    left_open = [text for state in states if not _is_web(state) for text in state.uncertainty]
    parts += [element("open", text) for text in dict.fromkeys(left_open[:_MOST_OPEN])]
    return "<findings>\n" + "\n".join(parts) + "\n</findings>"


def web_section(states: Sequence[SubagentState], words: SubagentWords) -> str:
    """Markdown of what the web says; empty when nothing was found there that has a page to show."""
    findings = [finding for state in states for finding in state.findings if finding.kind == "web"]
    lines = [line for finding in findings[:_MOST_WEB] if (line := _web_line(finding, words))]
    if not lines:
        return ""
    notes = [text for state in states if _is_web(state) for text in state.uncertainty]
    lines += [f"- {text}" for note in notes[:_MOST_NOTES] if (text := _one_line(note))]
    return f"**{words.web_heading}**\n\n" + "\n".join(lines)


def _is_web(state: SubagentState) -> bool:
    return state.profile == "web_verifier"


def _fitting(parts: Iterator[str]) -> Iterator[str]:
    chars = 0
    for part in parts:
        chars += len(part)
        if chars > _MOST_CHARS:
            return
        yield part


def _finding(finding: Finding) -> str:
    values = {"kind": finding.kind, "about": finding.dimension}
    if finding.confidence is not None:
        values["confidence"] = f"{finding.confidence:.2f}"
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in values.items() if value)
    proofs = "".join(
        f'<proof doc_id="{escape(proof.doc_id)}">{escape(proof.quote, quote=False)}</proof>'
        for proof in finding.proofs
    )
    return f"<finding{attributes}>{element('statement', finding.text)}{proofs}</finding>"


def _web_line(finding: Finding, words: SubagentWords) -> str:
    links = dict(link for proof in finding.proofs if (link := _link(proof)) is not None)
    text = _one_line(finding.text)
    if not text or not links:
        return ""
    single = f"; {words.one_source}" if len(links) == 1 else ""
    return f"- {text} ({', '.join(list(links.values())[:_MOST_LINKS])}{single})"


def _link(proof: FoundProof) -> tuple[str, str] | None:
    """The host with a link to the page; None for an address that nobody should be led to."""
    try:
        parts = urlsplit(proof.url)
        host = parts.hostname or ""
    except ValueError:
        return None
    is_plain = parts.scheme in ("http", "https") and "@" not in parts.netloc
    if not is_plain or not host.isascii() or "." not in host or len(proof.url) > _MOST_URL_CHARS:
        return None
    return host, f"[{host}]({quote(proof.url, safe=_URL_SIGNS)})"


def _one_line(text: str) -> str:
    """A model's words as part of a line of ours; a code span in them could take in what follows."""
    return readable(" ".join(text.replace("`", "'").split()))
