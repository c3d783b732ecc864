metadata description = 'Events of the documents container: the topic, and deletions into a queue. Creations: event-subscription.bicep, after the code is deployed.'

@description('Required. Name of the system topic.')
param name string

@description('Required. Region; that of the storage account.')
param location string

@description('Required. Name of the storage account of the documents.')
param storageName string

@description('Required. Container whose events count.')
param documentsContainer string

@description('Required. Queue that takes deletions.')
param deletedQueue string

@description('Required. Container for events that could not be delivered.')
param deadLetterContainer string

@description('Required. Resource id of the identity that delivers; it may write to the queue and the container.')
param identityId string

@description('Optional. Tags of the resource.')
param tags object = {}

resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageName
}

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    source: storage.id
    topicType: 'Microsoft.Storage.StorageAccounts'
  }
}

resource deletions 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: 'blob-deleted'
  properties: {
    eventDeliverySchema: 'EventGridSchema'
    filter: {
      includedEventTypes: [
        'Microsoft.Storage.BlobDeleted'
      ]
      subjectBeginsWith: '/blobServices/default/containers/${documentsContainer}/blobs/'
    }
    deliveryWithResourceIdentity: {
      identity: {
        type: 'UserAssigned'
        userAssignedIdentity: identityId
      }
      destination: {
        endpointType: 'StorageQueue'
        properties: {
          resourceId: storage.id
          queueName: deletedQueue
          queueMessageTimeToLiveInSeconds: 604800
        }
      }
    }
    deadLetterWithResourceIdentity: {
      identity: {
        type: 'UserAssigned'
        userAssignedIdentity: identityId
      }
      deadLetterDestination: {
        endpointType: 'StorageBlob'
        properties: {
          resourceId: storage.id
          blobContainerName: deadLetterContainer
        }
      }
    }
    retryPolicy: {
      maxDeliveryAttempts: 30
      eventTimeToLiveInMinutes: 1440
    }
  }
}

@description('Name of the topic, for the subscription to creations.')
output name string = topic.name
