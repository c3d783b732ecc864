"""Messages to people about sub-agents, in the question's language: English or German. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.evidence.messages import GERMAN as GERMAN_QUESTION
from shared.evidence.messages import messages_for
from shared.runs.models import ChildStatus, ProfileName
from shared.subagents.models import WarningCode
from shared.subagents.policy_models import FallbackPlan


@dataclass(frozen=True)
class SubagentWords:
    """Our sentences about sub-agents in one language; `{}` is filled in.

    Attributes:
        badges: what each kind is called.
        warnings: what each code means, a sentence each.
        ended: how one ended that did not come to its end.
        used, unused: what became of what it had found until then.
        fallbacks: how the answer came about when no sub-agent brought anything.
        one_source: behind a statement that only one site makes.
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
        "TIME_OUT": "Its time was up.",
        "TOKENS_SPENT": "The amount of text that it may process was used up.",
        "COST_SPENT": "The money that it may cost was used up.",
        "TOOL_FAILED": "A search failed.",
        "MODEL_FAILED": "The model failed.",
        "REPORT_UNREADABLE": "Its report could not be read.",
        "PROFILE_REDUCED": "A simpler sub-agent took over.",
        "PROOF_MISSING": "Statements without a proof were left out.",
        "NOTHING_FOUND": "It found nothing that helps.",
        "CRASHED": "It broke off.",
    },
    ended={
        "running": "It did not come to its end.",
        "late": "It was stopped because its time was up.",
        "failed": "It failed.",
        "partial": "It did not come to its end.",
    },
    used="What it had found until then was used.",
    unused="It had found nothing until then.",
    fallbacks={
        "main_agent_synthesis": "The answer was written from what was found before.",
        "reduced_profile": "The answer was written from what was found before.",
        "abstain_with_guidance": "Nothing else was found that an answer could be written from.",
    },
    web_heading="From outside sources, not from your documents:",
    one_source="one source only",
)
GERMAN = SubagentWords(
    badges={
        "doc_reader": "Dokumentleser",
        "comparator": "Vergleicher",
        "evidence_builder": "Belegsucher",
        "web_verifier": "Web-Prüfer",
    },
    warnings={
        "TIME_OUT": "Seine Zeit war um.",
        "TOKENS_SPENT": "Die Textmenge, die er verarbeiten darf, war verbraucht.",
        "COST_SPENT": "Das Geld, das er kosten darf, war verbraucht.",
        "TOOL_FAILED": "Eine Suche ist fehlgeschlagen.",
        "MODEL_FAILED": "Das Modell ist ausgefallen.",
        "REPORT_UNREADABLE": "Sein Bericht war nicht lesbar.",
        "PROFILE_REDUCED": "Ein einfacherer Helfer hat übernommen.",
        "PROOF_MISSING": "Aussagen ohne Beleg wurden weggelassen.",
        "NOTHING_FOUND": "Er hat nichts gefunden, was hilft.",
        "CRASHED": "Er ist abgebrochen.",
    },
    ended={
        "running": "Er ist nicht fertig geworden.",
        "late": "Er wurde beendet, weil seine Zeit um war.",
        "failed": "Er ist gescheitert.",
        "partial": "Er ist nicht fertig geworden.",
    },
    used="Was er bis dahin gefunden hatte, wurde verwendet.",
    unused="Bis dahin hatte er nichts gefunden.",
    fallbacks={
        "main_agent_synthesis": "Die Antwort wurde aus dem geschrieben, was vorher gefunden war.",
        "reduced_profile": "Die Antwort wurde aus dem geschrieben, was vorher gefunden war.",
        "abstain_with_guidance": "Sonst wurde nichts gefunden, woraus eine Antwort entstehen könnte.",
    },
    web_heading="Aus Quellen außerhalb Ihrer Dokumente:",
    one_source="nur eine Quelle",
)


def subagent_words(question: str) -> SubagentWords:
    """Our sentences in the question's language; English where it is neither clearly."""
    return GERMAN if messages_for(question) is GERMAN_QUESTION else ENGLISH


def warning_of(
    words: SubagentWords,
    profile: ProfileName,
    status: ChildStatus,
    codes: Sequence[WarningCode],
    *,
    found: bool,
) -> str:
    """One sub-agent's warning for the answer: `Comparator: Its time was up. What it …`; empty = all is well.

    Statements that were left out for lack of proof are no loss to the reader of an answer, nor is a crash
    from which it recovered.
    """
    unsaid = {"PROOF_MISSING", "CRASHED"} if status == "done" else {"PROOF_MISSING"}
    told = [words.warnings[code] for code in dict.fromkeys(codes) if code not in unsaid]
    if status == "done" and not told:
        return ""
    if status != "done":
        if not told or status == "late":
            told = [words.ended[status]]
        told.append(words.used if found else words.unused)
    return f"{words.badges[profile]}: {' '.join(told)}"
