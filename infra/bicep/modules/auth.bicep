metadata description = 'App Service Authentication: every caller is signed in, except on paths with a proof of their own or nothing to tell.'

@description('Required. Name of the app.')
param appName string

@description('Required. Client id of the app registration that people sign in to.')
param clientId string

@description('Required. Tenant whose people may sign in.')
param tenantId string

// No wildcard: where the platform reads `/web/%2e%2e/api` other than the app does, it would let a forged identity in.
@description('Optional. Paths without signing in; each checks its caller itself, or tells nobody anything.')
param excludedPaths array = [
  '/api/docs'
  '/api/docs/favicon-32x32.png'
  '/api/docs/page.css'
  '/api/docs/start.js'
  '/api/docs/swagger-ui-bundle.js'
  '/api/docs/swagger-ui.css'
  '/api/health'
  '/api/health/ready'
  '/api/messages'
  '/api/openapi.json'
  '/api/site'
  '/runtime/webhooks/blobs'
  '/web'
  '/web/assets/account.js'
  '/web/assets/admin.js'
  '/web/assets/chunk.js'
  '/web/assets/de.js'
  '/web/assets/documents.js'
  '/web/assets/en.js'
  '/web/assets/icon.svg'
  '/web/assets/page.js'
  '/web/assets/style.css'
]

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

resource authentication 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: {
      enabled: true
      runtimeVersion: '~1'
    }
    globalValidation: {
      requireAuthentication: true
      unauthenticatedClientAction: 'Return401'
      excludedPaths: excludedPaths
    }
    httpSettings: {
      requireHttps: true
    }
    identityProviders: {
      azureActiveDirectory: {
        enabled: true
        registration: {
          clientId: clientId
          // Code flow: an implicit id token has room for five groups. The setting names the identity that proves the app.
          clientSecretSettingName: 'OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID'
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenantId}/v2.0'
        }
        validation: {
          allowedAudiences: [
            clientId
            'api://${clientId}'
          ]
        }
      }
    }
    login: {
      tokenStore: {
        enabled: false
      }
    }
  }
}
