metadata description = 'A storage account without keys: containers, queues, tables, and rules that end what is temporary.'

@description('Required. Name of the account, 3-24 lower-case letters and digits.')
param name string

@description('Required. Region.')
param location string

@description('Optional. Redundancy.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
  'Standard_GRS'
  'Standard_GZRS'
])
param sku string = 'Standard_ZRS'

@description('Optional. Origins whose pages may send files by addresses that the app signs.')
param uploadOrigins array = []

@description('Optional. Names of the blob containers.')
param containers array = []

@description('Optional. Names of the queues.')
param queues array = []

@description('Optional. Names of the tables.')
param tables array = []

@description('Optional. Whether the public network reaches it; Disabled wants private endpoints.')
@allowed([
  'Enabled'
  'Disabled'
])
param publicNetworkAccess string = 'Enabled'

@description('Optional. Days that a deleted blob or container can be brought back.')
@minValue(1)
@maxValue(365)
param softDeleteDays int = 14

@description('Optional. Lifecycle rules, as the management policy takes them.')
param lifecycleRules array = []

@description('Optional. Resource id of the workspace for diagnostics; empty = none are sent.')
param workspaceId string = ''

@description('Optional. Tags of the resources.')
param tags object = {}

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: sku
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: publicNetworkAccess
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    }
  }
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    cors: {
      corsRules: empty(uploadOrigins) ? [] : [
        {
          allowedOrigins: uploadOrigins
          allowedMethods: [
            'PUT'
          ]
          allowedHeaders: [
            'content-type'
            'x-ms-*'
          ]
          exposedHeaders: []
          maxAgeInSeconds: 3600
        }
      ]
    }
    deleteRetentionPolicy: {
      enabled: true
      days: softDeleteDays
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: softDeleteDays
    }
  }
}

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-06-01' = {
  parent: account
  name: 'default'
}

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-06-01' = {
  parent: account
  name: 'default'
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = [for item in containers: {
  parent: blobService
  name: item
  properties: {
    publicAccess: 'None'
  }
}]

resource queue 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-06-01' = [for item in queues: {
  parent: queueService
  name: item
}]

resource table 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-06-01' = [for item in tables: {
  parent: tableService
  name: item
}]

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = if (!empty(lifecycleRules)) {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: lifecycleRules
    }
  }
  dependsOn: [
    blobService
  ]
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(workspaceId)) {
  name: 'to-workspace'
  scope: blobService
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'StorageDelete'
        enabled: true
      }
    ]
    metrics: [
      {
        category: 'Transaction'
        enabled: true
      }
    ]
  }
}

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Blob endpoint, without a slash at its end.')
output blobEndpoint string = 'https://${account.name}.blob.${environment().suffixes.storage}'

@description('Queue endpoint, without a slash at its end.')
output queueEndpoint string = 'https://${account.name}.queue.${environment().suffixes.storage}'

@description('Table endpoint, without a slash at its end.')
output tableEndpoint string = 'https://${account.name}.table.${environment().suffixes.storage}'
