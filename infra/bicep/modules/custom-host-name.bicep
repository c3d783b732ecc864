metadata description = 'An own host name with a managed certificate. The DNS records (CNAME, asuid TXT) stand before this runs.'

@description('Required. Name of the app.')
param appName string

@description('Required. Region.')
param location string

@description('Required. The host name, such as answers.contoso.com.')
param hostName string

@description('Optional. Whether an earlier deployment bound it; then it keeps its certificate throughout this one.')
param isBound bool = false

@description('Optional. Tags of the certificate.')
param tags object = {}

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

// Without a certificate, for a certificate wants the name bound first. Once more, and it would be without one again.
resource binding 'Microsoft.Web/sites/hostNameBindings@2025-03-01' = if (!isBound) {
  parent: app
  name: hostName
  properties: {
    siteName: app.name
    hostNameType: 'Verified'
    customHostNameDnsRecordType: 'CName'
    sslState: 'Disabled'
  }
}

// On Flex Consumption a certificate belongs to the app, not to its plan.
resource certificate 'Microsoft.Web/sites/certificates@2025-03-01' = {
  parent: app
  name: replace(hostName, '.', '-')
  location: location
  tags: tags
  properties: {
    canonicalName: hostName
  }
  dependsOn: [
    binding
  ]
}

// The same binding with the certificate, in a deployment of its own: one template cannot hold a resource twice.
module secured 'host-name-certificate.bicep' = {
  name: 'host-name-certificate'
  params: {
    appName: app.name
    hostName: hostName
    thumbprint: certificate.properties.thumbprint
  }
}
