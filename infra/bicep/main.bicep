metadata description = 'Groundwork: answers from an organisation\'s documents. Wiring only; every resource is in a module.'

targetScope = 'subscription'

@description('Required. Name of the environment; part of every name.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Required. Region of the app; those with Flex Consumption. One that is new there is added here.')
@allowed([
  'australiaeast'
  'australiasoutheast'
  'brazilsouth'
  'canadacentral'
  'centralindia'
  'centralus'
  'eastasia'
  'eastus'
  'eastus2'
  'francecentral'
  'germanywestcentral'
  'italynorth'
  'japaneast'
  'koreacentral'
  'northcentralus'
  'northeurope'
  'norwayeast'
  'southafricanorth'
  'southcentralus'
  'southeastasia'
  'southindia'
  'spaincentral'
  'swedencentral'
  'uaenorth'
  'uksouth'
  'ukwest'
  'westcentralus'
  'westeurope'
  'westus'
  'westus2'
  'westus3'
])
@metadata({
  azd: {
    type: 'location'
  }
})
param location string

@description('Optional. Object id of the person or identity that deploys and creates the indexes; azd fills it in.')
param principalId string = ''

@description('Optional. Type of that principal; azd fills it in.')
@allowed([
  'User'
  'ServicePrincipal'
  'Group'
])
param principalType string = 'User'

@description('Required. Client id of the app registration that people sign in to; docs/deploy.md says how to create it.')
@minLength(1)
param authClientId string

@description('Required. Secret from which the ids of questions and conversations are made. It must never change; docs/deploy.md says why.')
@minLength(32)
@secure()
param ownerIdKey string

@description('Optional. Tenant whose people may sign in.')
param authTenantId string = tenant().tenantId

@description('Required. Region of the models; azd offers those where the subscription has quota for the defaults below.')
@metadata({
  azd: {
    type: 'location'
    usageName: [
      'OpenAI.GlobalStandard.gpt-5.4-mini,30'
      'OpenAI.GlobalStandard.text-embedding-3-large,120'
    ]
  }
})
param openAiLocation string

@description('Optional. Chat model: writes answers and describes figures.')
param chatModelName string = 'gpt-5.4-mini'

@description('Optional. Version of the chat model. One that is older than a year is closed to new subscriptions.')
param chatModelVersion string = '2026-03-17'

@description('Optional. Quota of the chat model in thousands of tokens a minute.')
@minValue(1)
param chatModelCapacity int = 30

@description('Optional. Price of a million tokens that the chat model reads, in US dollars.')
param chatModelInputPrice string = '0.75'

@description('Optional. Price of a million tokens that the chat model writes, in US dollars.')
param chatModelOutputPrice string = '4.50'

@description('Optional. Embedding model. Another one needs new indexes: docs/operate.md, "Another embedding model".')
param embeddingModelName string = 'text-embedding-3-large'

@description('Optional. Version of the embedding model.')
param embeddingModelVersion string = '1'

@description('Optional. Quota of the embedding model in thousands of tokens a minute.')
@minValue(1)
param embeddingModelCapacity int = 120

@description('Optional. Length of the vectors.')
@minValue(1)
@maxValue(4096)
param embeddingDimensions int = 1024

@description('Optional. Deployment type of the models.')
@allowed([
  'Standard'
  'GlobalStandard'
  'DataZoneStandard'
])
param modelDeploymentType string = 'GlobalStandard'

@description('Optional. Recover the accounts of models and Document Intelligence that `azd down` without --purge left soft-deleted.')
param restoreAccounts bool = false

@description('Optional. Region of the search service, if that of the app has no capacity for one; empty = that of the app.')
param searchLocation string = ''

@description('Optional. Tier of the search service. basic takes at most 3 replicas and 3 partitions.')
@allowed([
  'basic'
  'standard'
  'standard2'
  'standard3'
  'storage_optimized_l1'
  'storage_optimized_l2'
])
param searchSku string = 'basic'

@description('Optional. Replicas of the search service.')
@minValue(1)
@maxValue(12)
param searchReplicaCount int = 1

@description('Optional. Partitions of the search service.')
@allowed([
  1
  2
  3
  4
  6
  12
])
param searchPartitionCount int = 1

@description('Optional. Plan of the semantic ranker; the app uses it unless it is disabled. free = 1,000 queries a month, then refusals.')
@allowed([
  'disabled'
  'free'
  'standard'
])
param semanticSearch string = 'disabled'

