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
        self,
        index: SearchIndex,
        user: UserContext | None,
        *,
        within: str | None = None,
        allow_anonymous: bool = False,
    ) -> None:
        """Bind `index` to `user`.

        Args:
            within: a further condition on every row, such as the project that the caller chose.

        Raises:
            AccessDeniedError: there is no user, and `allow_anonymous` (tests only) is not set.
        """
        self._index = index
        trimming = None if user is None and allow_anonymous else security_filter(user)
        self._trimming = all_of(trimming, within)

    async def search(self, request: SearchRequest) -> SearchPage:
        """The request's rows that the user may read, of documents that are complete and not deleted."""
        trimmed = all_of(self._trimming, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed, "for_readers": True}))
