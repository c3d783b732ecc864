metadata description = 'Groundwork: answers from an organisation\'s documents. Wiring only; every resource is in a module.'

targetScope = 'subscription'

@description('Required. Name of the environment; part of every name.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Required. Region; must have Flex Consumption.')
@minLength(1)
param location string

@description('Optional. Object id of whoever deploys, who creates the indexes; azd fills it in.')
param principalId string = ''

@description('Optional. What kind of principal deploys.')
@allowed([
  'User'
  'ServicePrincipal'
  'Group'
])
param principalType string = 'User'

@description('Required. Client id of the app registration that people sign in to; docs/operations.md says how to make it.')
@minLength(1)
param authClientId string

@description('Optional. Tenant whose people may sign in.')
param authTenantId string = tenant().tenantId

@description('Optional. Region of the models; empty = that of the app.')
param openAiLocation string = ''

@description('Optional. Chat model: writes answers and describes figures.')
param chatModelName string = 'gpt-5-mini'

@description('Optional. Version of the chat model.')
param chatModelVersion string = '2025-08-07'

@description('Optional. Quota of the chat model in thousands of tokens a minute.')
@minValue(1)
param chatModelCapacity int = 200

@description('Optional. Embedding model. Another one wants new indexes: docs/operations.md, "Another embedding model".')
param embeddingModelName string = 'text-embedding-3-large'

@description('Optional. Version of the embedding model.')
param embeddingModelVersion string = '1'

@description('Optional. Quota of the embedding model in thousands of tokens a minute.')
@minValue(1)
param embeddingModelCapacity int = 350

@description('Optional. Length of the vectors.')
@minValue(1)
@maxValue(4096)
param embeddingDimensions int = 1024

@description('Optional. Kind of the deployments of models.')
@allowed([
  'Standard'
  'GlobalStandard'
  'DataZoneStandard'
])
param modelDeploymentType string = 'GlobalStandard'

@description('Optional. Region of the search service, where that of the app has no room for one; empty = that of the app.')
param searchLocation string = ''

@description('Optional. Tier of the search service.')
@allowed([
  'basic'
  'standard'
  'standard2'
  'standard3'
  'storage_optimized_l1'
  'storage_optimized_l2'
])
param searchSku string = 'basic'

@description('Optional. Copies of the search service.')
@minValue(1)
@maxValue(12)
param searchReplicaCount int = 1

@description('Optional. Parts of the search service.')
@allowed([
  1
  2
  3
  4
  6
  12
])
param searchPartitionCount int = 1

@description('Optional. Semantic ranker of the search service; the app uses it unless it is disabled.')
@allowed([
  'disabled'
  'free'
  'standard'
])
param semanticSearch string = 'free'

@description('Optional. Redundancy of the documents\' storage.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
  'Standard_GRS'
  'Standard_GZRS'
])
param storageSku string = 'Standard_ZRS'

@description('Optional. Back end of orchestrations.')
@allowed([
  'AzureStorage'
  'DurableTaskScheduler'
])
param durableBackend string = 'AzureStorage'

@description('Optional. Version of Python of the app.')
@allowed([
  '3.11'
  '3.12'
])
param pythonVersion string = '3.12'