@description('Optional. Redundancy of the documents\' storage.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
  'Standard_GRS'
  'Standard_GZRS'
])
param storageSku string = 'Standard_LRS'

@description('Optional. Back end of orchestrations.')
@allowed([
  'AzureStorage'
  'DurableTaskScheduler'
])
param durableBackend string = 'AzureStorage'

@description('Optional. Python version of the app.')
@allowed([
  '3.11'
  '3.12'
  '3.13'
])
param pythonVersion string = '3.13'

@description('Optional. Memory of an instance in megabytes; it decides how large a document may be.')
@allowed([
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Optional. Maximum number of instances.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int = 100

@description('Optional. Always-ready instances for requests; 0 = the first question after a pause waits for a cold start.')
@minValue(0)
@maxValue(20)
param alwaysReadyHttp int = 1

@description('Optional. Always-ready instances for orchestrations; 0 as above.')
@minValue(0)
@maxValue(20)
param alwaysReadyDurable int = 1

@description('Optional. Always-ready instances for blob events; 0 = a file after a pause waits for a cold start.')
@minValue(0)
@maxValue(20)
param alwaysReadyBlob int = 0

@description('Optional. Spread the app and its storage over the zones of the region. Azure then keeps, and bills, two always-ready instances of each group.')
param zoneRedundant bool = false

@description('Optional. Daily cap on telemetry in gigabytes; -1 = none. Above it nothing is recorded until the next day.')
@minValue(-1)
param dailyCapGb int = 5

@description('Optional. Share of traces that the app and its host record, from 0 to 1.')
param traceSampleRatio string = '1.0'

@description('Optional. Read scans with Azure Document Intelligence.')
param useDocumentIntelligence bool = true

@description('Optional. Region of Document Intelligence; empty = that of the app.')
param documentIntelligenceLocation string = ''

@description('Optional. Reach storage, search and models by private endpoints only.')
param usePrivateNetwork bool = false

@description('Optional. Have Microsoft Defender for Storage scan uploads for malware and soft-delete what is malicious; billed by the gigabyte.')
param scanUploads bool = false

@description('Optional. Gigabytes that are scanned a month; above it, nothing is.')
@minValue(1)
param scanCapGb int = 100

@description('Optional. Create the bot for Teams.')
param useBot bool = false

@description('Optional. Display name of the bot.')
param botDisplayName string = 'Groundwork'

@description('Optional. Custom host name; its DNS records must exist. Empty = none.')
param customHostName string = ''

@description('Optional. Custom host name that an earlier deployment bound; azd passes it from output to parameter.')
param boundHostName string = ''

@description('Optional. SharePoint sites, libraries, folders and OneDrives to synchronise, comma separated; empty = none.')
param sharePointLibraries string = ''

@description('Optional. Recipient of alerts and of the budget\'s mails; empty = neither.')
param alertEmailAddress string = ''

@description('Optional. Monthly budget in the currency of the subscription; 0 = none.')
@minValue(0)
param monthlyBudget int = 0

@description('Optional. First day of the month in which the budget began; azd passes it from output to parameter. Empty = thisMonth.')
param budgetStartDate string = ''

@description('Optional. Never set it: only the default of a parameter can read the clock.')
param thisMonth string = utcNow('yyyy-MM-01')

@description('Optional. Settings of docs/settings.md by name; they override what the deployment sets.')
param settings { *: string } = {}

var abbreviations = loadJsonContent('abbreviations.json')
var suffix = toLower(uniqueString(subscription().id, environmentName, location))
var tags = {
  'azd-env-name': environmentName
}
var documentsContainer = 'documents'
// Of the web page, which sends large files straight to the storage account.
var pageOrigins = concat(['https://${abbreviations.functionApp}${suffix}.azurewebsites.net'], empty(customHostName) ? [] : ['https://${customHostName}'])
var deadLetterContainer = 'event-dead-letters'
var packageContainer = 'app-package'
var deletedQueue = 'blob-deleted'
var hasScheduler = durableBackend == 'DurableTaskScheduler'
var hasAlerts = !empty(alertEmailAddress)
var hasBudget = hasAlerts && monthlyBudget > 0
// Azure takes only this month for a new budget, and only the old month for one that exists.
var budgetStart = empty(budgetStartDate) ? thisMonth : budgetStartDate
// A storage account of one zone would end an app that outlives a zone.
var zonal = zoneRedundant || contains(storageSku, 'ZRS')
var zonalSkus = {
  Standard_LRS: 'Standard_ZRS'
  Standard_GRS: 'Standard_GZRS'
}
var publicAccess = usePrivateNetwork ? 'Disabled' : 'Enabled'

var blobZone = 'privatelink.blob.${environment().suffixes.storage}'
var queueZone = 'privatelink.queue.${environment().suffixes.storage}'
var tableZone = 'privatelink.table.${environment().suffixes.storage}'
var searchZone = 'privatelink.search.windows.net'
var schedulerZone = 'privatelink.durabletask.io'
// An account of kind AIServices answers by three names.
var modelZones = [
  'privatelink.cognitiveservices.azure.com'
  'privatelink.openai.azure.com'
  'privatelink.services.ai.azure.com'
]

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: '${abbreviations.resourceGroup}${environmentName}'
  location: location
  tags: tags
}

module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    name: '${abbreviations.managedIdentity}${suffix}'
    location: location
    tags: tags
  }
}

