metadata description = 'An own host name with a managed certificate. The DNS records (CNAME, asuid TXT) stand before this runs.'

@description('Required. Name of the app.')
param appName string

@description('Required. Name of its plan.')
param planName string

@description('Required. Region.')
param location string

@description('Required. The host name, such as answers.contoso.com.')
param hostName string

@description('Optional. Tags of the certificate.')
param tags object = {}

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' existing = {
  name: planName
}

resource binding 'Microsoft.Web/sites/hostNameBindings@2025-03-01' = {
  parent: app
  name: hostName
  properties: {
    siteName: app.name
    hostNameType: 'Verified'
    sslState: 'Disabled'
  }
}

resource certificate 'Microsoft.Web/certificates@2025-03-01' = {
  name: '${appName}-${hostName}'
  location: location
  tags: tags
  properties: {
    serverFarmId: plan.id
    canonicalName: hostName
  }
  dependsOn: [
    binding
  ]
}

// The same binding once more, in a deployment of its own: a certificate wants the name bound first.
module secured 'host-name-certificate.bicep' = {
  name: 'host-name-certificate'
  params: {
    appName: app.name
    hostName: hostName
    thumbprint: certificate.properties.thumbprint
  }
}
