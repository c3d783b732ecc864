"""What may stand in the files: types with their API versions, roles with their ids.

A type or role that is not here is a fault, so that nobody deploys a version that was never looked up.
Source: learn.microsoft.com, "Azure resource reference" and "Azure built-in roles".
"""

VERSIONS = {
    "Microsoft.Authorization/roleAssignments": "2022-04-01",
    "Microsoft.BotService/botServices": "2022-09-15",
    "Microsoft.BotService/botServices/channels": "2022-09-15",
    "Microsoft.CognitiveServices/accounts": "2025-06-01",
    "Microsoft.CognitiveServices/accounts/deployments": "2025-06-01",
    "Microsoft.Consumption/budgets": "2023-11-01",
    "Microsoft.DurableTask/schedulers": "2025-11-01",
    "Microsoft.DurableTask/schedulers/taskHubs": "2025-11-01",
    "Microsoft.EventGrid/systemTopics": "2025-02-15",
    "Microsoft.EventGrid/systemTopics/eventSubscriptions": "2025-02-15",
    "Microsoft.Insights/actionGroups": "2023-01-01",
    "Microsoft.Insights/components": "2020-02-02",
    "Microsoft.Insights/diagnosticSettings": "2021-05-01-preview",
    "Microsoft.Insights/metricAlerts": "2018-03-01",
    "Microsoft.Insights/scheduledQueryRules": "2022-06-15",
    "Microsoft.Insights/workbooks": "2023-06-01",
    "Microsoft.ManagedIdentity/userAssignedIdentities": "2024-11-30",
    "Microsoft.Network/networkSecurityGroups": "2025-05-01",
    "Microsoft.Network/privateDnsZones": "2024-06-01",
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": "2024-06-01",
    "Microsoft.Network/privateEndpoints": "2025-05-01",
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": "2025-05-01",
    "Microsoft.Network/virtualNetworks": "2025-05-01",
    "Microsoft.OperationalInsights/workspaces": "2025-07-01",
    "Microsoft.Resources/resourceGroups": "2024-03-01",
    "Microsoft.Search/searchServices": "2025-05-01",
    "Microsoft.Storage/storageAccounts": "2025-06-01",
    "Microsoft.Storage/storageAccounts/blobServices": "2025-06-01",
    "Microsoft.Storage/storageAccounts/blobServices/containers": "2025-06-01",
    "Microsoft.Storage/storageAccounts/managementPolicies": "2025-06-01",
    "Microsoft.Storage/storageAccounts/queueServices": "2025-06-01",
    "Microsoft.Storage/storageAccounts/queueServices/queues": "2025-06-01",
    "Microsoft.Storage/storageAccounts/tableServices": "2025-06-01",
    "Microsoft.Storage/storageAccounts/tableServices/tables": "2025-06-01",
    "Microsoft.Web/serverfarms": "2025-03-01",
    "Microsoft.Web/sites": "2025-03-01",
    "Microsoft.Web/sites/certificates": "2025-03-01",
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": "2025-03-01",
    "Microsoft.Web/sites/config": "2025-03-01",
    "Microsoft.Web/sites/hostNameBindings": "2025-03-01",
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

GRANTS = {
    ("principalId", "hostStorage", "Storage Blob Data Owner"),
    ("principalId", "hostStorage", "Storage Queue Data Contributor"),
    ("principalId", "hostStorage", "Storage Table Data Contributor"),
    ("principalId", "contentStorage", "Storage Blob Data Contributor"),
    ("principalId", "contentStorage", "Storage Blob Delegator"),
    ("principalId", "contentStorage", "Storage Queue Data Contributor"),
    ("principalId", "contentStorage", "Storage Table Data Contributor"),
    ("principalId", "search", "Search Index Data Contributor"),
    ("principalId", "search", "Search Service Contributor"),
    ("principalId", "openAi", "Cognitive Services OpenAI User"),
    ("principalId", "insights", "Monitoring Metrics Publisher"),
    ("principalId", "documentIntelligence", "Cognitive Services User"),
    ("principalId", "scheduler", "Durable Task Data Contributor"),
    ("topicPrincipalId", "contentStorage", "Storage Queue Data Message Sender"),
    ("topicPrincipalId", "contentStorage", "Storage Blob Data Contributor"),
    ("deployerId", "search", "Search Service Contributor"),
    ("deployerId", "search", "Search Index Data Contributor"),
}
"""Who (the app, Event Grid, whoever deploys) has which role on what; one more is too much, one less and
something fails."""

FORBIDDEN_ON_FLEX = (
    "ENABLE_ORYX_BUILD",
    "FUNCTIONS_EXTENSION_VERSION",
    "FUNCTIONS_WORKER_PROCESS_COUNT",
    "FUNCTIONS_WORKER_RUNTIME",
    "FUNCTIONS_WORKER_RUNTIME_VERSION",
    "FUNCTIONS_MAX_HTTP_CONCURRENCY",
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
)
"""Source: learn.microsoft.com, "Flex Consumption plan: deprecated properties and settings"."""

FORBIDDEN_SITE_PROPERTIES = (
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
)
"""Of the site and its siteConfig. The same source; the settings go into a resource of their own here."""