// The platform writes and reads the package by it; the app's own identity has no role there.
module deploymentIdentity 'modules/identity.bicep' = {
  name: 'deployment-identity'
  scope: group
  params: {
    name: '${abbreviations.managedIdentity}deploy-${suffix}'
    location: location
    tags: tags
  }
}

// Makes indexes and adds fields to them; the app's own identity only reads and writes rows.
module searchIdentity 'modules/identity.bicep' = {
  name: 'search-identity'
  scope: group
  params: {
    name: '${abbreviations.managedIdentity}search-${suffix}'
    location: location
    tags: tags
  }
}

module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    workspaceName: '${abbreviations.logAnalyticsWorkspace}${suffix}'
    insightsName: '${abbreviations.applicationInsights}${suffix}'
    location: location
    dailyCapGb: dailyCapGb
    tags: tags
  }
}

module hostStorage 'modules/storage.bicep' = {
  name: 'host-storage'
  scope: group
  params: {
    name: '${abbreviations.storageAccount}host${suffix}'
    location: location
    sku: zonal ? 'Standard_ZRS' : 'Standard_LRS'
    publicNetworkAccess: publicAccess
    tags: tags
  }
}

// An account of its own: the app owns all blobs of the host's storage, and must not replace its own code.
module packageStorage 'modules/storage.bicep' = {
  name: 'package-storage'
  scope: group
  params: {
    name: '${abbreviations.storageAccount}code${suffix}'
    location: location
    sku: zonal ? 'Standard_ZRS' : 'Standard_LRS'
    containers: [
      packageContainer
    ]
    publicNetworkAccess: publicAccess
    tags: tags
  }
}

module contentStorage 'modules/storage.bicep' = {
  name: 'content-storage'
  scope: group
  params: {
    name: '${abbreviations.storageAccount}docs${suffix}'
    location: location
    sku: zonal ? (zonalSkus[?storageSku] ?? storageSku) : storageSku
    uploadOrigins: pageOrigins
    containers: [
      documentsContainer
      'run-log'
      'work'
      deadLetterContainer
    ]
    queues: [
      deletedQueue
      'turns'
      'erasures'
      'ingestions'
    ]
    tables: [
      'audit'
      'botturns'
      'documents'
      'idempotency'
      'libraries'
      'quality'
      'runs'
      'subagentcontrol'
      'threads'
      'userlimits'
    ]
    lifecycleRules: [
      {
        name: 'dead-letters'
        enabled: true
        type: 'Lifecycle'
        definition: {
          filters: {
            blobTypes: [
              'blockBlob'
            ]
            prefixMatch: [
              '${deadLetterContainer}/'
            ]
          }
          actions: {
            baseBlob: {
              delete: {
                daysAfterModificationGreaterThan: 30
              }
            }
          }
        }
      }
    ]
    publicNetworkAccess: publicAccess
    workspaceId: monitoring.outputs.workspaceId
    tags: tags
  }
}

module search 'modules/search.bicep' = {
  name: 'search'
  scope: group
  params: {
    name: '${abbreviations.searchService}${suffix}'
    location: empty(searchLocation) ? location : searchLocation
    sku: searchSku
    replicaCount: searchReplicaCount
    partitionCount: searchPartitionCount
    semanticSearch: semanticSearch
    publicNetworkAccess: publicAccess
    workspaceId: monitoring.outputs.workspaceId
    tags: tags
  }
}

