metadata description = 'Azure Document Intelligence without keys: reads scans, and the layout of documents if chosen.'

@description('Required. Name of the account, which is its subdomain, too.')
param name string

@description('Required. Region.')
param location string

@description('Optional. Recover a soft-deleted account of the same name.')
param restore bool = false

@description('Optional. Whether the public network reaches it; Disabled wants a private endpoint.')
@allowed([
  'Enabled'
  'Disabled'
])
param publicNetworkAccess string = 'Enabled'

@description('Optional. Tags of the resource.')
param tags object = {}

resource account 'Microsoft.CognitiveServices/accounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'FormRecognizer'
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

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Where the service answers.')
output endpoint string = 'https://${name}.cognitiveservices.azure.com'
