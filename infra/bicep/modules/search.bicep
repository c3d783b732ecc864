metadata description = 'Azure AI Search without keys. Its indexes are made by the app after the deployment.'

@description('Required. Name of the service.')
param name string

@description('Required. Region.')
param location string

@description('Optional. Tier. basic holds some millions of blocks, standard (S1) and up more: docs/deploy.md.')
@allowed([
  'basic'
  'standard'
  'standard2'
  'standard3'
  'storage_optimized_l1'
  'storage_optimized_l2'
])
param sku string = 'basic'

@description('Optional. Replicas: more answer more queries; three have an SLA for writing, too.')
@minValue(1)
@maxValue(12)
param replicaCount int = 1

@description('Optional. Partitions: more hold more.')
@allowed([
  1
  2
  3
  4
  6
  12
])
param partitionCount int = 1

@description('Optional. Plan of the semantic ranker; free = 1,000 queries a month.')
@allowed([
  'disabled'
  'free'
  'standard'
])
param semanticSearch string = 'disabled'

@description('Optional. Whether the public network reaches it; Disabled wants a private endpoint.')
@allowed([
  'Enabled'
  'Disabled'
])
param publicNetworkAccess string = 'Enabled'

@description('Optional. Resource id of the workspace for diagnostics; empty = none are sent.')
param workspaceId string = ''

@description('Optional. Tags of the resource.')
param tags object = {}

resource service 'Microsoft.Search/searchServices@2025-05-01' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: sku
  }
  properties: {
    disableLocalAuth: true
    partitionCount: partitionCount
    replicaCount: replicaCount
    publicNetworkAccess: publicNetworkAccess
    semanticSearch: semanticSearch
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(workspaceId)) {
  name: 'to-workspace'
  scope: service
  properties: {
    workspaceId: workspaceId
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

@description('Name of the service.')
output name string = service.name

@description('Resource id of the service.')
output resourceId string = service.id

@description('Where the service answers.')
output endpoint string = 'https://${service.name}.search.windows.net'
