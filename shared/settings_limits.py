"""Settings of what one person may use up, for `Settings`."""

from pydantic import Field

from shared.settings_base import EnvironmentModel


class LimitSettings(EnvironmentModel):
    """How many calls a person may make, and how much may run for them at once."""

    rate_limit_per_minute: int = Field(
        default=60,  # one a second for hours: no person asks faster, and no mistake in a script costs more
        ge=0,
        le=100_000,
        description="Calls that cost (questions, searches, summaries, uploads) of one person in a minute; "
        "that many at once, then evenly. More are a 429. 0 = no limit.",
    )
    max_concurrent_runs: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="Questions and summaries of one person that are worked on at the same time; a run that "
        "waits for an answer does not count. More are a 429. 0 = no limit.",
    )
