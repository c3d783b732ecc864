"""The tool `web_search`, which finds web pages with the configured search engine."""

from dataclasses import dataclass, field
from typing import Self

from pydantic import Field

from shared.platform.errors import ConfigurationError
from shared.platform.language_models.models import CallLimits
from shared.tools.base import Parameters, Tool, ToolEvidence, ToolResult
from shared.tools.binding import Binding
from shared.tools.outside import Outside
from shared.tools.web_search import WebSearch

_MAX_PAGES = 10


class SearchWebParameters(Parameters):
    """Arguments of `web_search`."""

    query: str = Field(
        description="General terms of the subject; no names of persons, customers or projects.",
        min_length=1,
        max_length=200,
        pattern=r"\S",
    )
    count: int = Field(default=5, description=f"Maximum number of pages, 1-{_MAX_PAGES}.")


@dataclass(frozen=True)
class SearchWeb(Tool):
    """Searches the web. Queries that `outside` does not permit are refused."""

    web: WebSearch | None
    limits: CallLimits
    outside: Outside = field(default_factory=Outside)
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "web_search"
    description = (
        "Find pages of the web, for what no document holds. What you write is sent to a service outside. "
        "Read a page with web_fetch before you state what it says."
    )
    parameters = SearchWebParameters
    documentation = (
        "Pages from `WEB_SEARCH_URL`: `results` with `url`, `title`, `text`, `published_at`. "
        "[Queries that repeat documents are refused](internals/delegation.md#the-web). Before a "
        "conversation's first call, the user sees the query and is asked for consent, unless "
        "`WEB_CONSENT` is `allow` or `deny`. The sub-agent `web_verifier` has this tool without "
        "`AGENT_TOOLS`."
    )
    example = '{"query": "pump"}'
    is_optional = True
    reads_documents = False
    sends_outside = True
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(binding.services.web_search, binding.limits, binding.outside, binding.evidence)

    async def _run(self, arguments: SearchWebParameters) -> ToolResult:
        if self.web is None:
            raise ConfigurationError("Web search is not configured.", "Set WEB_SEARCH_URL.")
        self.outside.require_query(arguments.query)
        pages = await self.web.search(arguments.query, min(max(arguments.count, 1), _MAX_PAGES), self.limits)
        self.evidence.pages.extend(pages)
        return {"results": [page.model_dump() for page in pages], "result_count": len(pages)}
