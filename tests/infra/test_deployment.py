"""Rules over the resources of a deployment, as Bicep's compiler predicts them for every set of parameters."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from functions import api_page, site
from shared.ingestion.parser_process import COPIES
from shared.platform import names
from shared.platform.settings import load_settings, setting_fields
from tests.architecture.source_tree import ROOT
from tests.contract.worker.app_bindings import read_app_bindings
from tests.e2e.access.test_routes import WITHOUT_IDENTITY
from tests.infra.compiler import Compiler
from tests.infra.conftest import BICEP, SETS, Deployment

pytestmark = [pytest.mark.bicep, pytest.mark.timeout(300)]

Deployments = dict[str, Deployment]
Templates = dict[str, dict[str, Any]]
WHOLE = [name for name in SETS if name != "event_subscriptions"]
IN_AZURE_ONLY = "66666666-6666-6666-6666-666666666666"
"""What Azure makes up when it makes a resource."""
DEAD_LETTERS = "event-dead-letters"
HOST: dict[str, Any] = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))

REQUIRED_VALUES: dict[str, dict[str, object]] = {
    "Microsoft.Storage/storageAccounts": {
        "properties.allowBlobPublicAccess": False,
        "properties.allowSharedKeyAccess": False,
        "properties.allowCrossTenantReplication": False,
        "properties.supportsHttpsTrafficOnly": True,
        "properties.minimumTlsVersion": "TLS1_2",
    },
    "Microsoft.Storage/storageAccounts/blobServices/containers": {"properties.publicAccess": "None"},
    "Microsoft.Search/searchServices": {"properties.disableLocalAuth": True},
    "Microsoft.CognitiveServices/accounts": {"properties.disableLocalAuth": True},
    "Microsoft.CognitiveServices/accounts/deployments": {
        "properties.versionUpgradeOption": "OnceCurrentVersionExpired",
    },
    "Microsoft.EventGrid/systemTopics": {
        "identity.type": "SystemAssigned",  # the only identity that the firewall of a storage account admits
    },
    "Microsoft.EventGrid/systemTopics/eventSubscriptions": {
        "properties.deadLetterWithResourceIdentity.identity.type": "SystemAssigned",
        "properties.filter.subjectBeginsWith": f"/blobServices/default/containers/{names.DOCUMENTS}/blobs/",
    },
    "Microsoft.Insights/components": {"properties.DisableLocalAuth": True},
    "Microsoft.Insights/scheduledQueryRules": {"properties.skipQueryValidation": True},
    "Microsoft.OperationalInsights/workspaces": {"properties.features.disableLocalAuth": True},
    "Microsoft.BotService/botServices": {
        "properties.disableLocalAuth": True,
        "properties.msaAppType": "UserAssignedMSI",
        "location": "global",
    },
    "Microsoft.Web/sites": {
        "kind": "functionapp,linux",
        "identity.type": "UserAssigned",
        "tags.azd-service-name": "api",  # azd finds the app by this tag.
        "properties.httpsOnly": True,
        "properties.siteScopedCertificatesEnabled": True,
        "properties.siteConfig.minTlsVersion": "1.2",
        "properties.siteConfig.scmMinTlsVersion": "1.2",
        "properties.siteConfig.ftpsState": "Disabled",
        "properties.functionAppConfig.deployment.storage.authentication.type": "UserAssignedIdentity",
    },
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": {"properties.allow": False},
    "Microsoft.Resources/resourceGroups": {"tags.azd-env-name": "test"},
}

ROLES = {
    "b7e6dc6d-f1e8-4753-8033-0f276bb0955b": "Storage Blob Data Owner",
    "ba92f5b4-2d11-453d-a403-e96b0029c9fe": "Storage Blob Data Contributor",
    "db58b8e5-c6ad-4a2a-8342-4190687cbf4a": "Storage Blob Delegator",
    "974c5e8b-45b9-4653-ba55-5f855dd0fb88": "Storage Queue Data Contributor",
    "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a": "Storage Queue Data Message Sender",
    "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3": "Storage Table Data Contributor",
    "8ebe5a00-799e-43f5-93ac-243d3dce84a7": "Search Index Data Contributor",
    "7ca78c08-252a-4471-8644-bb5ff32d4ba0": "Search Service Contributor",
    "5e0bd9bd-7b93-4f28-af87-19fc36ad61bd": "Cognitive Services OpenAI User",
    "a97b65f3-24c7-4388-baec-2e87135dc908": "Cognitive Services User",
    "3913510d-42f4-4e42-8a64-420c390055eb": "Monitoring Metrics Publisher",
    "0ad04412-c4d5-4796-b79c-f76d14c8d402": "Durable Task Data Contributor",
}
"""Source: learn.microsoft.com, "Azure built-in roles"."""
APP_ROLES = {
    ("sthost", "Storage Blob Data Owner"),
    ("sthost", "Storage Queue Data Contributor"),
    ("sthost", "Storage Table Data Contributor"),
    ("stdocs", "Storage Blob Data Owner"),
    ("stdocs", "Storage Blob Delegator"),
    ("stdocs", "Storage Queue Data Contributor"),
    ("stdocs", "Storage Table Data Contributor"),
    ("srch-", "Search Index Data Contributor"),
    ("cog-openai-", "Cognitive Services OpenAI User"),
    ("appi-", "Monitoring Metrics Publisher"),
}
PACKAGE_ROLES = {("stcode", "Storage Blob Data Contributor")}
SEARCH_ROLES = {("srch-", "Search Service Contributor")}
TOPIC_ROLES = {
    ("stdocs", "Storage Queue Data Message Sender"),
    ("stdocs", "Storage Blob Data Contributor"),
}
DEPLOYER_ROLES = {("srch-", "Search Service Contributor"), ("srch-", "Search Index Data Contributor")}

PLATFORM_SETTINGS = {
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
    "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID",
}
FOR_DEVELOPMENT = {"BOT_LOCAL_ANONYMOUS", "DEV_TOKEN_SECRET"}
FORBIDDEN_SETTINGS = {
    "ENABLE_ORYX_BUILD",
    "FUNCTIONS_EXTENSION_VERSION",
    "FUNCTIONS_WORKER_PROCESS_COUNT",
    "FUNCTIONS_WORKER_RUNTIME",
    "FUNCTIONS_WORKER_RUNTIME_VERSION",
    "FUNCTIONS_MAX_HTTP_CONCURRENCY",
    "PYTHON_ISOLATE_WORKER_DEPENDENCIES",  # with this setting, the host finds no functions
    "SCM_DO_BUILD_DURING_DEPLOYMENT",
    "WEBSITE_CONTENTAZUREFILECONNECTIONSTRING",
    "WEBSITE_CONTENTOVERVNET",
    "WEBSITE_CONTENTSHARE",
    "WEBSITE_DNS_SERVER",
    "WEBSITE_MAX_DYNAMIC_APPLICATION_SCALE_OUT",
    "WEBSITE_NODE_DEFAULT_VERSION",
    "WEBSITE_RUN_FROM_PACKAGE",
    "WEBSITE_SKIP_CONTENTSHARE_VALIDATION",
    "WEBSITE_VNET_ROUTE_ALL",
}
"""Source: learn.microsoft.com, "Flex Consumption plan: deprecated properties and settings"."""
FORBIDDEN_PROPERTIES = {
    "alwaysOn",
    "appSettings",
    "containerSize",
    "dailyMemoryTimeQuota",
    "functionAppScaleLimit",
    "linuxFxVersion",
    "minimumElasticInstanceCount",
    "preWarmedInstanceCount",
    "pythonVersion",
    "use32BitWorkerProcess",
    "vnetContentShareEnabled",
    "vnetImagePullEnabled",
    "vnetRouteAllEnabled",
}
"""Of the site and its siteConfig. The same source."""


@pytest.fixture(params=WHOLE)
def deployment(request: pytest.FixtureRequest, deployments: Deployments) -> Deployment:
    return deployments[request.param]


def value_at(resource: dict[str, Any], path: str) -> object:
    """Return a property by its path."""
    value: Any = resource
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def nested(value: object) -> Iterator[tuple[str, object]]:
    """Yield every property of a template at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield str(name), inner
        yield from nested(inner)


