metadata description = 'Durable Task Scheduler, instead of storage, as the back end of orchestrations.'

@description('Required. Name of the scheduler.')
param name string

@description('Required. Region; must have the scheduler.')
param location string

@description('Required. Name of the task hub.')
param taskHubName string

@description('Required. Client id of the identity of the app.')
param identityClientId string

@description('Optional. Tier.')
@allowed([
  'Consumption'
  'Dedicated'
])
param sku string = 'Consumption'

@description('Optional. Whether the public network reaches it; Disabled needs a private endpoint.')
@allowed([
  'Enabled'
  'Disabled'
])
param publicNetworkAccess string = 'Enabled'

@description('Optional. Tags of the resource.')
param tags object = {}

resource scheduler 'Microsoft.DurableTask/schedulers@2026-02-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    publicNetworkAccess: publicNetworkAccess
    // The addresses of the app are not fixed; a caller needs the role in any case.
    ipAllowlist: publicNetworkAccess == 'Enabled' ? ['0.0.0.0/0'] : []
    sku: {
      name: sku
    }
  }
}

resource taskHub 'Microsoft.DurableTask/schedulers/taskHubs@2026-02-01' = {
  parent: scheduler
  name: taskHubName
}

@description('Name of the scheduler.')
output name string = scheduler.name

@description('Resource id of the scheduler.')
output resourceId string = scheduler.id

@description('Settings of the host that replace the storage provider of host.json.')
output hostSettings object = {
  AzureFunctionsJobHost__extensions__durableTask__hubName: taskHub.name
  AzureFunctionsJobHost__extensions__durableTask__storageProvider__type: 'azureManaged'
  AzureFunctionsJobHost__extensions__durableTask__storageProvider__connectionStringName: 'DURABLE_TASK_SCHEDULER_CONNECTION_STRING'
  DURABLE_TASK_SCHEDULER_CONNECTION_STRING: 'Endpoint=${scheduler.properties.endpoint};Authentication=ManagedIdentity;ClientID=${identityClientId}'
}
