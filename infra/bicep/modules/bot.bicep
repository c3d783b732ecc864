metadata description = 'The bot that Teams talks to. It proves itself by the identity of the app; there is no secret.'

@description('Required. Name of the bot, unique in Azure.')
param name string

@description('Required. Name that people see.')
param displayName string

@description('Required. Host of the app, without https://.')
param hostName string

@description('Required. Resource id of the identity.')
param identityId string

@description('Required. Client id of the identity: the id of the bot.')
param identityClientId string

@description('Required. Tenant of the identity.')
param tenantId string

@description('Optional. Tier; F0 is free for Teams.')
@allowed([
  'F0'
  'S1'
])
param sku string = 'F0'

@description('Optional. Tags of the resource.')
param tags object = {}

resource bot 'Microsoft.BotService/botServices@2022-09-15' = {
  name: name
  location: 'global'
  tags: tags
  kind: 'azurebot'
  sku: {
    name: sku
  }
  properties: {
    displayName: displayName
    endpoint: 'https://${hostName}/api/messages'
    msaAppId: identityClientId
    msaAppMSIResourceId: identityId
    msaAppTenantId: tenantId
    msaAppType: 'UserAssignedMSI'
    disableLocalAuth: true
  }
}

resource teams 'Microsoft.BotService/botServices/channels@2022-09-15' = {
  parent: bot
  name: 'MsTeamsChannel'
  location: 'global'
  properties: {
    channelName: 'MsTeamsChannel'
    properties: {
      isEnabled: true
    }
  }
}

@description('Id of the bot, for the package of the Teams app.')
output botId string = bot.properties.msaAppId