module openAi 'modules/openai.bicep' = {
  name: 'openai'
  scope: group
  params: {
    name: '${abbreviations.cognitiveServices}openai-${suffix}'
    location: openAiLocation
    deployments: [
      {
        name: chatModelName
        model: chatModelName
        version: chatModelVersion
        sku: modelDeploymentType
        capacity: chatModelCapacity
      }
      {
        name: embeddingModelName
        model: embeddingModelName
        version: embeddingModelVersion
        sku: modelDeploymentType
        capacity: embeddingModelCapacity
      }
    ]
    restore: restoreAccounts
    publicNetworkAccess: publicAccess
    workspaceId: monitoring.outputs.workspaceId
    tags: tags
  }
}

module documentIntelligence 'modules/document-intelligence.bicep' = if (useDocumentIntelligence) {
  name: 'document-intelligence'
  scope: group
  params: {
    name: '${abbreviations.cognitiveServices}pages-${suffix}'
    location: empty(documentIntelligenceLocation) ? location : documentIntelligenceLocation
    restore: restoreAccounts
    publicNetworkAccess: publicAccess
    tags: tags
  }
}

module durableScheduler 'modules/durable-scheduler.bicep' = if (hasScheduler) {
  name: 'durable-scheduler'
  scope: group
  params: {
    name: '${abbreviations.durableTaskScheduler}${suffix}'
    location: location
    taskHubName: 'groundwork'
    identityClientId: identity.outputs.clientId
    publicNetworkAccess: publicAccess
    tags: tags
  }
}

module malwareScan 'modules/malware-scan.bicep' = if (scanUploads) {
  name: 'malware-scan'
  scope: group
  params: {
    storageName: contentStorage.outputs.name
    monthlyCapGb: scanCapGb
  }
}

module roles 'modules/roles.bicep' = {
  name: 'roles'
  scope: group
  params: {
    principalId: identity.outputs.principalId
    deploymentPrincipalId: deploymentIdentity.outputs.principalId
    searchPrincipalId: searchIdentity.outputs.principalId
    packageStorageName: packageStorage.outputs.name
    topicPrincipalId: eventGridTopic.outputs.principalId
    hostStorageName: hostStorage.outputs.name
    contentStorageName: contentStorage.outputs.name
    searchName: search.outputs.name
    openAiName: openAi.outputs.name
    insightsName: monitoring.outputs.insightsName
    documentIntelligenceName: documentIntelligence.?outputs.name ?? ''
    schedulerName: durableScheduler.?outputs.name ?? ''
    deployerId: principalId
    deployerType: principalType
  }
}

module network 'modules/network.bicep' = if (usePrivateNetwork) {
  name: 'network'
  scope: group
  params: {
    name: '${abbreviations.virtualNetwork}${suffix}'
    location: location
    tags: tags
  }
}

module privateEndpoints 'modules/private-endpoints.bicep' = if (usePrivateNetwork) {
  name: 'private-endpoints'
  scope: group
  params: {
    location: location
    networkId: network!.outputs.networkId
    subnetId: network!.outputs.endpointsSubnetId
    prefix: abbreviations.privateEndpoint
    zones: concat([blobZone, queueZone, tableZone, searchZone], modelZones, hasScheduler ? [schedulerZone] : [])
    targets: concat(
      [
        {
          name: 'host-blob'
          resourceId: hostStorage.outputs.resourceId
          groupId: 'blob'
          zones: [blobZone]
        }
        {
          name: 'host-queue'
          resourceId: hostStorage.outputs.resourceId
          groupId: 'queue'
          zones: [queueZone]
        }
        {
          name: 'host-table'
          resourceId: hostStorage.outputs.resourceId
          groupId: 'table'
          zones: [tableZone]
        }
        {
          name: 'code-blob'
          resourceId: packageStorage.outputs.resourceId
          groupId: 'blob'
          zones: [blobZone]
        }
        {
          name: 'docs-blob'
          resourceId: contentStorage.outputs.resourceId
          groupId: 'blob'
          zones: [blobZone]
        }
        {
          name: 'docs-queue'
          resourceId: contentStorage.outputs.resourceId
          groupId: 'queue'
          zones: [queueZone]
        }
        {
          name: 'docs-table'
          resourceId: contentStorage.outputs.resourceId
          groupId: 'table'
          zones: [tableZone]
        }
        {
          name: 'search'
          resourceId: search.outputs.resourceId
          groupId: 'searchService'
          zones: [searchZone]
        }
        {
          name: 'openai'
          resourceId: openAi.outputs.resourceId
          groupId: 'account'
          zones: modelZones
        }
      ],
      useDocumentIntelligence
        ? [
            {
              name: 'pages'
              resourceId: documentIntelligence!.outputs.resourceId
              groupId: 'account'
              zones: [modelZones[0]]
            }
          ]
        : [],
      hasScheduler
        ? [
            {
              name: 'scheduler'
              resourceId: durableScheduler!.outputs.resourceId
              groupId: 'scheduler'
              zones: [schedulerZone]
            }
          ]
        : []
    )
    tags: tags
  }
}

