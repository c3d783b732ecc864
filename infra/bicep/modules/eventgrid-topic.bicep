metadata description = 'The topic of everything that happens to the blobs of the documents; who is told stands in the two subscriptions.'

@description('Required. Name of the system topic.')
param name string

@description('Required. Region; that of the storage account.')
param location string

@description('Required. Name of the storage account of the documents.')
param storageName string

@description('Optional. Tags of the resource.')
param tags object = {}

resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageName
}

// An identity of its own: through the firewall of a storage account Event Grid comes with no other.
resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    source: storage.id
    topicType: 'Microsoft.Storage.StorageAccounts'
  }
}

@description('Name of the topic, for the subscriptions.')
output name string = topic.name

@description('Object id of its identity, for role assignments.')
output principalId string = topic.identity.principalId
