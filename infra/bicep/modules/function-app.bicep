metadata description = 'The app on Flex Consumption: its plan, its scale, and every setting that it reads. No keys of services.'

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

@description('Required. Resource id of the identity by which the platform writes and reads the package.')
param deploymentIdentityId string

@description('Required. Resource id of the identity by which the app makes indexes.')
param searchIdentityId string

@description('Required. Blob endpoint of the storage account of the package.')
param packageBlobEndpoint string

@description('Required. Blob endpoint of the storage account of the host.')
param hostBlobEndpoint string

@description('Required. Queue endpoint of the storage account of the host.')
param hostQueueEndpoint string

@description('Required. Table endpoint of the storage account of the host.')
param hostTableEndpoint string

@description('Required. Container that holds the deployed package.')
param packageContainer string

@description('Required. Connection string of Application Insights; without a role it opens nothing.')
param insightsConnectionString string

@description('Required. Settings of the app.')
param appSettings { *: string }

@description('Required. Secret from which ids are made. It must never change.')
@secure()
param ownerIdKey string

@description('Optional. Settings of the host that depend on the durable back end.')
param hostSettings { *: string } = {}

@description('Optional. Version of Python.')
@allowed([
  '3.11'
  '3.12'
  '3.13'
])
param pythonVersion string = '3.13'

@description('Optional. Memory of an instance in megabytes.')
@allowed([
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Optional. Maximum number of instances.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int = 100

@description('Optional. Requests that one instance serves at once; a stream is one for as long as it lasts.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 32

@description('Optional. Always-ready instances of the scaling groups that functions share; every other trigger has instances of its own.')
param alwaysReady {
  http: int
  durable: int
  blob: int
} = {
  http: 1
  durable: 1
  blob: 0
}

@description('Optional. Spread over the zones of the region. Azure then keeps, and bills, two always-ready instances of each group.')
param zoneRedundant bool = false

@description('Optional. Share of traces that the host records, from 0 to 1.')
param traceSampleRatio string = '1.0'

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
  // The host reads a body whole before the app can refuse it; an instance has 2 GB. Above the app's own limit of 4 MB.
  FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '5000000'
  // The host samples its spans as the app does: both decide by the trace's id.
  OTEL_TRACES_SAMPLER: 'parentbased_traceidratio'
  OTEL_TRACES_SAMPLER_ARG: traceSampleRatio
  // App Service Authentication proves the registration by the app's identity, not by a secret.
  OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID: identityClientId
}

// HTTP streams need it before Python 3.13, whose worker does not know it.
var indexing = pythonVersion == '3.13' ? {} : { PYTHON_ENABLE_INIT_INDEXING: '1' }

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
      '${deploymentIdentityId}': {}
      '${searchIdentityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    publicNetworkAccess: 'Enabled'
    // Settings that refer to Key Vault are read by it.
    keyVaultReferenceIdentity: identityId
    // Flex Consumption has only certificates of the app itself, and takes this property only when it creates the app.
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
          value: '${packageBlobEndpoint}/${packageContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: deploymentIdentityId
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
        alwaysReady: map(filter(items(alwaysReady), group => group.value > 0), group => { name: group.key, instanceCount: group.value })
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
  properties: union(appSettings, platformSettings, indexing, hostSettings, {
    APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnectionString
    OWNER_ID_KEY: ownerIdKey
  })
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
