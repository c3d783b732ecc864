"""Renders the findings of sub-agents: `<findings>` for the prompt of the answer, and a section of web
statements for readers.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest
from urllib.parse import quote, urlsplit

from shared.answering.subagent_models import Finding, FoundProof, SubagentState
from shared.answering.views import SubagentWords
from shared.evidence.reader_text import readable_line
from shared.platform.prompts import element

# Maximum number of findings. Together with _MOST_CHARS, it limits them to about 1,100 tokens of the main
# agent's prompt.
_MOST_FINDINGS = 24
_MOST_CHARS = 4_000
_MOST_OPEN = 8
# Maximum number of web statements. It keeps their section shorter than an answer.
_MOST_WEB = 8
# Maximum number of links per statement.
_MOST_LINKS = 3
_MOST_NOTES = 3
_MOST_URL_CHARS = 2_000
# Characters that are safe in Markdown links. All others are percent-encoded.
_URL_SIGNS = "/:?&=#%@+,;!~$-._"


def findings_xml(states: Sequence[SubagentState]) -> str:
    """Render `<findings>` for the answer prompt: proved statements, other statements and open questions.
    Return "" if there are no findings.
    """
    of_each = ([finding for finding in state.findings if finding.kind != "web"] for state in states)
    # Interleave the findings of all sub-agents, so that the maximum number doesn't cut off one sub-agent.
    findings = [finding for row in zip_longest(*of_each) for finding in row if finding is not None]
    findings.sort(key=lambda finding: not finding.proofs)
    parts = list(_fitting(map(_finding, findings[:_MOST_FINDINGS])))
    if not parts:
        return ""
    left_open = [text for state in states if not _is_web(state) for text in state.uncertainty]
    parts += [element("open", text) for text in dict.fromkeys(left_open[:_MOST_OPEN])]
    return "<findings>\n" + "\n".join(parts) + "\n</findings>"


def web_section(states: Sequence[SubagentState], words: SubagentWords) -> str:
    """Return a Markdown section with the statements found on the web, or "" if no statement has a usable
    link.
    """
    findings = [finding for state in states for finding in state.findings if finding.kind == "web"]
    lines = [line for finding in findings[:_MOST_WEB] if (line := _web_line(finding, words))]
    if not lines:
        return ""
    notes = [text for state in states if _is_web(state) for text in state.uncertainty]
    lines += [f"- {text}" for note in notes[:_MOST_NOTES] if (text := readable_line(note))]
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
    text = readable_line(finding.text)
    if not text or not links:
        return ""
    single = f"; {words.one_source}" if len(links) == 1 else ""
    return f"- {text} ({', '.join(list(links.values())[:_MOST_LINKS])}{single})"


def _link(proof: FoundProof) -> tuple[str, str] | None:
    """Return the host of a web page and a Markdown link to it, or None if the URL is unsafe."""
    try:
        parts = urlsplit(proof.url)
        host = parts.hostname or ""
    except ValueError:
        return None
    is_plain = parts.scheme in ("http", "https") and "@" not in parts.netloc
    if not is_plain or not host.isascii() or "." not in host or len(proof.url) > _MOST_URL_CHARS:
        return None
    return host, f"[{host}]({quote(proof.url, safe=_URL_SIGNS)})"
