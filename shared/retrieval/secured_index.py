"""Security trimming below the tools: the only way from a question to an index.

A tool gets a SecuredIndex, bound to one user; nothing that a model, a prompt or a caller says can reach the
condition that it adds.
"""

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.platform.odata import all_of
from shared.platform.search import SearchIndex, SearchPage, SearchRequest


class SecuredIndex:
    """One index as one user may see it."""

    def __init__(
        self, index: SearchIndex, user: UserContext | None, *, allow_anonymous: bool = False
    ) -> None:
        """Bind `index` to `user`.

        Raises:
            AccessDeniedError: there is no user, and `allow_anonymous` (tests only) is not set.
        """
        self._index = index
        self._trimming = None if user is None and allow_anonymous else security_filter(user)

    async def search(self, request: SearchRequest) -> SearchPage:
        """The request's rows that the user may read."""
        trimmed = all_of(self._trimming, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed}))
