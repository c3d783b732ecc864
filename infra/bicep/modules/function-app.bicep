metadata description = 'The app on Flex Consumption: its plan, its scale, and every setting that it reads. No keys.'

@description('Required. Name of the app; its host is NAME.azurewebsites.net.')
param name string

@description('Required. Name of the plan.')
param planName string

@description('Required. Region; must have Flex Consumption.')
param location string

@description('Required. Resource id of the identity that the app bears.')
param identityId string

@description('Required. Client id of that identity.')
param identityClientId string

@description('Required. Blob endpoint of the storage account of the host.')
param hostBlobEndpoint string

@description('Required. Queue endpoint of the storage account of the host.')
param hostQueueEndpoint string

@description('Required. Table endpoint of the storage account of the host.')
param hostTableEndpoint string

@description('Required. Container of the host storage that holds the deployed package.')
param packageContainer string

@description('Required. Connection string of Application Insights; without a role it opens nothing.')
param insightsConnectionString string

@description('Required. Settings of the app, from app-settings.bicep.')
param appSettings object

@description('Optional. Settings of the host that depend on the durable back end.')
param hostSettings object = {}

@description('Optional. Version of Python.')
@allowed([
  '3.11'
  '3.12'
])
param pythonVersion string = '3.12'

@description('Optional. Memory of an instance in megabytes.')
@allowed([
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Optional. Most instances.')
@minValue(40)
@maxValue(1000)
param maximumInstanceCount int = 100

@description('Optional. Requests that one instance serves at once; a stream is one for as long as it lasts.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 32

@description('Optional. Instances that always run, for requests; 0 = the first question after a pause starts one.')
@minValue(0)
@maxValue(20)
param alwaysReadyHttp int = 1

@description('Optional. Instances that always run, for orchestrations.')
@minValue(0)
@maxValue(20)
param alwaysReadyDurable int = 1

@description('Optional. Instances that always run, for blob events; with none, first events can be late.')
@minValue(1)
@maxValue(20)
param alwaysReadyBlob int = 1

@description('Optional. Spread over the zones of the region; two instances of each group of functions always run then, and are paid for.')
param zoneRedundant bool = false

@description('Optional. Resource id of the subnet that the app calls out through; empty = none.')
param subnetId string = ''

@description('Optional. Resource id of the workspace for diagnostics; empty = none are sent.')
param workspaceId string = ''

@description('Optional. Tags of the resources.')
param tags object = {}

var platformSettings = {
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identityClientId};Authorization=AAD'
  AZURE_FUNCTIONS_DURABLE_STRICT_TYPING: '1'
  AzureWebJobsStorage__blobServiceUri: hostBlobEndpoint
  AzureWebJobsStorage__clientId: identityClientId
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__queueServiceUri: hostQueueEndpoint
  AzureWebJobsStorage__tableServiceUri: hostTableEndpoint
  DocumentsStorage__clientId: identityClientId
  DocumentsStorage__credential: 'managedidentity'
  PYTHON_ENABLE_INIT_INDEXING: '1'
}

// A group that shall have none is left out.
var alwaysReady = concat(alwaysReadyHttp > 0 ? [{ name: 'http', instanceCount: alwaysReadyHttp }] : [], alwaysReadyDurable > 0 ? [{ name: 'durable', instanceCount: alwaysReadyDurable }] : [], [{ name: 'blob', instanceCount: alwaysReadyBlob }])

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
    zoneRedundant: zoneRedundant
  }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': 'api' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    publicNetworkAccess: 'Enabled'
    // Certificates of the app itself, the only ones that Flex Consumption has; to be said when the app is made.
    #disable-next-line BCP037
    siteScopedCertificatesEnabled: true
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    siteConfig: {
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
      ftpsState: 'Disabled'
      http20Enabled: true
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${hostBlobEndpoint}/${packageContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: {
        name: 'python'
        version: pythonVersion
      }
      scaleAndConcurrency: {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstanceCount
        alwaysReady: alwaysReady
        triggers: {
          http: {
            perInstanceConcurrency: httpConcurrency
          }
        }
      }
    }
  }
}

resource settings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'appsettings'
  properties: union(appSettings, platformSettings, hostSettings, { APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnectionString })
}

// One after another: the platform refuses two changes of one app at the same time.
resource noFtp 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'ftp'
  properties: {
    allow: false
  }
  dependsOn: [
    settings
  ]
}

resource noBasicScm 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'scm'
  properties: {
    allow: false
  }
  dependsOn: [
    noFtp
  ]
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(workspaceId)) {
  name: 'to-workspace'
  scope: app
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

@description('Name of the app.')
output name string = app.name

@description('Resource id of the app.')
output resourceId string = app.id

@description('Host of the app, without https://.')
output hostName string = app.properties.defaultHostName
