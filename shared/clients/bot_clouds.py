"""What the Bot Service is in each of Microsoft's clouds (BOT_CLOUD). A table; opens nothing.

An app belongs to one cloud: it believes the tokens of no other, and answers into no other.

Source: Microsoft 365 Agents SDK 1.9.0, `authorization/authentication_constants.py` (issuers, keys),
`security/outbound_host_validator.py` (hosts of the public cloud); for the US Government, Bot Framework's
`GovernmentConstants` (audience) and the Agents SDK's `TeamsServiceEndpoints` (GCC High, DoD). The cloud GCC
(without High) is a part of the public one. That of 21Vianet is not here: the SDK knows it as little.
"""

from dataclasses import dataclass
from typing import Literal

CloudName = Literal["public", "usgov"]


@dataclass(frozen=True)
class BotCloud:
    """One cloud.

    Attributes:
        issuer: of the tokens that activities come with.
        keys_url: where the keys of those tokens are.
        scope: what our own token is asked for.
        hosts: that serve channels; one that begins with a dot stands for all below it.
    """

    issuer: str
    keys_url: str
    scope: str
    hosts: tuple[str, ...]


CLOUDS: dict[CloudName, BotCloud] = {
    "public": BotCloud(
        issuer="https://api.botframework.com",
        keys_url="https://login.botframework.com/v1/.well-known/keys",
        scope="https://api.botframework.com/.default",
        hosts=(".botframework.com", ".teams.microsoft.com", "smba.trafficmanager.net"),
    ),
    "usgov": BotCloud(
        issuer="https://api.botframework.us",
        keys_url="https://login.botframework.azure.us/v1/.well-known/keys",
        scope="https://api.botframework.us/.default",
        hosts=(".botframework.us", ".botframework.azure.us", ".teams.microsoft.us"),
    ),
}
