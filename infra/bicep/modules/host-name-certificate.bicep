metadata description = 'Puts a certificate on a host name that is bound already.'

@description('Required. Name of the app.')
param appName string

@description('Required. The host name.')
param hostName string

@description('Required. Thumbprint of the certificate.')
param thumbprint string

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

resource binding 'Microsoft.Web/sites/hostNameBindings@2025-03-01' = {
  parent: app
  name: hostName
  properties: {
    siteName: app.name
    hostNameType: 'Verified'
    customHostNameDnsRecordType: 'CName'
    sslState: 'SniEnabled'
    thumbprint: thumbprint
  }
}
