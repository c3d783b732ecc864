"""Consent to use the web. The user is asked once per thread, before anything is sent. Pure.

Every run reads documents in its first search, and a model may then send parts of them to the web in an
encoding that no filter recognises. So the user sees the first text that would be sent, and decides for the
thread. WEB_CONSENT presets the decision.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from shared.evidence.messages import GERMAN, messages_in
from shared.evidence.untrusted_text import one_line
from shared.runs.models import Choice, ClarificationOption
from shared.tools.delegate import Delegate
from shared.tools.outside import WEB_TOOLS
from shared.tools.tool_calls import PlannedCall, RefusedCall

WebConsent = Literal["ask", "allow", "deny"]

# The argument of each tool that the user sees before it is sent. A sub-agent derives its search queries from
# its task.
_SENT: Mapping[str, str] = {"web_search": "query", "web_fetch": "url", Delegate.name: "task"}

# Replies that grant consent. They must match as a whole, because "don't use the web" also contains words of
# consent.
_GRANTS = frozenset({"1", "yes", "y", "yes please", "ok", "okay", "allow", "ja", "ja bitte", "erlauben"})
_YES, _NO = "Yes, use the web in this conversation", "No, answer without the web"
_YES_GERMAN, _NO_GERMAN = "Ja, das Web in dieser Unterhaltung nutzen", "Nein, ohne das Web antworten"


def consent_of(preset: WebConsent, of_thread: bool | None, of_run: bool | None) -> bool | None:
    """Return whether the web may be used, or None if the user must be asked.

    Args:
        of_thread: the user's decision earlier in the thread; None = not asked.
        of_run: the user's decision in this run.
    """
    if preset != "ask":
        return preset == "allow"
    return of_thread if of_run is None else of_run


def uses_web(planned: PlannedCall) -> bool:
    """Return whether a planned call would send data to the web, directly or through a sub-agent."""
    arguments = planned.arguments
    if arguments is None:
        return False
    is_verifier = planned.call.name == Delegate.name and arguments.get("profile") == "web_verifier"
    return is_verifier or planned.call.name in WEB_TOOLS


def await_consent(
    calls: Sequence[PlannedCall], held: Collection[PlannedCall], consent: bool | None
) -> tuple[tuple[PlannedCall, ...], bool]:
    """Return the calls of a turn, with some web calls refused if necessary, and whether the user must be
    asked before the calls are made.

    Args:
        held: calls for which the run has to wait. A turn can wait for only one thing, so if it contains one
            of them, its web calls are refused until the next turn.
    """
    if consent is not None or not any(map(uses_web, calls)):
        return tuple(calls), False
    if any(call in held and not uses_web(call) for call in calls):
        return tuple(_refuse_for_now(call) if uses_web(call) else call for call in calls), False
    return tuple(calls), True


def consent_question(
    calls: Sequence[PlannedCall], language: str
) -> tuple[str, tuple[ClarificationOption, ...]]:
    """Return the question for the user, which quotes the text that would be sent, and its two options."""
    sent_texts = [
        one_line(str((call.arguments or {}).get(_SENT[call.call.name], "")))
        for call in calls
        if uses_web(call)
    ]
    is_german = messages_in(language) is GERMAN
    if is_german:
        texts = "; ".join(f"„{text}“" for text in sent_texts)
        question = f"Darf ich für diese Unterhaltung das Web nutzen? Als Erstes würde gesendet: {texts}"
    else:
        texts = "; ".join(f"“{text}”" for text in sent_texts)
        question = f"May I use the web in this conversation? The first text sent would be: {texts}"
    titles = (_YES_GERMAN, _NO_GERMAN) if is_german else (_YES, _NO)
    options = tuple(ClarificationOption(number=n, title=title) for n, title in enumerate(titles, start=1))
    return question, options


def is_granted(choice: Choice) -> bool:
    """Return whether a reply clearly allows the use of the web."""
    text = " ".join(choice.said.casefold().replace(",", " ").split()).rstrip(".!")
    titles = {" ".join(title.casefold().replace(",", " ").split()) for title in (_YES, _YES_GERMAN)}
    return text in _GRANTS or text in titles


def consent_result(*, granted: bool) -> dict[str, Any]:
    """Return the result of a web call that waited for the user's consent: a refusal if consent was denied,
    or a note that the sub-agent was started.
    """
    if granted:
        return {"success": True, "note": "The person allowed the web. The sub-agent has been started."}
    return {
        "success": False,
        "error": "The person did not allow the use of the web in this conversation.",
        "type": "AccessDeniedError",
        "hints": ["Answer from the documents, and say what they leave open."],
    }


def _refuse_for_now(planned: PlannedCall) -> PlannedCall:
    refusal = RefusedCall(
        error="The person is asked before the web is used, and one question is asked at a time.",
        error_type="BudgetExceededError",
        hints=("Call it again in the next turn.",),
    )
    return PlannedCall(call=planned.call, refused=refusal)
