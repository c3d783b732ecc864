"""Admission of documents from the backlog to ingestion, and restart of ingestions that died.

Whoever requests an ingestion calls `admit`, and a finished ingestion passes its place to the next document.
The watch, a queue message sent every five seconds while there is work, handles everything else: executions
that died, places that weren't released, and documents whose pause is over.
"""

import secrets
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from shared.documents.ids import ingestion_id
from shared.documents.open_work import Admission, OpenWork, Place
from shared.ingestion.admission_rules import assign_places
from shared.ingestion.models import IngestRequest, WatchMessage
from shared.ingestion.services import IngestionServices
from shared.platform.errors import ConflictError, DependencyError
from shared.platform.instances import Instances, is_at_work
from shared.platform.names import INGESTIONS_QUEUE
from shared.platform.telemetry import get_logger
from shared.platform.tracing import link_to, root

WATCH_S = 5.0
# A watch without a message for this long counts as lost and is started again.
_LOST = timedelta(seconds=15)
# An execution that dies is restarted up to this many times before its document is paused.
_MAX_STARTS = 3
# Length of the pause for a document whose execution keeps dying.
_REST = timedelta(minutes=5)
# Delay before the next check if a new execution can't be started yet, because the previous one is still
# ending.
_SOON_S = 1.0
# Maximum number of attempts to write the admission row, for which several processes may compete.
_MAX_ATTEMPTS = 16


class Admissions:
    """Scheduler that assigns the limited number of ingestion places to waiting documents and starts their
    ingestion.
    """

    def __init__(self, services: IngestionServices, instances: Instances) -> None:
        self._open = services.documents.open_work
        self._queues = services.queues
        self._instances = instances

    async def admit(self, leaving: str = "") -> None:
        """Assign free ingestion places to waiting documents, and start their ingestion.

        Args:
            leaving: id of a document whose place is released; "" = none.

        Raises:
            GroundworkError: a service failed. The watch admits the documents later.
        """
        for place in await self._fill({leaving}):
            # The next document isn't part of the work that released the place, so it gets its own trace.
            with root("start_ingestion", "internal") if leaving else nullcontext():
                await self._start(place)

    async def look(self, token: str = "") -> None:
        """Check every document that has a place, restart executions that died, and assign free places to
        waiting documents.

        Args:
            token: token of the watch message; nothing is done if a newer message replaced it. "" = check
                once, without continuing the watch.

        Raises:
            GroundworkError: a service failed.
        """
        admission = await self._open.admission()
        if token and admission.watch != token:
            return
        ended, died = await self._check_places(admission.places)
        assigned = await self._fill(ended, died)
        await self._watch(token)
        for place in [*died, *assigned]:
            await self._start(place)

    async def _check_places(self, places: Sequence[Place]) -> tuple[set[str], list[Place]]:
        """Return the ids of documents that no longer need a place, and the places whose execution died and
        must be restarted. A document whose execution keeps dying is paused.
        """
        now = datetime.now(UTC)
        ended: set[str] = set()
        died: list[Place] = []
        for place in places:
            work = await self._open.get(place.doc_id)
            if work is None:
                ended.add(place.doc_id)
            elif place.look_at > now or is_at_work(
                await self._instances.state(ingestion_id(place.blob_name))
            ):
                continue
            elif place.starts >= _MAX_STARTS:
                await self._rest(work, now)
                ended.add(place.doc_id)
            else:
                pause = timedelta(seconds=WATCH_S * 2**place.starts)
                died.append(place.model_copy(update={"starts": place.starts + 1, "look_at": now + pause}))
        return ended, died

    async def _rest(self, work: OpenWork, now: datetime) -> None:
        get_logger().warning("ingestion.died_again", run_id=ingestion_id(work.blob_name))
        try:
            await self._open.replace(work.model_copy(update={"due_at": now + _REST}))
        except ConflictError:
            # The backlog row has changed, so there is a new reason to ingest the document. Don't pause it.
            return

    async def _fill(self, leaving: Collection[str], died: Sequence[Place] = ()) -> list[Place]:
        """Release the places of the documents in `leaving`, update the places in `died`, and assign all free
        places to waiting documents. Return the new assignments.
        """
        renewed = {place.doc_id: place for place in died}
        is_fresh = False
        for _ in range(_MAX_ATTEMPTS):
            async with self._open.changing:
                admission = await self._open.admission()
                remaining = [
                    renewed.get(place.doc_id, place)
                    for place in admission.places
                    if place.doc_id not in leaving
                ]
                assigned = await self._free_places(remaining, is_fresh=is_fresh)
                places = (*remaining, *assigned)
                if places != admission.places:
                    changed = admission.model_copy(update={"places": places})
                    try:
                        await self._open.admit(await self._with_watch(changed) if assigned else changed)
                    except ConflictError:
                        continue
            # A place is still free. Another process may have added work after this backlog was read and found
            # no free place, so try once more with a fresh backlog.
            if assigned or is_fresh or places == admission.places:
                return assigned
            leaving, renewed, is_fresh = (), {}, True
        raise _contended()

    async def _free_places(self, occupied: Sequence[Place], *, is_fresh: bool) -> list[Place]:
        backlog = await self._open.backlog(is_fresh=is_fresh)
        is_asked = await self._open.is_asked()
        while True:
            assigned = assign_places(backlog, occupied, is_asked=is_asked, now=datetime.now(UTC))
            rows = [await self._open.get(place.doc_id) for place in assigned]
            if None not in rows:
                return assigned
            # Another process finished some of the chosen documents, so choose again.
            backlog = await self._open.backlog()

    async def _with_watch(self, admission: Admission) -> Admission:
        """Return the admission with an active watch. If no watch message is on its way, send one."""
        now = datetime.now(UTC)
        if admission.watch and admission.watched_at is not None and now - admission.watched_at < _LOST:
            return admission
        # Send the message before writing the row. If the write fails, the message carries an unknown token
        # and is ignored.
        token = secrets.token_hex(8)
        await self._queues.send(INGESTIONS_QUEUE, WatchMessage(token=token).model_dump_json(), WATCH_S)
        return admission.model_copy(update={"watch": token, "watched_at": now})

    async def _watch(self, token: str) -> None:
        """Schedule the next watch message while there is work left. Each message has a new token, so a
        message that is delivered twice takes effect only once.
        """
        for _ in range(_MAX_ATTEMPTS):
            async with self._open.changing:
                admission = await self._open.admission()
                if token and admission.watch != token:
                    return
                ended = admission.model_copy(update={"watch": ""}) if token else admission
                has_work = bool(admission.places) or bool(await self._open.backlog())
                changed = await self._with_watch(ended) if has_work else ended
                try:
                    if changed != admission:
                        await self._open.admit(changed)
                except ConflictError:
                    continue
                return
        raise _contended()

    async def _start(self, place: Place) -> None:
        instance = ingestion_id(place.blob_name)
        payload = {**IngestRequest(blob_name=place.blob_name).model_dump(mode="json"), **link_to(instance)}
        if not await self._instances.start_again("ingest_document", instance, payload):
            await self._queues.send(INGESTIONS_QUEUE, WatchMessage().model_dump_json(), _SOON_S)


def _contended() -> DependencyError:
    return DependencyError("Too many concurrent changes to the list of admitted documents.", "Try again.")
