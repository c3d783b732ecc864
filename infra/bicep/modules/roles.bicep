metadata description = 'Who may do what, and no more: each role on one resource, for one principal.'

@description('Required. Object id of the identity of the app.')
param principalId string

@description('Required. Object id of the identity by which the platform writes and reads the package.')
param deploymentPrincipalId string

@description('Required. Object id of the identity by which the app makes indexes.')
param searchPrincipalId string

@description('Required. Object id of the identity of the Event Grid topic.')
param topicPrincipalId string

@description('Required. Name of the storage account of the host.')
param hostStorageName string

@description('Required. Name of the storage account of the package.')
param packageStorageName string

@description('Required. Name of the storage account of the documents.')
param contentStorageName string

@description('Required. Name of the search service.')
param searchName string

@description('Required. Name of the account of the models.')
param openAiName string

@description('Required. Name of Application Insights.')
param insightsName string

@description('Optional. Name of the Document Intelligence account; empty = there is none.')
param documentIntelligenceName string = ''

@description('Optional. Name of the Durable Task Scheduler; empty = there is none.')
param schedulerName string = ''

@description('Optional. Object id of the person or identity that deploys and creates indexes; empty = none.')
param deployerId string = ''

@description('Optional. What kind of principal deploys.')
@allowed([
  'User'
  'ServicePrincipal'
  'Group'
])
param deployerType string = 'User'

// Source of the ids: learn.microsoft.com, "Azure built-in roles".
var roles = {
  storageBlobDataOwner: 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b' // Storage Blob Data Owner
  storageBlobDataContributor: 'ba92f5b4-2d11-453d-a403-e96b0029c9fe' // Storage Blob Data Contributor
  storageBlobDelegator: 'db58b8e5-c6ad-4a2a-8342-4190687cbf4a' // Storage Blob Delegator
  storageQueueDataContributor: '974c5e8b-45b9-4653-ba55-5f855dd0fb88' // Storage Queue Data Contributor
  storageQueueDataMessageSender: 'c6a89b2d-59bc-44d0-9896-0f6e12d7b80a' // Storage Queue Data Message Sender
  storageTableDataContributor: '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3' // Storage Table Data Contributor
  searchIndexDataContributor: '8ebe5a00-799e-43f5-93ac-243d3dce84a7' // Search Index Data Contributor
  searchServiceContributor: '7ca78c08-252a-4471-8644-bb5ff32d4ba0' // Search Service Contributor
  openAiUser: '5e0bd9bd-7b93-4f28-af87-19fc36ad61bd' // Cognitive Services OpenAI User
  cognitiveServicesUser: 'a97b65f3-24c7-4388-baec-2e87135dc908' // Cognitive Services User
  monitoringMetricsPublisher: '3913510d-42f4-4e42-8a64-420c390055eb' // Monitoring Metrics Publisher
  durableTaskDataContributor: '0ad04412-c4d5-4796-b79c-f76d14c8d402' // Durable Task Data Contributor
}

resource hostStorage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: hostStorageName
}

resource packageStorage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: packageStorageName
}

resource contentStorage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: contentStorageName
}

resource search 'Microsoft.Search/searchServices@2025-05-01' existing = {
  name: searchName
}

resource openAi 'Microsoft.CognitiveServices/accounts@2025-06-01' existing = {
  name: openAiName
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource documentIntelligence 'Microsoft.CognitiveServices/accounts@2025-06-01' existing = if (!empty(documentIntelligenceName)) {
  // A name is evaluated whatever the condition says, and an empty one is refused.
  name: empty(documentIntelligenceName) ? 'none' : documentIntelligenceName
}

resource scheduler 'Microsoft.DurableTask/schedulers@2026-02-01' existing = if (!empty(schedulerName)) {
  name: empty(schedulerName) ? 'none' : schedulerName
}

// The platform writes the package, and each instance reads it when it starts. Nobody else has a role there.
resource packageBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(packageStorage.id, deploymentPrincipalId, roles.storageBlobDataContributor)
  scope: packageStorage
  properties: {
    principalId: deploymentPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

// The host keeps leases there.
resource hostBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(hostStorage.id, principalId, roles.storageBlobDataOwner)
  scope: hostStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataOwner)
  }
}

// Durable Functions and triggers.
resource hostQueues 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(hostStorage.id, principalId, roles.storageQueueDataContributor)
  scope: hostStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataContributor)
  }
}

// Durable Functions keep their history there.
resource hostTables 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(hostStorage.id, principalId, roles.storageTableDataContributor)
  scope: hostStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageTableDataContributor)
  }
}

// Documents, figures, run logs.
resource contentBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, principalId, roles.storageBlobDataOwner)
  scope: contentStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataOwner)
  }
}

// Signed addresses by a user delegation key.
resource contentDelegation 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, principalId, roles.storageBlobDelegator)
  scope: contentStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDelegator)
  }
}

// Events of blobs, tasks after a turn.
resource contentQueues 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, principalId, roles.storageQueueDataContributor)
  scope: contentStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataContributor)
  }
}

// Runs, threads, states of documents.
resource contentTables 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, principalId, roles.storageTableDataContributor)
  scope: contentStorage
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageTableDataContributor)
  }
}

// Event Grid puts deletions into the queue.
resource topicQueue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, topicPrincipalId, roles.storageQueueDataMessageSender)
  scope: contentStorage
  properties: {
    principalId: topicPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataMessageSender)
  }
}

// Event Grid writes what it could not deliver.
resource topicDeadLetters 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(contentStorage.id, topicPrincipalId, roles.storageBlobDataContributor)
  scope: contentStorage
  properties: {
    principalId: topicPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

// Reads and writes rows.
resource searchRows 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(search.id, principalId, roles.searchIndexDataContributor)
  scope: search
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.searchIndexDataContributor)
  }
}

// Makes indexes, and adds fields to them.
resource searchIndexes 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(search.id, searchPrincipalId, roles.searchServiceContributor)
  scope: search
  properties: {
    principalId: searchPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.searchServiceContributor)
  }
}

// Calls models; deploys none.
resource models 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(openAi.id, principalId, roles.openAiUser)
  scope: openAi
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.openAiUser)
  }
}

// Sends telemetry.
resource telemetry 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, principalId, roles.monitoringMetricsPublisher)
  scope: insights
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.monitoringMetricsPublisher)
  }
}

// Reads scans.
resource pages 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(documentIntelligenceName)) {
  name: guid(documentIntelligence.id, principalId, roles.cognitiveServicesUser)
  scope: documentIntelligence
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.cognitiveServicesUser)
  }
}

// Durable Task Scheduler instead of storage.
resource orchestrations 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(schedulerName)) {
  name: guid(scheduler.id, principalId, roles.durableTaskDataContributor)
  scope: scheduler
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.durableTaskDataContributor)
  }
}

// The migration of an index makes a new one beside it.
resource deployerIndexes 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerId)) {
  name: guid(search.id, deployerId, roles.searchServiceContributor)
  scope: search
  properties: {
    principalId: deployerId
    principalType: deployerType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.searchServiceContributor)
  }
}

// The migration of an index copies its rows.
resource deployerRows 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerId)) {
  name: guid(search.id, deployerId, roles.searchIndexDataContributor)
  scope: search
  properties: {
    principalId: deployerId
    principalType: deployerType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.searchIndexDataContributor)
  }
}
