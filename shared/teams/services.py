"""The clients and stores that `shared.teams` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.answering.services import AnsweringServices
from shared.ingestion.services import IngestionServices
from shared.teams.ports import BotFiles, BotOutbox, BotTurnStore


class TeamsServices(IngestionServices, AnsweringServices, Protocol):
    """What teams needs of the outside world."""

    @property
    def bot_outbox(self) -> BotOutbox | None: ...

    @property
    def bot_files(self) -> BotFiles | None: ...

    @property
    def bot_turns(self) -> BotTurnStore | None: ...
