"""Builds the views of sub-agents that users see during and after a run. They never contain transcripts.

Our own sentences are in the answer's language: English or German.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared.answering.children import Child, children_of, delegations_of
from shared.answering.policy import REASON_WORDS
from shared.answering.policy_models import FallbackPlan
from shared.answering.subagent_models import Delegation, SubagentState, WarningCode
from shared.evidence import messages
from shared.evidence.messages import is_german, messages_in
from shared.evidence.reader_text import readable_line
from shared.runs.journal import Journal
from shared.runs.models import ChildStatus, ProfileName, RunRecord, SubagentView

# Maximum number of open questions shown per sub-agent, because views are short overviews.
_MOST_UNCERTAIN = 8
_MOST_CHARS = 300


@dataclass(frozen=True)
class SubagentWords:
    """Texts about sub-agents for users, in one language.

    Attributes:
        badges: display names of the profiles.
        warnings: a sentence for each code.
        ended: sentences about sub-agents that didn't finish.
        used, unused: whether its partial results were used.
        fallbacks: how the answer was written if no sub-agent returned a result.
        one_source: note after a statement that only one site makes.
    """

    badges: Mapping[ProfileName, str]
    warnings: Mapping[WarningCode, str]
    ended: Mapping[ChildStatus, str]
    used: str
    unused: str
    fallbacks: Mapping[FallbackPlan, str]
    web_heading: str
    one_source: str


ENGLISH = SubagentWords(
    badges={
        "doc_reader": "Document reader",
        "comparator": "Comparator",
        "evidence_builder": "Evidence finder",
        "web_verifier": "Web verifier",
    },
    warnings={
        "TIME_OUT": "It ran out of time.",
        "TOKENS_SPENT": "It reached its limit of text.",
        "COST_SPENT": "It reached its cost limit.",
        "TOOL_FAILED": "A search failed.",
        "MODEL_FAILED": "The model failed.",
        "REPORT_UNREADABLE": "Its report could not be read.",
        "PROFILE_REDUCED": "A simpler sub-agent took over.",
        "PROOF_MISSING": "Statements without a proof were left out.",
        "NOTHING_FOUND": "It found nothing relevant.",
        "CRASHED": "It stopped unexpectedly.",
    },
    ended={
        "running": "It did not finish.",
        "late": "It was stopped because it ran out of time.",
        "failed": "It failed.",
        "partial": "It did not finish.",
    },
    used="What it had found by then was used.",
    unused="It had found nothing by then.",
    fallbacks={
        "main_agent_synthesis": "The answer uses what was found before.",
        "reduced_profile": "The answer uses what was found before.",
        "abstain_with_guidance": "Nothing else was found to answer from.",
    },
    web_heading="From outside sources, not from your documents:",
    one_source="one source only",
)
GERMAN = SubagentWords(
    badges={
        "doc_reader": "Dokumentanalyse",
        "comparator": "Vergleich",
        "evidence_builder": "Belegsuche",
        "web_verifier": "Webprüfung",
    },
    warnings={
        "TIME_OUT": "Die Zeit ist abgelaufen.",
        "TOKENS_SPENT": "Die zulässige Textmenge ist erreicht.",
        "COST_SPENT": "Die Kostengrenze ist erreicht.",
        "TOOL_FAILED": "Eine Suche ist fehlgeschlagen.",
        "MODEL_FAILED": "Das Modell ist ausgefallen.",
        "REPORT_UNREADABLE": "Der Bericht war nicht lesbar.",
        "PROFILE_REDUCED": "Ein einfacherer Sub-Agent hat übernommen.",
        "PROOF_MISSING": "Aussagen ohne Beleg wurden weggelassen.",
        "NOTHING_FOUND": "Es wurde nichts Relevantes gefunden.",
        "CRASHED": "Die Arbeit wurde unerwartet beendet.",
    },
    ended={
        "running": "Die Arbeit wurde nicht abgeschlossen.",
        "late": "Die Arbeit wurde beendet, weil die Zeit abgelaufen war.",
        "failed": "Die Arbeit ist fehlgeschlagen.",
        "partial": "Die Arbeit wurde nicht abgeschlossen.",
    },
    used="Die Ergebnisse bis dahin wurden verwendet.",
    unused="Bis dahin gab es keine Ergebnisse.",
    fallbacks={
        "main_agent_synthesis": "Die Antwort stützt sich auf das, was vorher gefunden wurde.",
        "reduced_profile": "Die Antwort stützt sich auf das, was vorher gefunden wurde.",
        "abstain_with_guidance": "Sonst wurde nichts gefunden, worauf sich eine Antwort stützen ließe.",
    },
    web_heading="Aus Quellen außerhalb Ihrer Dokumente:",
    one_source="nur eine Quelle",
)


# Only the heading and the note become part of an answer, so only they must not be English.
OTHER_LANGUAGE = replace(ENGLISH, web_heading="Web:", one_source="1")


def subagent_words(language: str) -> SubagentWords:
    """Return the texts for a language code: German, English, or English with a neutral web heading for other
    languages.
    """
    if is_german(language):
        return GERMAN
    return ENGLISH if messages_in(language) is messages.ENGLISH else OTHER_LANGUAGE


def warning_of(words: SubagentWords, state: SubagentState, status: ChildStatus) -> str:
    """Return a sub-agent's warning for the answer, such as `Comparator: It failed. What it …`, or "" if there
    is none.

    Missing proofs don't matter to the answer's reader, nor does a crash from which the sub-agent recovered.
    """
    hidden_codes = {"PROOF_MISSING", "CRASHED"} if status == "done" else {"PROOF_MISSING"}
    texts = [words.warnings[code] for code in state.warnings if code not in hidden_codes]
    if status == "done" and not texts:
        return ""
    if status != "done":
        if not texts or status == "late":
            texts = [words.ended[status]]
        texts.append(words.used if state.findings or state.hits else words.unused)
    return f"{words.badges[state.profile]}: {' '.join(texts)}"


async def live_views(record: RunRecord, journal: Journal) -> tuple[SubagentView, ...]:
    """Return the views of all sub-agents of a run, during the run or after its end."""
    now = datetime.now(UTC)
    status_of = live_status if record.finished_at is None else final_status
    delegations = await delegations_of(journal)
    by_step = {delegation.step: delegation for delegation in delegations}
    children = await children_of(journal, delegations)
    return tuple(view_of(by_step[child.task.step], child, status_of(child, now)) for child in children)


def view_of(delegation: Delegation, child: Child, status: ChildStatus) -> SubagentView:
    """Return the view of a sub-agent, with a status that the caller determined."""
    state, words = child.state, subagent_words(delegation.language)
    read_from = (*(hit.doc_id for hit in state.hits), *child.task.doc_ids)
    return SubagentView(
        child_id=child.task.child_id,
        profile=state.profile,
        badge=words.badges[state.profile],
        status=status,
        reason_codes=delegation.decided.reason_codes,
        reasons=tuple(REASON_WORDS[code] for code in delegation.decided.reason_codes),
        started_at=state.started_at,
        ended_at=state.ended_at,
        turns=state.turns_ended,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        tool_calls=state.tool_uses,
        doc_ids=tuple(dict.fromkeys(read_from)),
        claims=sum(finding.kind != "section" for finding in state.findings),
        proved=sum(bool(finding.proofs) for finding in state.findings),
        uncertainty=tuple(_sentence(text) for text in state.uncertainty[:_MOST_UNCERTAIN]),
        warnings=_warnings(state, status, words),
    )


def live_status(child: Child, now: datetime) -> ChildStatus:
    """Return the status of a sub-agent during the run. It is `late` if the sub-agent is still running after
    its deadline.
    """
    is_late = child.state.status == "running" and now >= child.task.deadline
    return "late" if is_late else child.state.status


def final_status(child: Child, now: datetime) -> ChildStatus:
    """Return the status of a sub-agent after its end. If its stored status is still `running`, it is `late`
    or `failed`.
    """
    status = live_status(child, now)
    return "failed" if status == "running" else status


def _warnings(state: SubagentState, status: ChildStatus, words: SubagentWords) -> tuple[str, ...]:
    warnings = [words.warnings[code] for code in state.warnings]
    # A sub-agent that crashed or was terminated could not add a warning about its end itself.
    is_silent = status in ("late", "failed") and state.status == "running"
    return (words.ended[status], *warnings) if is_silent else tuple(warnings)


def _sentence(text: str) -> str:
    """Return a model's sentence on one line, truncated and safe to show."""
    line = " ".join(text.split())
    return readable_line(line if len(line) <= _MOST_CHARS else line[:_MOST_CHARS].rstrip() + "…")
