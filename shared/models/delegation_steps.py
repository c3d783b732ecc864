"""The loop's vocabulary of delegation: sub-agents are chosen, run by the driver, and have ended.

Part of `shared.models.steps`, and like it without content: what sub-agents bring lies in working memory.
"""

from datetime import datetime
from typing import Literal

from shared.models.base import Model
from shared.models.subagents import SubagentEnd, SubagentStart


class RunSubagents(Model):
    """Run sub-agents side by side; the driver does it, not an activity.

    Attributes:
        until: an instant with zone; who has not ended by then is ended.
    """

    kind: Literal["run_subagents"] = "run_subagents"
    children: tuple[SubagentStart, ...]
    until: datetime


class SubagentsChosen(Model):
    """Sub-agents are to work on the question before its answer is written; their tasks are stored."""

    kind: Literal["subagents_chosen"] = "subagents_chosen"
    children: tuple[SubagentStart, ...]
    until: datetime


class DelegationDeferred(Model):
    """Too many sub-agents wait for their turn: it is decided anew after `delay_s` seconds."""

    kind: Literal["delegation_deferred"] = "delegation_deferred"
    delay_s: float


class SubagentsEnded(Model):
    """No sub-agent is at work any more; `ends` are in the order of the children."""

    kind: Literal["subagents_ended"] = "subagents_ended"
    ends: tuple[SubagentEnd, ...]
