"""Derives the documents from which a run's answer was written from the run's journal.

Everything that a step stores for later prompts is covered: the plan and its evidence, results of tools and
searches, and all that sub-agents read, whether or not their findings were used. A part of the journal that
isn't known here makes the record incomplete, so the answer can't be shared.
"""

from collections.abc import Awaitable, Callable, Mapping

from pydantic import ValidationError

from shared.answering.children import DELEGATION, FINDINGS, STATE
from shared.answering.delegation_results import Collected
from shared.answering.models import Preparation, TurnResults
from shared.answering.subagent_models import SubagentState
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import NotFoundError
from shared.platform.names import RUN_LOG
from shared.runs.events import ValueLine
from shared.runs.journal import Journal
from shared.runs.provenance import UNKNOWN, Provenance
from shared.runs.run_files import provenance_path

_Read = Callable[[Journal, ValueLine], Awaitable[Provenance]]


async def provenance_of(journal: Journal) -> Provenance:
    """Return all sources that the prompts of a run contained. The result is marked as incomplete if a value
    of the journal is missing or unreadable.
    """
    lines = [event for event in journal.events if isinstance(event, ValueLine)]
    try:
        request = await journal.files.request()
        parts = [await _READERS[line.part](journal, line) for line in lines]
    except (KeyError, NotFoundError, ValidationError):
        return UNKNOWN
    conversation = request.conversation
    of_thread = Provenance(is_follow_up=bool(conversation.summary or conversation.turns))
    return Provenance.joined((of_thread, *parts))


async def keep_provenance(run_id: str, provenance: Provenance, blobs: BlobStore) -> None:
    """Store the provenance next to the run's answer."""
    await write_model(blobs, RUN_LOG, provenance_path(run_id), provenance)


async def stored_provenance(run_id: str, blobs: BlobStore) -> Provenance:
    """Return the stored provenance of a run's answer. If none is stored, return one that is marked as
    incomplete.
    """
    return await find_model(blobs, RUN_LOG, provenance_path(run_id), Provenance) or UNKNOWN


async def _from_preparation(journal: Journal, line: ValueLine) -> Provenance:
    preparation = await journal.value(line, Preparation)
    evidence = preparation.evidence
    return Provenance.joined(
        (preparation.stored.provenance, evidence.provenance if evidence else Provenance())
    )


async def _from_results(journal: Journal, line: ValueLine) -> Provenance:
    return (await journal.value(line, TurnResults)).provenance or UNKNOWN


async def _from_collected(journal: Journal, line: ValueLine) -> Provenance:
    collected = await journal.value(line, Collected)
    return Provenance.joined((collected.evidence.provenance, Provenance.of(*collected.proofs)))


async def _from_state(journal: Journal, line: ValueLine) -> Provenance:
    state = await journal.value(line, SubagentState)
    if state.provenance is None and (state.hits or state.records or state.messages):
        return UNKNOWN
    return state.provenance or Provenance()


async def _no_sources(journal: Journal, line: ValueLine) -> Provenance:
    """Return an empty provenance, because the sources of this journal part are covered by other parts."""
    del journal, line
    return Provenance()


_READERS: Mapping[str, _Read] = {
    "preparation": _from_preparation,
    "results": _from_results,
    "collected": _from_collected,
    STATE: _from_state,
    FINDINGS: _no_sources,
    DELEGATION: _no_sources,
    "turn": _no_sources,
    "refused": _no_sources,
    "facts": _no_sources,
}
