"""The tool `web_search`: pages of the web, found by the search engine that is configured."""

from dataclasses import dataclass, field

from pydantic import Field

from shared.platform.errors import ConfigurationError
from shared.platform.language_models.models import CallLimits
from shared.tools.base import Found, Parameters, Tool, ToolResult
from shared.tools.web_search import WebSearch

_PAGES = 5


class SearchWebParameters(Parameters):
    """Arguments of `web_search`."""

    query: str = Field(
        description="General terms of the subject; no names of persons, customers or projects.",
        min_length=1,
        max_length=200,
    )


@dataclass(frozen=True)
class SearchWeb(Tool):
    """Searches the web. The query leaves the house: whether it may is decided by who binds the tool."""

    web: WebSearch | None
    limits: CallLimits
    found: Found = field(default_factory=Found)

    name = "web_search"
    description = "Find pages of the web. What you write is sent to a service outside."
    parameters = SearchWebParameters

    async def _run(self, arguments: SearchWebParameters) -> ToolResult:
        if self.web is None:
            raise ConfigurationError("The web cannot be searched here.", "Set WEB_SEARCH_URL.")
        pages = await self.web.search(arguments.query, _PAGES, self.limits)
        self.found.pages.extend(pages)
        return {"results": [page.model_dump() for page in pages], "result_count": len(pages)}
