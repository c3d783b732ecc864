"""Problem details: the one shape of every error of the API."""

from pydantic import Field

from shared.models.base import Model


class Problem(Model):
    """Problem details (RFC 9457) with hints. All codes: docs/errors.md."""

    type: str = Field(
        description="`urn:groundwork:error:` and the code.", examples=["urn:groundwork:error:NotFoundError"]
    )
    title: str = Field(description="The code.", examples=["NotFoundError"])
    status: int = Field(description="The status of the answer.", examples=[404])
    detail: str = Field(description="What is wrong, for people: no secrets, no document text, no internals.")
    hints: tuple[str, ...] = Field(description="What the reader can do, a sentence each.")
