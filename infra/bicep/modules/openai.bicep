metadata description = 'Models without keys: an account, and its deployments for chat (which also sees) and embeddings.'

@description('Required. Name of the account, which is its subdomain, too.')
param name string

@description('Required. Region; not every model is in every one.')
param location string

@description('Required. Deployments: each name, model, version, sku and capacity (thousands of tokens a minute).')
param deployments array

@description('Optional. Recover a soft-deleted account of the same name.')
param restore bool = false

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

resource account 'Microsoft.CognitiveServices/accounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'AIServices'
  sku: {
    name: 'S0'
  }
  properties: {
    customSubDomainName: name
    disableLocalAuth: true
    restore: restore ? true : null
    publicNetworkAccess: publicNetworkAccess
    networkAcls: {
      defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    }
  }
}

// One after another: the service refuses a second deployment while the first is under way.
@batchSize(1)
resource deployment 'Microsoft.CognitiveServices/accounts/deployments@2025-06-01' = [for item in deployments: {
  parent: account
  name: item.name
  sku: {
    name: item.sku
    capacity: item.capacity
  }
  properties: {
    model: {
      format: 'OpenAI'
      name: item.model
      version: item.version
    }
    // A version that ends is replaced; until then answers change only when the parameter does.
    versionUpgradeOption: 'OnceCurrentVersionExpired'
  }
}]

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(workspaceId)) {
  name: 'to-workspace'
  scope: account
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

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Where the models answer.')
output endpoint string = 'https://${name}.openai.azure.com'