def test_both_roots_compile_without_a_diagnostic(templates: Templates) -> None:
    assert [answer["diagnostics"] for answer in templates.values()] == [[], []]


def test_every_module_is_deployed(templates: Templates) -> None:
    used = {name.rpartition("/")[2] for name in re.findall(r"'((?:modules/)?[\w-]+\.bicep)'", sources())}
    modules = {path.name for path in (BICEP / "modules").iterdir()}
    assert modules - used == {"event-subscriptions.bicep"}  # this module is deployed by the hook
    assert len(templates) == 2


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(BICEP.rglob("*.bicep")))


def test_every_parameter_and_output_has_a_description(templates: Templates) -> None:
    for answer in templates.values():
        for kind, group in nested(json.loads(answer["contents"])):
            if kind not in ("parameters", "outputs") or not isinstance(group, dict):
                continue
            for name, declared in group.items():
                if "type" not in declared and "$ref" not in declared:
                    continue  # the parameter belongs to a module that is called here
                begin = ("Optional. " if "defaultValue" in declared else "Required. ") * (
                    kind == "parameters"
                )
                text = declared.get("metadata", {}).get("description", "")
                assert text.startswith(begin), f"{name}: {text}"
                assert text, name


def test_no_key_is_read_but_that_of_the_blob_trigger(templates: Templates) -> None:
    contents = "".join(answer["contents"] for answer in templates.values())
    assert len(re.findall(r"\blist[A-Z]\w*\(", contents)) == 1
    assert re.search(r"listKeys\(format\('\{0\}/host/default', .*\)\.systemKeys\.blobs_extension\)", contents)