module functionApp 'modules/function-app.bicep' = {
  name: 'function-app'
  scope: group
  params: {
    name: '${abbreviations.functionApp}${suffix}'
    planName: '${abbreviations.appServicePlan}${suffix}'
    location: location
    identityId: identity.outputs.resourceId
    identityClientId: identity.outputs.clientId
    deploymentIdentityId: deploymentIdentity.outputs.resourceId
    searchIdentityId: searchIdentity.outputs.resourceId
    packageBlobEndpoint: packageStorage.outputs.blobEndpoint
    hostBlobEndpoint: hostStorage.outputs.blobEndpoint
    hostQueueEndpoint: hostStorage.outputs.queueEndpoint
    hostTableEndpoint: hostStorage.outputs.tableEndpoint
    packageContainer: packageContainer
    insightsConnectionString: monitoring.outputs.connectionString
    // Whatever is not here has the default of docs/settings.md.
    appSettings: union(
      {
        // Synchronised permissions for everyone are those of the organisation.
        ALLOWED_TENANTS: empty(sharePointLibraries) ? '' : authTenantId
        AZURE_CLIENT_ID: identity.outputs.clientId
        AZURE_OPENAI_ENDPOINT: openAi.outputs.endpoint
        AZURE_SEARCH_ADMIN_CLIENT_ID: searchIdentity.outputs.clientId
        AZURE_SEARCH_ENDPOINT: search.outputs.endpoint
        BOT_APP_ID: useBot ? identity.outputs.clientId : ''
        BOT_TENANT_ID: useBot ? authTenantId : ''
        CHAT_MODEL: chatModelName
        CHAT_MODEL_INPUT_USD_PER_MILLION_TOKENS: chatModelInputPrice
        CHAT_MODEL_OUTPUT_USD_PER_MILLION_TOKENS: chatModelOutputPrice
        DocumentsStorage__blobServiceUri: contentStorage.outputs.blobEndpoint
        DocumentsStorage__queueServiceUri: contentStorage.outputs.queueEndpoint
        DocumentsStorage__tableServiceUri: contentStorage.outputs.tableEndpoint
        DOCUMENT_INTELLIGENCE_ENDPOINT: documentIntelligence.?outputs.endpoint ?? ''
        EMBEDDING_DIMENSIONS: string(embeddingDimensions)
        EMBEDDING_MODEL: embeddingModelName
        INSTANCE_MEMORY_MB: string(instanceMemoryMB)
        // Otherwise anybody's file, under a name that others trust, could be a source of everybody's answers.
        PUBLISH_ROLE: 'publisher'
        PUBLIC_URL: empty(customHostName) ? '' : 'https://${customHostName}'
        SEMANTIC_RANKER: semanticSearch == 'disabled' ? 'false' : 'true'
        SHAREPOINT_LIBRARIES: sharePointLibraries
        TEXT_RECOGNITION: useDocumentIntelligence ? 'document_intelligence' : 'tesseract'
        TRACE_SAMPLE_RATIO: traceSampleRatio
      },
      settings
    )
    hostSettings: durableScheduler.?outputs.hostSettings ?? {}
    ownerIdKey: ownerIdKey
    traceSampleRatio: traceSampleRatio
    pythonVersion: pythonVersion
    instanceMemoryMB: instanceMemoryMB
    maximumInstanceCount: maximumInstanceCount
    alwaysReady: {
      http: alwaysReadyHttp
      durable: alwaysReadyDurable
      blob: alwaysReadyBlob
    }
    zoneRedundant: zoneRedundant
    subnetId: network.?outputs.appSubnetId ?? ''
    workspaceId: monitoring.outputs.workspaceId
    tags: tags
  }
  dependsOn: [
    roles
    privateEndpoints
  ]
}

