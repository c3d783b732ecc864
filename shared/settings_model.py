"""Settings of what a model endpoint understands, for `Settings`. Where it is, is said there."""

from typing import Self, cast

from pydantic import Field, model_validator

from shared.models.model_features import ALL_FEATURES, Feature
from shared.settings_base import EnvironmentModel

AUTO = "auto"


class ModelSettings(EnvironmentModel):
    """What need not be found out by being refused."""

    model_features: str = Field(
        default=AUTO,
        description="Parts of the OpenAI protocol that the endpoint has, comma separated: "
        "docs/models.md; auto = found out from what it refuses.",
        examples=["json_object,max_tokens,system_role,images"],
    )

    @model_validator(mode="after")
    def _check_model_features(self) -> Self:
        unknown = sorted((self.known_model_features or frozenset()) - ALL_FEATURES)
        if unknown:
            raise ValueError(
                f"MODEL_FEATURES names what is no part of the protocol; known are "
                f"{', '.join(sorted(ALL_FEATURES))}. Example: MODEL_FEATURES=auto"
            )
        return self

    @property
    def known_model_features(self) -> frozenset[Feature] | None:
        """What the endpoint has; None = nobody knows yet."""
        if self.model_features.strip().lower() == AUTO:
            return None
        named = (name.strip().lower() for name in self.model_features.split(","))
        return frozenset(cast("Feature", name) for name in named if name)