@pytest.mark.parametrize("name", SETS)
def test_every_set_of_parameters_evaluates_without_a_diagnostic(deployments: Deployments, name: str) -> None:
    assert deployments[name].diagnostics == []


@pytest.mark.parametrize("name", SETS)
def test_resources_hold_what_security_wants(deployments: Deployments, name: str) -> None:
    for resource in deployments[name].resources:
        for path, expected in REQUIRED_VALUES.get(resource["type"], {}).items():
            assert value_at(resource, path) == expected, f"{resource['name']}: {path}"


def test_every_required_value_is_asked_of_something(deployments: Deployments) -> None:
    types = {resource["type"] for one in deployments.values() for resource in one.resources}
    assert set(REQUIRED_VALUES) - types == set()


def test_no_output_is_a_secret(deployment: Deployment) -> None:
    assert not re.search(r"(?i)\b\w*(key|secret|password|sas)\w*\b", " ".join(deployment.outputs))


def test_accounts_are_named_as_their_subdomain_and_storage_is_short(deployment: Deployment) -> None:
    for account in deployment.of("Microsoft.CognitiveServices/accounts"):
        # Required for token authentication.
        assert account["properties"]["customSubDomainName"] == account["name"]
    for account in deployment.of("Microsoft.Storage/storageAccounts"):
        assert re.fullmatch(r"[a-z0-9]{3,24}", account["name"])


