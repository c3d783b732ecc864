metadata description = 'An identity without keys.'

@description('Required. Name of the identity.')
param name string

@description('Required. Region.')
param location string

@description('Optional. Tags of the resource.')
param tags object = {}

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Resource id, for resources that bear the identity.')
output resourceId string = identity.id

@description('Object id, for role assignments.')
output principalId string = identity.properties.principalId

@description('Client id, for AZURE_CLIENT_ID and connections by identity.')
output clientId string = identity.properties.clientId
