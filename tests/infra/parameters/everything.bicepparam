// Every optional part, with values other than the defaults.
using '../../../infra/bicep/main.bicep'

param environmentName = 'test'
param location = 'swedencentral'
param authClientId = '11111111-1111-1111-1111-111111111111'
param ownerIdKey = 'a key of tests, 0123456789 and letters'
param openAiLocation = 'swedencentral'
param principalId = '44444444-4444-4444-4444-444444444444'
param authTenantId = '55555555-5555-5555-5555-555555555555'
param restoreAccounts = true
param searchLocation = 'westeurope'
param searchSku = 'standard'
param searchReplicaCount = 2
param semanticSearch = 'standard'
param storageSku = 'Standard_GRS'
param durableBackend = 'DurableTaskScheduler'
param pythonVersion = '3.11'
param instanceMemoryMB = 4096
param alwaysReadyBlob = 1
param zoneRedundant = true
param documentIntelligenceLocation = 'westeurope'
param usePrivateNetwork = true
param scanUploads = true
param scanCapGb = 50
param useBot = true
param customHostName = 'answers.contoso.com'
param alertEmailAddress = 'operators@contoso.com'
param monthlyBudget = 500
param thisMonth = '2026-11-01'
param settings = {
  ORGANISATION: 'Contoso Ltd'
  OPENAI_BASE_URL: 'https://models.contoso.com/v1'
}
