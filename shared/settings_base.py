"""How settings are read from the environment: the base of `Settings` and of its parts."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class EnvironmentModel(BaseSettings):
    """Fields that are environment variables, by their alias or name, in any case; an empty one is not set."""

    # Parts are built with `Settings` alone: nobody makes one of them, and a cold start need not build them.
    model_config = SettingsConfigDict(case_sensitive=False, env_ignore_empty=True, defer_build=True)
