// Deployed by a pipeline.
using '../../../infra/bicep/main.bicep'

param environmentName = 'test'
param location = 'swedencentral'
param authClientId = '11111111-1111-1111-1111-111111111111'
param ownerIdKey = 'a key of tests, 0123456789 and letters'
param openAiLocation = 'swedencentral'
param principalId = '44444444-4444-4444-4444-444444444444'
param principalType = 'ServicePrincipal'
