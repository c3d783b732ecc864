"""What must hold of every resource: no keys, nothing public, encrypted ways, roles on one resource each."""

import re
from collections.abc import Iterator, Sequence

from scripts.infra_check.catalogue import GRANTS, ROLES, VERSIONS
from scripts.infra_check.reader import BicepFile, Declaration, properties, text_of

# A property's path, and what must stand there.
_MUST = {
    "Microsoft.Storage/storageAccounts": {
        "properties.allowBlobPublicAccess": "false",
        "properties.allowSharedKeyAccess": "false",
        "properties.allowCrossTenantReplication": "false",
        "properties.supportsHttpsTrafficOnly": "true",
        "properties.minimumTlsVersion": "TLS1_2",
    },
    "Microsoft.Storage/storageAccounts/blobServices/containers": {"properties.publicAccess": "None"},
    "Microsoft.Search/searchServices": {"properties.disableLocalAuth": "true"},
    "Microsoft.CognitiveServices/accounts": {
        "properties.disableLocalAuth": "true",
        "properties.customSubDomainName": "name",  # tokens are taken only where the account has its own name
    },
    "Microsoft.EventGrid/systemTopics": {
        "identity.type": "SystemAssigned",  # no other comes through the firewall of a storage account
    },
    "Microsoft.EventGrid/systemTopics/eventSubscriptions": {
        "properties.deadLetterWithResourceIdentity.identity.type": "SystemAssigned",
    },
    "Microsoft.Insights/components": {"properties.DisableLocalAuth": "true"},
    "Microsoft.OperationalInsights/workspaces": {"properties.features.disableLocalAuth": "true"},
    "Microsoft.BotService/botServices": {
        "properties.disableLocalAuth": "true",
        "properties.msaAppType": "UserAssignedMSI",
        "location": "global",
    },
    "Microsoft.Web/sites": {
        "kind": "functionapp,linux",
        "identity.type": "UserAssigned",
        "properties.httpsOnly": "true",
        "properties.siteScopedCertificatesEnabled": "true",  # the only certificates of Flex Consumption
        "properties.siteConfig.minTlsVersion": "1.2",
        "properties.siteConfig.scmMinTlsVersion": "1.2",
        "properties.siteConfig.ftpsState": "Disabled",
        "properties.functionAppConfig.deployment.storage.authentication.type": "UserAssignedIdentity",
    },
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": {"properties.allow": "false"},
}
_KEYS = re.compile(r"\b(?:listKeys|listAdminKeys|listQueryKeys|listAccountSas|listServiceSas|list[A-Z]\w*)\(")
_HOST_KEY = "listKeys('${app.id}/host/default', '2025-03-01').systemKeys.blobs_extension"
_SECRETS = re.compile(
    r"(?i)AccountKey=|SharedAccessKey|SharedAccessSignature|InstrumentationKey|password|secret\b"
)
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def security_faults(files: Sequence[BicepFile]) -> Iterator[str]:
    """Every fault of every file, with its line."""
    for file in files:
        yield from _versions(file)
        yield from _required_values(file)
        yield from _keys(file)
        yield from _descriptions(file)
        yield from _batches(file)
        yield from _guids(file)
        if any(found.target.startswith("Microsoft.Authorization/") for found in file.of("resource")):
            yield from _roles(file)


def _versions(file: BicepFile) -> Iterator[str]:
    for resource in file.of("resource"):
        kind, _, version = resource.target.partition("@")
        if kind not in VERSIONS:
            yield f"{file.path.name}:{resource.line}: nobody has looked up the type {kind}"
        elif version != VERSIONS[kind]:
            yield f"{file.path.name}:{resource.line}: {kind} is used at {VERSIONS[kind]}, not {version}"


def _required_values(file: BicepFile) -> Iterator[str]:
    for resource in file.of("resource"):
        if resource.is_existing:
            continue
        for path, wanted in _MUST.get(resource.target.partition("@")[0], {}).items():
            found = text_of(resource.property(*path.split("."))) or "not set"
            if found != wanted:
                yield f"{file.path.name}:{resource.line}: {resource.name}.{path} is {found}, not {wanted}"