def grants(deployment: Deployment) -> dict[str, set[tuple[str, str]]]:
    """Return the roles of each principal and their scopes, named by the beginning of the scope's name."""
    roles_by_principal: dict[str, set[tuple[str, str]]] = {}
    for one in deployment.of("Microsoft.Authorization/roleAssignments"):
        properties = one["properties"]
        (scope, *_) = re.findall(r"/resourceGroups/rg-test/providers/[\w.]+/\w+/([\w-]+)", one["id"])
        principal = "deployer" if properties["principalId"].startswith("4") else "app"
        principal = "topic" if "systemTopics" in properties["principalId"] else principal
        for name in ("deploy", "search"):
            principal = name if f"id-{name}-" in properties["principalId"] else principal
        allowed_types = ("User", "ServicePrincipal") if principal == "deployer" else ("ServicePrincipal",)
        # Without a principal type, a role assignment may fail while the identity is being replicated.
        assert properties["principalType"] in allowed_types
        role = properties["roleDefinitionId"].rpartition("/")[2]
        # Otherwise, two assignments could get the same name.
        for part in (scope, properties["principalId"].strip("[]"), role):
            assert part in one["name"] or not one["name"].startswith("["), one["name"]
        start = re.sub(r"[a-z0-9]{13}$", "", scope)
        roles_by_principal.setdefault(principal, set()).add((start, ROLES[role]))
    return roles_by_principal


def test_everybody_has_the_roles_they_need_and_no_other(deployments: Deployments) -> None:
    minimal, whole, pipeline = (grants(deployments[name]) for name in ("minimal", "everything", "pipeline"))
    always = {"topic": TOPIC_ROLES, "deploy": PACKAGE_ROLES, "search": SEARCH_ROLES}
    assert minimal == {"app": APP_ROLES, **always}
    optional = {("dts-", "Durable Task Data Contributor"), ("cog-pages-", "Cognitive Services User")}
    assert whole == {"app": APP_ROLES | optional, **always, "deployer": DEPLOYER_ROLES}
    assert pipeline["deployer"] == DEPLOYER_ROLES
    text = (BICEP / "modules/roles.bicep").read_text(encoding="utf-8")
    # In the Bicep file, a comment next to each id contains the name of the role.
    assert dict(re.findall(r"'([0-9a-f-]{36})' // (.+)", text)) == ROLES


@pytest.mark.attack("roles")
def test_the_app_can_not_replace_its_own_code(deployment: Deployment) -> None:
    (site,) = deployment.of("Microsoft.Web/sites")
    package = site["properties"]["functionAppConfig"]["deployment"]["storage"]
    assert "id-deploy-" in package["authentication"]["userAssignedIdentityResourceId"]
    assert "stcode" in package["value"]
    assert {role for scope, role in grants(deployment)["app"] if scope == "stcode"} == set()
    assert "id-deploy-" not in deployment.settings["AZURE_CLIENT_ID"]


def test_uploads_are_scanned_where_somebody_wants_it(deployments: Deployments) -> None:
    kind = "Microsoft.Security/defenderForStorageSettings"
    assert deployments["public"].of(kind) == []
    (scan,) = deployments["everything"].of(kind)
    assert "stdocs" in json.dumps(scan)
    assert scan["properties"]["malwareScanning"] == {
        "automatedResponse": "BlobSoftDelete",
        "onUpload": {"isEnabled": True, "capGBPerMonth": 50},
    }


def test_settings_are_those_of_the_app_or_of_the_platform(deployment: Deployment) -> None:
    fields = setting_fields()
    own = {name for name in deployment.settings if not name.startswith("AzureFunctionsJobHost__")}
    own -= {"DURABLE_TASK_SCHEDULER_CONNECTION_STRING", "PYTHON_ENABLE_INIT_INDEXING"}
    assert own >= PLATFORM_SETTINGS
    assert own - PLATFORM_SETTINGS - fields.keys() == set()
    assert own & (FORBIDDEN_SETTINGS | FOR_DEVELOPMENT) == set()
    secrets = [name for name in own - PLATFORM_SETTINGS if not fields[name].repr]
    assert secrets == ["OWNER_ID_KEY"]  # this secret grants no access by itself
    assert "AccountKey" not in str(deployment.settings)
    for connection in ("AzureWebJobsStorage", "DocumentsStorage"):
        assert deployment.settings[f"{connection}__credential"] == "managedidentity"


