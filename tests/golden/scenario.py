"""The registry of scenarios, in which each module with scenarios registers its own."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.runs.plan import QuestionPlan
from tests.fakes.plans import plan_reply
from tests.golden.stage import Driver, Stage

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A scenario: a script that asks questions, with its settings.

    Attributes:
        name: the name of its file in `streams/`.
        drivers: the drivers that must produce the same streams. The inline driver can't wait for replies.
        is_slow: whether it waits for a deadline. Slow scenarios run only with `make e2e`.
        settings: the settings that differ from those of the stage.
        parts: functions by field of the services, which create the replacements for these fields.
    """

    name: str
    play: Play
    drivers: tuple[Driver, ...]
    is_slow: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    *,
    inline: bool = False,
    slow: bool = False,
    parts: Mapping[str, Callable[[], Any]] | None = None,
    **settings: Any,
) -> Callable[[Play], Play]:
    """Register the decorated function as a scenario under its name.

    Args:
        inline: whether the scenario also runs with the inline driver.
        slow: whether the scenario waits for a deadline.
    """

    def add(play: Play) -> Play:
        drivers: tuple[Driver, ...] = ("durable", "inline") if inline else ("durable",)
        SCENARIOS[play.__name__] = Scenario(play.__name__, play, drivers, slow, settings, parts or {})
        return play

    return add


def plan(**changes: Any) -> dict[str, Any]:
    """Return the model's plan for the question about the pump's pressure, with some fields changed.

    Args:
        changes: values for fields of the stored plan.
    """
    fields = {
        "query_type": "CONTENT_SEARCH",
        "intent": "fact_lookup",
        "standalone_question": "At what pressure does the pump run?",
        "reply": "",
        "search_queries": ["pump pressure"],
        "language": "en",
        "filters": [],
        "document_references": [],
        "todo": [
            {
                "description": "The pressure is known",
                "acceptance_criteria": "It is cited",
                "dependencies": [],
            },
            {"description": "It is checked", "acceptance_criteria": "It is cited", "dependencies": [1]},
        ],
        **changes,
    }
    return plan_reply(QuestionPlan.model_validate(fields)).model_dump(mode="json")
