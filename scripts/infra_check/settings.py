"""The settings of the app: those of the files are those of the code; what the platform refuses is not set."""

from collections.abc import Iterator

from scripts.bicep_settings import FOR_DEVELOPMENT, SET_BY_AZURE, names_in_azure, render_module
from scripts.infra_check.catalogue import FORBIDDEN_ON_FLEX, FORBIDDEN_SITE_PROPERTIES
from scripts.infra_check.project import Project
from scripts.infra_check.reader import properties, text_of
from shared.platform.settings import setting_fields

_PLATFORM = {
    "APPLICATIONINSIGHTS_AUTHENTICATION_STRING",
    "APPLICATIONINSIGHTS_CONNECTION_STRING",
    "AZURE_FUNCTIONS_DURABLE_STRICT_TYPING",
    "AzureWebJobsStorage__blobServiceUri",
    "AzureWebJobsStorage__clientId",
    "AzureWebJobsStorage__credential",
    "AzureWebJobsStorage__queueServiceUri",
    "AzureWebJobsStorage__tableServiceUri",
    "DocumentsStorage__clientId",
    "DocumentsStorage__credential",
    "PYTHON_ENABLE_INIT_INDEXING",
}
_WIRED_ALWAYS = {
    "AZURE_CLIENT_ID",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_SEARCH_ENDPOINT",
    "CHAT_MODEL",
    "DocumentsStorage__blobServiceUri",
    "DocumentsStorage__queueServiceUri",
    "DocumentsStorage__tableServiceUri",
    "EMBEDDING_DIMENSIONS",
    "EMBEDDING_MODEL",
}


def settings_faults(project: Project) -> Iterator[str]:
    """Settings that are unknown, missing, refused, or secret."""
    app = project.files.get("app-settings.bicep")
    if app is None or app.text != render_module():
        yield "app-settings.bicep: is not what `make docs` writes"
    wiring = project.module("appSettings")
    wired = wiring.property("params", "wired") if wiring is not None else None
    given = set(properties(wired)) if wired is not None else set()
    known = set(names_in_azure())
    for name in sorted(given - known):
        yield f"main.bicep: {name} is no setting of the app"
    for name in sorted(_WIRED_ALWAYS - given):
        yield f"main.bicep: {name} is not wired"
    yield from _platform_settings(project)
    yield from _unwanted(project)
    yield from _old_properties(project)


def _platform_settings(project: Project) -> Iterator[str]:
    function_app = project.files["function-app.bicep"]
    platform = next(
        (found.value for found in function_app.of("var") if found.name == "platformSettings"), None
    )
    found = properties(platform) if platform is not None else {}
    for name in sorted(_PLATFORM - {"APPLICATIONINSIGHTS_CONNECTION_STRING"} ^ set(found)):
        yield f"function-app.bicep: {name} is {'missing' if name in _PLATFORM else 'known to nobody'}"
    for name in ("PYTHON_ENABLE_INIT_INDEXING", "AZURE_FUNCTIONS_DURABLE_STRICT_TYPING"):
        if text_of(found.get(name)) != "1":
            yield f"function-app.bicep: {name} is not 1, as it is locally"
    for name in found:
        if name.endswith("__credential") and text_of(found[name]) != "managedidentity":
            yield f"function-app.bicep: {name} is not managedidentity"
    settings = next((one for one in function_app.of("resource") if one.name == "settings"), None)
    whole = text_of(settings.property("properties")) if settings is not None else ""
    for part in ("appSettings", "platformSettings", "hostSettings", "APPLICATIONINSIGHTS_CONNECTION_STRING"):
        if part not in whole:
            yield f"function-app.bicep: {part} does not reach the app"


def _unwanted(project: Project) -> Iterator[str]:
    never = {*FORBIDDEN_ON_FLEX, *FOR_DEVELOPMENT, *SET_BY_AZURE}
    never |= {name for name, field in setting_fields().items() if not field.repr}
    never -= _PLATFORM
    for file in project.files.values():
        for node in file.nodes:
            given, where = properties(node), f"{file.path.name}:{node.start_point[0] + 1}"
            for name in sorted(never & set(given)):
                yield f"{where}: {name} must not be set"
            for name in given:
                if name.endswith("__blobServiceUri") and name.replace("__blob", "__queue") not in given:
                    yield f"{where}: {name} has no queueServiceUri beside it"


def _old_properties(project: Project) -> Iterator[str]:
    """What other plans take and Flex Consumption refuses or does not heed."""
    for site in project.files["function-app.bicep"].of("resource"):
        if not site.target.startswith("Microsoft.Web/sites@"):
            continue
        for path in (("properties",), ("properties", "siteConfig")):
            node = site.property(*path)
            given = properties(node) if node is not None else {}
            for name in sorted(set(FORBIDDEN_SITE_PROPERTIES) & set(given)):
                yield f"function-app.bicep:{site.line}: {'.'.join(path)}.{name} is not for Flex Consumption"
