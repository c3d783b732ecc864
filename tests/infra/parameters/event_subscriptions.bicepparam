// What the postdeploy hook deploys.
using '../../../infra/bicep/modules/event-subscriptions.bicep'

param topicName = 'evgt-test'
param appName = 'func-test'
param storageName = 'stdocstest'