def _keys(file: BicepFile) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), start=1):
        rest = line.replace(_HOST_KEY, "") if file.path.name == "event-subscription.bicep" else line
        if _KEYS.search(rest):
            yield f"{file.path.name}:{number}: reads a key"
        if _SECRETS.search(rest) and not rest.lstrip().startswith(("//", "@description", "metadata")):
            yield f"{file.path.name}:{number}: holds a secret, or the name of one"
    for output in file.of("output"):
        if any(word in output.name.lower() for word in ("key", "secret", "password", "sas")):
            yield f"{file.path.name}:{output.line}: gives out {output.name}, for everybody who deploys"


def _descriptions(file: BicepFile) -> Iterator[str]:
    for declaration in (*file.of("param"), *file.of("output")):
        said = declaration.decorators.get("description", "").strip("'")
        if declaration.kind == "output":
            if not said:
                yield f"{file.path.name}:{declaration.line}: {declaration.name} has no description"
            continue
        begin = "Required. " if declaration.value is None else "Optional. "
        if not said.startswith(begin):
            where = f"{file.path.name}:{declaration.line}: {declaration.name}"
            yield f"{where}: its description does not begin with {begin!r}"


def _batches(file: BicepFile) -> Iterator[str]:
    for resource in file.of("resource"):
        is_model = resource.target.startswith("Microsoft.CognitiveServices/accounts/deployments@")
        if is_model and resource.decorators.get("batchSize") != "1":
            yield f"{file.path.name}:{resource.line}: deployments are not made one after another"


def _guids(file: BicepFile) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), start=1):
        for guid in _GUID.findall(line):
            if guid not in ROLES:
                yield f"{file.path.name}:{number}: {guid} is the id of no known role"


def _roles(file: BicepFile) -> Iterator[str]:
    table = next((found for found in file.of("var") if found.name == "roles"), None)
    ids = (
        {name: text_of(node) for name, node in properties(table.value).items()}
        if table and table.value
        else {}
    )
    for name, guid in ids.items():
        if guid in ROLES and not re.search(rf"'{guid}' // {re.escape(ROLES[guid])}\n", file.text):
            yield f"{file.path.name}: {name} does not stand beside its name, {ROLES[guid]}"
    granted = set()
    for resource in file.of("resource"):
        if resource.is_existing or not resource.target.startswith("Microsoft.Authorization/roleAssignments@"):
            continue
        yield from _assignment(file, resource)
        role = (
            text_of(resource.property("properties", "roleDefinitionId")).rpartition("roles.")[2].rstrip(")")
        )
        who = text_of(resource.property("properties", "principalId"))
        granted.add((who, text_of(resource.property("scope")), ROLES.get(ids.get(role, ""), role)))
    for who, scope, role in sorted(GRANTS ^ granted):
        state = "missing" if (who, scope, role) in GRANTS else "too much"
        yield f"{file.path.name}: {role} of {who} on {scope} is {state}"


def _assignment(file: BicepFile, resource: Declaration) -> Iterator[str]:
    where = f"{file.path.name}:{resource.line}: {resource.name}"
    scope = text_of(resource.property("scope"))
    principal = text_of(resource.property("properties", "principalId"))
    role = text_of(resource.property("properties", "roleDefinitionId"))
    named = text_of(resource.property("name"))
    if not scope:
        yield f"{where} has no scope: it would hold for the whole group"
    if not text_of(resource.property("properties", "principalType")):
        yield f"{where} has no principalType: a new identity may not be found yet"
    if not (found := re.search(r"roles\.\w+", role)) or _GUID.search(role):
        yield f"{where} takes its role not from the table"
    elif named != f"guid({scope}.id, {principal}, {found[0]})":
        yield f"{where} is not named guid({scope}.id, {principal}, {found[0]})"
