"""The clients and stores that `shared.subagents` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.runs.run_log import RunLog
from shared.subagents.control import ControlStore
from shared.subagents.metrics import MetricStore
from shared.tools.services import ToolServices
from shared.tools.web_search import WebSearch


class SubagentServices(ToolServices, Protocol):
    """What subagents needs of the outside world."""

    @property
    def run_log(self) -> RunLog: ...

    @property
    def subagent_control(self) -> ControlStore: ...

    @property
    def subagent_metrics(self) -> MetricStore: ...

    @property
    def web_search(self) -> WebSearch | None: ...
