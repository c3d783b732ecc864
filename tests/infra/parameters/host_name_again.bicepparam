// The custom host name is bound already.
using '../../../infra/bicep/main.bicep'

param environmentName = 'test'
param location = 'swedencentral'
param authClientId = '11111111-1111-1111-1111-111111111111'
param ownerIdKey = 'a key of tests, 0123456789 and letters'
param openAiLocation = 'swedencentral'
param customHostName = 'answers.contoso.com'
param boundHostName = 'answers.contoso.com'