@description('Optional. Memory of an instance in megabytes.')
@allowed([
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Optional. Most instances.')
@minValue(40)
@maxValue(1000)
param maximumInstanceCount int = 100

@description('Optional. Instances that always run, for requests.')
@minValue(0)
@maxValue(20)
param alwaysReadyHttp int = 1

@description('Optional. Spread the app over the zones of its region; two instances of each group of functions always run then, and are paid for.')
param zoneRedundant bool = false

@description('Optional. Most gigabytes of telemetry a day; -1 = no cap. When it is reached, alerts see nothing until the next day.')
@minValue(-1)
param dailyCapGb int = 5

@description('Optional. Read scans, and the layout of documents, by Azure Document Intelligence.')
param useDocumentIntelligence bool = true

@description('Optional. Private endpoints for storage, search and models; nothing of them is on the public network.')
param usePrivateNetwork bool = false

@description('Optional. Make the bot, for Teams.')
param useBot bool = false

@description('Optional. Name of the bot that people see.')
param botDisplayName string = 'Groundwork'

@description('Optional. An own host name; its DNS records stand before. Empty = none.')
param customHostName string = ''

@description('Optional. The own host name that an earlier deployment bound; azd keeps it from output to parameter.')
param boundHostName string = ''

@description('Optional. Who is told of alerts and the budget; empty = there are none.')
param alertEmailAddress string = ''

@description('Optional. Budget of a month in the currency of the subscription; 0 = none.')
@minValue(0)
param monthlyBudget int = 0

@description('Optional. First day of the month that the budget began with; azd keeps it from output to parameter. Empty = thisMonth.')
param budgetStartDate string = ''

@description('Optional. Not to be given: the clock can be read nowhere but in the default of a parameter.')
param thisMonth string = utcNow('yyyy-MM-01')

@description('Optional. Any setting of docs/settings.md by its name; what is set here wins.')
param settings object = {}

var abbreviations = loadJsonContent('abbreviations.json')
var suffix = toLower(uniqueString(subscription().id, environmentName, location))
var tags = {
  'azd-env-name': environmentName
}
var documentsContainer = 'documents'
var deadLetterContainer = 'event-dead-letters'
var packageContainer = 'app-package'
var deletedQueue = 'blob-deleted'
var hasAlerts = !empty(alertEmailAddress)
var hasBudget = hasAlerts && monthlyBudget > 0
// A new budget begins with this month, and no other; one that is there takes no other beginning than its own.
var budgetStart = empty(budgetStartDate) ? thisMonth : budgetStartDate
var publicAccess = usePrivateNetwork ? 'Disabled' : 'Enabled'

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
    sku: contains(storageSku, 'ZRS') ? 'Standard_ZRS' : 'Standard_LRS'
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
    sku: storageSku
    containers: [
      documentsContainer
      'figures'
      'run-log'
      'work'
      deadLetterContainer
    ]
    queues: [
      deletedQueue
      'turns'
      'erasures'
    ]
    tables: [
      'botturns'
      'documents'
      'idempotency'
      'quality'
      'runs'
      'subagentcontrol'
      'subagentmetrics'
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
    location: empty(openAiLocation) ? location : openAiLocation
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
    location: location
    publicNetworkAccess: publicAccess
    tags: tags
  }
}

module durableScheduler 'modules/durable-scheduler.bicep' = if (durableBackend == 'DurableTaskScheduler') {
  name: 'durable-scheduler'
  scope: group
  params: {
    name: '${abbreviations.durableTaskScheduler}${suffix}'
    location: location
    taskHubName: 'groundwork'
    identityClientId: identity.outputs.clientId
    tags: tags
  }
}

module roles 'modules/roles.bicep' = {
  name: 'roles'
  scope: group
  params: {
    principalId: identity.outputs.principalId
    topicPrincipalId: eventGridTopic.outputs.principalId
    hostStorageName: hostStorage.outputs.name
    contentStorageName: contentStorage.outputs.name
    searchName: search.outputs.name
    openAiName: openAi.outputs.name
    insightsName: monitoring.outputs.insightsName
    documentIntelligenceName: useDocumentIntelligence ? documentIntelligence.outputs.name : ''
    schedulerName: durableBackend == 'DurableTaskScheduler' ? durableScheduler.outputs.name : ''
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
    networkId: usePrivateNetwork ? network.outputs.networkId : ''
    subnetId: usePrivateNetwork ? network.outputs.endpointsSubnetId : ''
    prefix: abbreviations.privateEndpoint
    zones: [
      'privatelink.blob.${environment().suffixes.storage}'
      'privatelink.queue.${environment().suffixes.storage}'
      'privatelink.table.${environment().suffixes.storage}'
      'privatelink.search.windows.net'
      'privatelink.openai.azure.com'
      'privatelink.cognitiveservices.azure.com'
    ]
    targets: concat([
      {
        name: 'host-blob'
        resourceId: hostStorage.outputs.resourceId
        groupId: 'blob'
        zone: 0
      }
      {
        name: 'host-queue'
        resourceId: hostStorage.outputs.resourceId
        groupId: 'queue'
        zone: 1
      }
      {
        name: 'host-table'
        resourceId: hostStorage.outputs.resourceId
        groupId: 'table'
        zone: 2
      }
      {
        name: 'docs-blob'
        resourceId: contentStorage.outputs.resourceId
        groupId: 'blob'
        zone: 0
      }
      {
        name: 'docs-queue'
        resourceId: contentStorage.outputs.resourceId
        groupId: 'queue'
        zone: 1
      }
      {
        name: 'docs-table'
        resourceId: contentStorage.outputs.resourceId
        groupId: 'table'
        zone: 2
      }
      {
        name: 'search'
        resourceId: search.outputs.resourceId
        groupId: 'searchService'
        zone: 3
      }
      {
        name: 'openai'
        resourceId: openAi.outputs.resourceId
        groupId: 'account'
        zone: 4
      }
    ], useDocumentIntelligence ? [{ name: 'pages', resourceId: documentIntelligence.outputs.resourceId, groupId: 'account', zone: 5 }] : [])
    tags: tags
  }
}

module appSettings 'modules/app-settings.bicep' = {
  name: 'app-settings'
  scope: group
  params: {
    wired: {
      AZURE_CLIENT_ID: identity.outputs.clientId
      AZURE_OPENAI_ENDPOINT: openAi.outputs.endpoint
      AZURE_SEARCH_ENDPOINT: search.outputs.endpoint
      BOT_APP_ID: useBot ? identity.outputs.clientId : ''
      BOT_TENANT_ID: useBot ? authTenantId : ''
      CHAT_MODEL: chatModelName
      DocumentsStorage__blobServiceUri: contentStorage.outputs.blobEndpoint
      DocumentsStorage__queueServiceUri: contentStorage.outputs.queueEndpoint
      DocumentsStorage__tableServiceUri: contentStorage.outputs.tableEndpoint
      DOCUMENT_INTELLIGENCE_ENDPOINT: useDocumentIntelligence ? documentIntelligence.outputs.endpoint : ''
      EMBEDDING_DIMENSIONS: string(embeddingDimensions)
      EMBEDDING_MODEL: embeddingModelName
      PUBLIC_URL: empty(customHostName) ? '' : 'https://${customHostName}'
      SEMANTIC_RANKER: semanticSearch == 'disabled' ? 'false' : 'true'
      TEXT_RECOGNITION: useDocumentIntelligence ? 'document_intelligence' : 'tesseract'
    }
    overrides: settings
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
    hostBlobEndpoint: hostStorage.outputs.blobEndpoint
    hostQueueEndpoint: hostStorage.outputs.queueEndpoint
    hostTableEndpoint: hostStorage.outputs.tableEndpoint
    packageContainer: packageContainer
    insightsConnectionString: monitoring.outputs.connectionString
    appSettings: appSettings.outputs.settings
    hostSettings: durableBackend == 'DurableTaskScheduler' ? durableScheduler.outputs.hostSettings : {}
    pythonVersion: pythonVersion
    instanceMemoryMB: instanceMemoryMB
    maximumInstanceCount: maximumInstanceCount
    alwaysReadyHttp: alwaysReadyHttp
    zoneRedundant: zoneRedundant
    subnetId: usePrivateNetwork ? network.outputs.appSubnetId : ''
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

module deletionSubscription 'modules/deletion-subscription.bicep' = {
  name: 'deletion-subscription'
  scope: group
  params: {
    topicName: eventGridTopic.outputs.name
    storageName: contentStorage.outputs.name
    documentsContainer: documentsContainer
    deletedQueue: deletedQueue
    deadLetterContainer: deadLetterContainer
  }
  dependsOn: [
    roles
  ]
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
    appId: functionApp.outputs.resourceId
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

@description('Tenant whose people sign in, for the token of the smoke test.')
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

@description('Storage account of the documents, for the subscription to creations.')
output CONTENT_STORAGE_NAME string = contentStorage.outputs.name

@description('System topic, for the same.')
output EVENT_GRID_TOPIC_NAME string = eventGridTopic.outputs.name

@description('Identity of the app, for the permissions of Microsoft Graph.')
output IDENTITY_ID string = identity.outputs.resourceId

@description('Beginning of the budget, for the next deployment; kept although there is none any more, for Azure keeps the budget, too.')
output BUDGET_START_DATE string = hasBudget ? budgetStart : budgetStartDate

@description('Own host name that is bound now, for the next deployment.')
output CUSTOM_HOST_NAME_BOUND string = customHostName

@description('Id of the bot, for the package of the Teams app; empty without one.')
output BOT_APP_ID string = useBot ? bot.outputs.botId : ''