module auth 'modules/auth.bicep' = {
  name: 'auth'
  scope: group
  params: {
    appName: functionApp.outputs.name
    clientId: authClientId
    tenantId: authTenantId
  }
}

module eventGridTopic 'modules/eventgrid-topic.bicep' = {
  name: 'eventgrid-topic'
  scope: group
  params: {
    name: '${abbreviations.eventGridSystemTopic}${suffix}'
    location: location
    storageName: contentStorage.outputs.name
    tags: tags
  }
}

module bot 'modules/bot.bicep' = if (useBot) {
  name: 'bot'
  scope: group
  params: {
    name: '${abbreviations.bot}${suffix}'
    displayName: botDisplayName
    hostName: functionApp.outputs.hostName
    identityId: identity.outputs.resourceId
    identityClientId: identity.outputs.clientId
    tenantId: tenant().tenantId
    tags: tags
  }
}

module hostName 'modules/custom-host-name.bicep' = if (!empty(customHostName)) {
  name: 'custom-host-name'
  scope: group
  params: {
    appName: functionApp.outputs.name
    location: location
    hostName: customHostName
    isBound: boundHostName == customHostName
    tags: tags
  }
  // The platform refuses two changes of one app at the same time.
  dependsOn: [
    auth
  ]
}

module workbook 'modules/workbook.bicep' = {
  name: 'workbook'
  scope: group
  params: {
    location: location
    insightsId: monitoring.outputs.insightsId
    displayName: 'Groundwork ${environmentName}'
    tags: tags
  }
}

module alerts 'modules/alerts.bicep' = if (hasAlerts) {
  name: 'alerts'
  scope: group
  params: {
    actionGroupName: '${abbreviations.actionGroup}${suffix}'
    location: location
    emailAddress: alertEmailAddress
    workspaceId: monitoring.outputs.workspaceId
    openAiId: openAi.outputs.resourceId
    insightsId: monitoring.outputs.insightsId
    tags: tags
  }
}

module budget 'modules/budget.bicep' = if (hasBudget) {
  name: 'budget'
  scope: group
  params: {
    name: 'groundwork-${suffix}'
    amount: monthlyBudget
    emailAddress: alertEmailAddress
    startDate: budgetStart
  }
}

@description('Region, for azd.')
output AZURE_LOCATION string = location

@description('Tenant of the subscription, for azd.')
output AZURE_TENANT_ID string = tenant().tenantId

@description('Tenant whose people sign in, for the token of the check.')
output AUTH_TENANT_ID string = authTenantId

@description('Resource group of everything.')
output AZURE_RESOURCE_GROUP string = group.name

@description('Name of the app.')
output AZURE_FUNCTION_APP_NAME string = functionApp.outputs.name

@description('Where the app answers.')
output GROUNDWORK_URL string = 'https://${functionApp.outputs.hostName}'

@description('Scope of a token for the app, for the command line and the smoke test.')
output GROUNDWORK_SCOPE string = 'api://${authClientId}/.default'

@description('Search service, for the migration of an index.')
output AZURE_SEARCH_ENDPOINT string = search.outputs.endpoint

@description('Length of the vectors, for the same.')
output EMBEDDING_DIMENSIONS string = string(embeddingDimensions)

@description('Storage account of the documents, for the subscriptions to its events.')
output CONTENT_STORAGE_NAME string = contentStorage.outputs.name

@description('System topic, for the same.')
output EVENT_GRID_TOPIC_NAME string = eventGridTopic.outputs.name

@description('Object id of the app\'s identity, for its federated credential and its permissions in Microsoft Graph.')
output IDENTITY_PRINCIPAL_ID string = identity.outputs.principalId

@description('Client id of the app\'s identity.')
output IDENTITY_CLIENT_ID string = identity.outputs.clientId

@description('Beginning of the budget, for the next deployment; kept when the budget is removed, because Azure keeps it.')
output BUDGET_START_DATE string = hasBudget ? budgetStart : budgetStartDate

@description('Custom host name that is bound, for the next deployment; kept when it is removed, because Azure keeps the binding.')
output CUSTOM_HOST_NAME_BOUND string = empty(customHostName) ? boundHostName : customHostName

@description('Id of the bot, for the package of the Teams app; empty without one.')
output BOT_APP_ID string = bot.?outputs.botId ?? ''