def test_the_app_accepts_its_settings(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBSITE_SITE_NAME", "func-test")
    for name, value in deployment.settings.items():
        monkeypatch.setenv(name, IN_AZURE_ONLY if value.endswith(".clientId]") else value)
    monkeypatch.setenv("OWNER_ID_KEY", "a secure parameter, which the compiler doesn't show")
    monkeypatch.setenv("APPLICATIONINSIGHTS_CONNECTION_STRING", f"InstrumentationKey={IN_AZURE_ONLY}")
    settings = load_settings()
    assert settings.models.azure_openai_endpoint
    assert settings.models.in_azure == ("OPENAI_BASE_URL" not in deployment.settings)
    assert settings.host.in_azure


@pytest.mark.attack("roles")
def test_only_publishers_open_documents_to_everyone(deployment: Deployment) -> None:
    assert deployment.settings["PUBLISH_ROLE"] == "publisher"


def test_init_indexing_is_on_for_the_workers_that_know_it(deployment: Deployment) -> None:
    (site,) = deployment.of("Microsoft.Web/sites")
    version = site["properties"]["functionAppConfig"]["runtime"]["version"]
    on = deployment.settings.get("PYTHON_ENABLE_INIT_INDEXING")
    assert on == (None if version == "3.13" else "1")


def test_no_property_is_one_that_flex_consumption_refuses(deployment: Deployment) -> None:
    (site,) = deployment.of("Microsoft.Web/sites")
    property_names = {*site["properties"], *site["properties"]["siteConfig"]}
    assert property_names & FORBIDDEN_PROPERTIES == set()


def test_storage_holds_what_the_code_names(deployment: Deployment) -> None:
    storage = "Microsoft.Storage/storageAccounts"
    tables = {value for name, value in vars(names).items() if name.endswith("_TABLE")}
    containers = deployment.names(f"{storage}/blobServices/containers", "stdocs")
    assert containers == {*names.CONTAINERS, DEAD_LETTERS}
    queues = deployment.names(f"{storage}/queueServices/queues", "stdocs")
    assert queues == {names.BLOB_DELETED_QUEUE, *names.QUEUES}
    assert deployment.names(f"{storage}/tableServices/tables", "stdocs") == tables


def test_zones_are_for_apps_that_outlive_one(deployments: Deployments) -> None:
    def redundancy(name: str) -> set[str]:
        accounts = deployments[name].of("Microsoft.Storage/storageAccounts")
        return {account["sku"]["name"] for account in accounts}

    assert redundancy("public") == {"Standard_LRS"}
    assert redundancy("everything") == {"Standard_ZRS", "Standard_GZRS"}


@pytest.mark.attack("path tricks")
def test_no_public_path_is_a_pattern(deployment: Deployment) -> None:
    paths = deployment.config("authsettingsV2")["globalValidation"]["excludedPaths"]
    assert [path for path in paths if not re.fullmatch(r"(/[\w.-]+)+", path)] == []


def test_who_is_let_in_without_signing_in_proves_it_otherwise(deployment: Deployment) -> None:
    auth = deployment.config("authsettingsV2")
    assert auth["platform"]["enabled"] is True
    validation = auth["globalValidation"]
    assert validation["requireAuthentication"] is True
    assert validation["unauthenticatedClientAction"] == "Return401"
    routes = {route.removeprefix("GET ") for route in WITHOUT_IDENTITY}
    anonymous = {f"/api/{route}" for route in routes if "{asset}" not in route}
    anonymous |= {f"/api/docs/{name}" for name in api_page.ASSETS}
    anonymous |= {"/web", *(f"/web/assets/{name}" for name in site.ASSETS)}  # leads to the sign-in
    # The bot's route requires a token of the channel, and the webhook requires a key in the URL.
    assert set(validation["excludedPaths"]) == anonymous | {"/api/messages", "/runtime/webhooks/blobs"}


def test_people_sign_in_by_code_flow_without_a_secret(deployment: Deployment) -> None:
    provider = deployment.config("authsettingsV2")["identityProviders"]["azureActiveDirectory"]
    setting = provider["registration"]["clientSecretSettingName"]
    assert setting == "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID"  # not a secret: the platform uses the identity
    assert deployment.settings[setting] == deployment.settings["AZURE_CLIENT_ID"]


def test_events_reach_the_blob_trigger_and_the_queue(deployments: Deployments) -> None:
    subscriptions = deployments["event_subscriptions"].of(
        "Microsoft.EventGrid/systemTopics/eventSubscriptions"
    )
    created, deleted = (one["properties"] for one in subscriptions)
    bindings = {name: one["bindings"] for name, one in read_app_bindings(ROOT).items()}
    (trigger,) = [name for name, ones in bindings.items() if any(b["type"] == "blobTrigger" for b in ones)]
    address = created["destination"]["properties"]["endpointUrl"]
    assert "/runtime/webhooks/blobs?functionName=Host.Functions.{1}&code={2}'" in address
    assert f", '{trigger}', listKeys(" in address
    assert created["filter"]["includedEventTypes"] == ["Microsoft.Storage.BlobCreated"]
    assert deleted["filter"]["includedEventTypes"] == ["Microsoft.Storage.BlobDeleted"]
    queue = deleted["deliveryWithResourceIdentity"]["destination"]["properties"]["queueName"]
    assert queue == names.BLOB_DELETED_QUEUE
    for one in (created, deleted):
        letters = one["deadLetterWithResourceIdentity"]["deadLetterDestination"]["properties"]
        assert letters["blobContainerName"] == DEAD_LETTERS


def test_the_scheduler_replaces_the_storage_of_host_json_and_nothing_else(deployments: Deployments) -> None:
    settings = deployments["private"].settings
    prefix = "AzureFunctionsJobHost__extensions__durableTask__"
    changed = {name.removeprefix(prefix): value for name, value in settings.items() if prefix in name}
    assert changed == {
        "hubName": HOST["extensions"]["durableTask"]["hubName"],
        "storageProvider__type": "azureManaged",
        "storageProvider__connectionStringName": "DURABLE_TASK_SCHEDULER_CONNECTION_STRING",
    }
    assert "Authentication=ManagedIdentity" in settings["DURABLE_TASK_SCHEDULER_CONNECTION_STRING"]
    (hub,) = deployments["private"].names("Microsoft.DurableTask/schedulers/taskHubs")
    assert hub == changed["hubName"]
    assert not any(prefix in name for name in deployments["public"].settings)


def test_on_a_private_network_nothing_but_the_app_is_public(deployments: Deployments) -> None:
    private = deployments["private"]
    closed = {
        "Microsoft.Storage/storageAccounts",
        "Microsoft.Search/searchServices",
        "Microsoft.CognitiveServices/accounts",
        "Microsoft.DurableTask/schedulers",
    }
    resources = [resource for resource in private.resources if resource["type"] in closed]
    assert {resource["properties"]["publicNetworkAccess"] for resource in resources} == {"Disabled"}
    (scheduler,) = private.of("Microsoft.DurableTask/schedulers")
    assert scheduler["properties"]["ipAllowlist"] == []
    reached = {
        (connection["properties"]["privateLinkServiceId"].rpartition("/")[2], group)
        for endpoint in private.of("Microsoft.Network/privateEndpoints")
        for connection in endpoint["properties"]["privateLinkServiceConnections"]
        for group in connection["properties"]["groupIds"]
    }
    services = {
        "Microsoft.Storage/storageAccounts": ("blob", "queue", "table"),
        "Microsoft.Search/searchServices": ("searchService",),
        "Microsoft.CognitiveServices/accounts": ("account",),
        "Microsoft.DurableTask/schedulers": ("scheduler",),
    }
    expected = {(resource["name"], group) for resource in resources for group in services[resource["type"]]}
    # The storage account of the package contains only blobs.
    assert reached == {one for one in expected if not one[0].startswith("stcode") or one[1] == "blob"}
    groups = private.of("Microsoft.Network/privateEndpoints/privateDnsZoneGroups")
    of_models = next(one for one in groups if "pep-openai/" in one["name"])
    assert (
        len(of_models["properties"]["privateDnsZoneConfigs"]) == 3
    )  # an AIServices account has three host names
    (network,) = private.of("Microsoft.Network/virtualNetworks")
    app = network["properties"]["subnets"][0]["properties"]
    assert app["delegations"][0]["properties"]["serviceName"] == "Microsoft.App/environments"


def test_fixed_costs_can_be_switched_off(deployments: Deployments) -> None:
    def always_ready(name: str) -> dict[str, int]:
        (site,) = deployments[name].of("Microsoft.Web/sites")
        groups = site["properties"]["functionAppConfig"]["scaleAndConcurrency"]["alwaysReady"]
        return {group["name"]: group["instanceCount"] for group in groups}

    assert always_ready("minimal") == {}
    assert always_ready("public") == {"durable": 1, "http": 1}
    assert always_ready("everything") == {"blob": 1, "durable": 1, "http": 1}


def test_what_the_next_deployment_must_know_is_kept(deployments: Deployments) -> None:
    again, with_budget, new = (deployments[name] for name in ("host_name_again", "budget_kept", "everything"))
    (bound,) = again.of("Microsoft.Web/sites/hostNameBindings")
    assert bound["properties"]["sslState"] == "SniEnabled"  # a later deployment must keep the certificate
    assert len(new.of("Microsoft.Web/sites/hostNameBindings")) == 2
    # An existing binding is kept.
    assert with_budget.outputs["CUSTOM_HOST_NAME_BOUND"] == "answers.contoso.com"
    (budget,) = with_budget.of("Microsoft.Consumption/budgets")
    assert budget["properties"]["timePeriod"]["startDate"] == "2026-03-01"
    assert with_budget.outputs["BUDGET_START_DATE"] == "2026-03-01"
    (budget,) = new.of("Microsoft.Consumption/budgets")
    assert budget["properties"]["timePeriod"]["startDate"] == "2026-11-01"
    clock = [name for name, one in deployments.items() if "2026-11-01" in json.dumps(one.resources)]
    assert clock == ["everything"]


def test_what_must_be_there_before_is_made_before(compiler: Compiler, templates: Templates) -> None:
    graph = compiler.graph(BICEP / "main.bicep")
    assert graph["functionApp"] >= {
        "roles",
        "privateEndpoints",
    }  # it reads its package and keys at startup
    assert graph["hostName"] >= {"auth"}  # the platform rejects concurrent changes of one app
    app = compiler.graph(BICEP / "modules/function-app.bicep")
    assert "settings" in app["noFtp"]
    assert "noFtp" in app["noBasicScm"]
    template = json.loads(templates["main.bicep"]["contents"])
    loops = [
        one for _, one in nested(template) if isinstance(one, dict) and isinstance(one.get("copy"), dict)
    ]
    one_by_one = {one["type"] for one in loops if one["copy"].get("batchSize") == 1}
    assert one_by_one == {
        "Microsoft.CognitiveServices/accounts/deployments",
        "Microsoft.Network/privateEndpoints",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
    }


TEMPORARY_DISK_BYTES = 800_000_000
"""Source: learn.microsoft.com, "Azure Functions hosting options": Flex Consumption, temporary storage."""


def test_parsers_get_their_share_of_the_memory_and_the_disk_that_instances_have(
    deployment: Deployment,
) -> None:
    (site,) = deployment.of("Microsoft.Web/sites")
    memory_mb = site["properties"]["functionAppConfig"]["scaleAndConcurrency"]["instanceMemoryMB"]
    assert int(deployment.settings["INSTANCE_MEMORY_MB"]) == memory_mb
    field = setting_fields()["MAX_DOCUMENT_BYTES"]
    # A quarter of the disk is left for figures and texts.
    assert COPIES * int(field.default) <= 0.75 * TEMPORARY_DISK_BYTES
