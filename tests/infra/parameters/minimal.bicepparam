// The cheapest deployment: no fixed costs that can be switched off.
using '../../../infra/bicep/main.bicep'

param environmentName = 'test'
param location = 'swedencentral'
param authClientId = '11111111-1111-1111-1111-111111111111'
param ownerIdKey = 'a key of tests, 0123456789 and letters'
param openAiLocation = 'swedencentral'
param useDocumentIntelligence = false
param alwaysReadyHttp = 0
param alwaysReadyDurable = 0
param pythonVersion = '3.12'
param maximumInstanceCount = 1
