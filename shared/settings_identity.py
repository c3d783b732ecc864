"""Settings of who is let in, and of where groups are looked up: a base of `Settings`."""

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.setting_checks import check_graph
from shared.settings_base import EnvironmentModel

_TENANT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class IdentitySettings(EnvironmentModel):
    """What is believed of a token, and what is asked of Microsoft Graph."""

    allowed_tenants: str = Field(
        default="",
        description="Ids of the Entra ID tenants whose people are let in, comma separated; empty = whom App "
        "Service Authentication lets in.",
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )
    guests: Literal["named", "members", "refused"] = Field(
        default="named",
        description="Guests of a tenant read what is open to them by name, by group, or to everybody; "
        "members = also what is open to the organisation; refused = they are not let in.",
    )
    allow_applications: bool = Field(
        default=False, description="Programs may call as themselves, with no person signed in."
    )
    department_claim: str | None = Field(
        default=None,
        description="Claim that carries a person's department; unset = `department`, or a directory "
        "extension of that name.",
        examples=["extension_0123456789abcdef0123456789abcdef_division"],
    )
    group_overage: Literal["resolve", "refuse", "ignore"] = Field(
        default="resolve",
        description="For people with more groups than a token has room for: look them up in Microsoft Graph, "
        "refuse the person (403), or count none of their groups.",
    )
    group_cache_s: int = Field(
        default=300,
        ge=0,
        le=3600,
        description="Seconds for which groups that were looked up hold; 0 = for one request.",
    )
    graph_endpoint: str = Field(
        default="https://graph.microsoft.com",
        description="Microsoft Graph, or that of a national cloud.",
        examples=["https://graph.microsoft.us"],
    )
    graph_timeout_s: float = Field(
        default=5,  # unmeasured: a page takes some tenths of a second, and somebody waits
        gt=0,
        le=30,
        description="Most seconds for looking up a person's groups, all pages and tries together.",
    )

    @property
    def tenants(self) -> tuple[str, ...]:
        """ALLOWED_TENANTS, one by one, in lower case."""
        return tuple(name for part in self.allowed_tenants.split(",") if (name := part.strip().casefold()))

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        check_graph(self.graph_endpoint)
        wrong = [name for name in self.tenants if not _TENANT.fullmatch(name)]
        if wrong:
            raise ValueError(
                "ALLOWED_TENANTS holds something else than ids of tenants. "
                "Example: ALLOWED_TENANTS=72f988bf-86f1-41af-91ab-2d7cd011db47"
            )
        return self
