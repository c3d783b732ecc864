"""The module infra/bicep/modules/app-settings.bicep, made from the fields of Settings.

    python -m scripts.bicep_settings --write

Every setting is in it with its default, so that what runs in Azure is what docs/settings.md says. Left out
are secrets (nothing in Azure has a key), what Azure sets itself, and what is for development.
"""

import sys
from pathlib import Path

from pydantic.fields import FieldInfo

from shared.platform.settings import setting_fields

MODULE = Path(__file__).resolve().parents[1] / "infra" / "bicep" / "modules" / "app-settings.bicep"
SET_BY_AZURE = ("WEBSITE_AUTH_ENABLED", "WEBSITE_SITE_NAME", "WEBSITE_HOSTNAME")
FOR_DEVELOPMENT = ("ALLOW_ANONYMOUS", "BOT_LOCAL_ANONYMOUS")
SET_BY_HOST = ("APPLICATIONINSIGHTS_AUTHENTICATION_STRING", "APPLICATIONINSIGHTS_CONNECTION_STRING")
"""Of the host, too, and so among its settings in function-app.bicep."""

_HEAD = """metadata description = 'Every setting of the app with its default. Made by `make docs`.'

@description('Required. What the deployment knows: endpoints, models, the identity.')
param wired object

@description('Optional. Settings by name that shall differ; they win.')
param overrides object = {}

var defaults = {
"""
_TAIL = """}

@description('All settings of the app.')
output settings object = union(defaults, wired, overrides)
"""


def names_in_azure() -> dict[str, str]:
    """Each setting that a deployment sets, by name, with its default as text; empty = unset."""
    left_out = (*SET_BY_AZURE, *FOR_DEVELOPMENT, *SET_BY_HOST)
    named = sorted(setting_fields().items())
    return {name: _text(field) for name, field in named if field.repr and name not in left_out}


def render_module() -> str:
    """The module's text."""
    lines = [f"  {name}: '{_escaped(text)}'" for name, text in names_in_azure().items()]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _text(field: FieldInfo) -> str:
    if field.is_required() or field.default is None:
        return ""  # the app takes an empty variable for one that is not set
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")


if __name__ == "__main__":
    if "--write" in sys.argv:
        MODULE.write_text(render_module(), encoding="utf-8")
    else:
        print(render_module(), end="")
