"""Settings of the search of the web, for `Settings`. Off unless an address is given."""

import re
from typing import Self

from pydantic import Field, model_validator

from shared.setting_checks import check_web_search
from shared.settings_base import EnvironmentModel

_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class WebSearchSettings(EnvironmentModel):
    """Where the web is searched."""

    web_search_url: str | None = Field(
        default=None,
        description="Address of a search engine with SearXNG's JSON API; https, or on this machine. "
        "Unset = the web is never searched.",
        examples=["https://NAME/search"],
    )
    web_search_key: str | None = Field(
        default=None, description="Key of that search engine, if it wants one.", repr=False
    )
    web_search_key_header: str = Field(
        default="X-Api-Key", description="Header that carries the key, as it is.", examples=["Authorization"]
    )

    @model_validator(mode="after")
    def _check_web_search(self) -> Self:
        if self.web_search_url is not None:
            check_web_search(self.web_search_url)
        if not _HEADER_NAME.fullmatch(self.web_search_key_header):
            raise ValueError(
                "WEB_SEARCH_KEY_HEADER is no name of a header. Example: WEB_SEARCH_KEY_HEADER=Authorization"
            )
        if self.web_search_key is not None and not self.web_search_key.isprintable():
            raise ValueError("WEB_SEARCH_KEY holds characters that no header can carry.")
        return self
