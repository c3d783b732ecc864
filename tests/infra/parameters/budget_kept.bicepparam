// The budget began in an earlier month; the custom host name was removed.
using '../../../infra/bicep/main.bicep'

param environmentName = 'test'
param location = 'swedencentral'
param authClientId = '11111111-1111-1111-1111-111111111111'
param ownerIdKey = 'a key of tests, 0123456789 and letters'
param openAiLocation = 'swedencentral'
param alertEmailAddress = 'operators@contoso.com'
param monthlyBudget = 500
param budgetStartDate = '2026-03-01'
param thisMonth = '2026-11-01'
param boundHostName = 'answers.contoso.com'
