metadata description = 'Creations of documents, to the blob trigger. Deployed by the postdeploy hook: its key exists only once the code runs.'

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

resource creations 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: 'blob-created'
  properties: {
    eventDeliverySchema: 'EventGridSchema'
    filter: {
      includedEventTypes: [
        'Microsoft.Storage.BlobCreated'
      ]
      subjectBeginsWith: '/blobServices/default/containers/${documentsContainer}/blobs/'
    }
    destination: {
      endpointType: 'WebHook'
      properties: {
        endpointUrl: 'https://${app.properties.defaultHostName}/runtime/webhooks/blobs?functionName=Host.Functions.${functionName}&code=${listKeys('${app.id}/host/default', '2025-03-01').systemKeys.blobs_extension}'
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
