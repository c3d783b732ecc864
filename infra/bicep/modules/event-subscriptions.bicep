metadata description = 'Events of documents: creations to the blob trigger, deletions to a queue. The postdeploy hook deploys them and retries: the key of the trigger exists only once the code runs, and Event Grid\'s roles take minutes to hold.'

@description('Required. Name of the system topic.')
param topicName string

@description('Required. Name of the app.')
param appName string

@description('Required. Name of the storage account of the documents.')
param storageName string

@description('Optional. Python name of the function with the blob trigger.')
param functionName string = 'blob_created'

@description('Optional. Container whose events count.')
param documentsContainer string = 'documents'

@description('Optional. Queue of deletions: a blob trigger never fires for them.')
param deletedQueue string = 'blob-deleted'

@description('Optional. Container for events that could not be delivered.')
param deadLetterContainer string = 'event-dead-letters'

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageName
}

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: topicName
}

// Event Grid's identity may send to the queue and write dead letters, through the firewall of the storage account too.
var topicIdentity = {
  type: 'SystemAssigned'
}
var deadLetters = {
  identity: topicIdentity
  deadLetterDestination: {
    endpointType: 'StorageBlob'
    properties: {
      resourceId: storage.id
      blobContainerName: deadLetterContainer
    }
  }
}
var retries = {
  maxDeliveryAttempts: 30
  eventTimeToLiveInMinutes: 1440
}
var documents = '/blobServices/default/containers/${documentsContainer}/blobs/'

resource creations 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: 'blob-created'
  properties: {
    eventDeliverySchema: 'EventGridSchema'
    filter: {
      includedEventTypes: [
        'Microsoft.Storage.BlobCreated'
      ]
      subjectBeginsWith: documents
    }
    destination: {
      endpointType: 'WebHook'
      properties: {
        endpointUrl: 'https://${app.properties.defaultHostName}/runtime/webhooks/blobs?functionName=Host.Functions.${functionName}&code=${listKeys('${app.id}/host/default', '2025-03-01').systemKeys.blobs_extension}'
      }
    }
    deadLetterWithResourceIdentity: deadLetters
    retryPolicy: retries
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
      subjectBeginsWith: documents
    }
    deliveryWithResourceIdentity: {
      identity: topicIdentity
      destination: {
        endpointType: 'StorageQueue'
        properties: {
          resourceId: storage.id
          queueName: deletedQueue
          queueMessageTimeToLiveInSeconds: 604800
        }
      }
    }
    deadLetterWithResourceIdentity: deadLetters
    retryPolicy: retries
  }
}
