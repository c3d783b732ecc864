metadata description = 'Deletions of documents, into a queue: a blob trigger never fires for them.'

@description('Required. Name of the system topic.')
param topicName string

@description('Required. Name of the storage account of the documents.')
param storageName string

@description('Required. Container whose events count.')
param documentsContainer string

@description('Required. Queue that takes deletions; the identity of the topic may send there.')
param deletedQueue string

@description('Required. Container for events that could not be delivered; the identity of the topic may write there.')
param deadLetterContainer string

resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageName
}

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: topicName
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
        type: 'SystemAssigned'
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
        type: 'SystemAssigned'
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
