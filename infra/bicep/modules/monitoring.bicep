metadata description = 'Where traces, metrics and logs go: a workspace, and Application Insights that takes no keys.'

@description('Required. Name of the Log Analytics workspace.')
param workspaceName string

@description('Required. Name of the Application Insights component.')
param insightsName string

@description('Required. Region.')
param location string

@description('Optional. Days that telemetry is kept.')
@minValue(30)
@maxValue(730)
param retentionDays int = 30

@description('Optional. Most gigabytes a day that the workspace takes in; -1 = no cap. A runaway log ends there.')
@minValue(-1)
param dailyCapGb int = 5

@description('Optional. Whether telemetry is taken from, and queried over, the public network.')
@allowed([
  'Enabled'
  'Disabled'
])
param publicNetworkAccess string = 'Enabled'

@description('Optional. Tags of the resources.')
param tags object = {}

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: retentionDays
    workspaceCapping: {
      dailyQuotaGb: dailyCapGb
    }
    features: {
      disableLocalAuth: true
    }
    publicNetworkAccessForIngestion: publicNetworkAccess
    publicNetworkAccessForQuery: publicNetworkAccess
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: insightsName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
    publicNetworkAccessForIngestion: publicNetworkAccess
    publicNetworkAccessForQuery: publicNetworkAccess
  }
}

@description('Resource id of the workspace.')
output workspaceId string = workspace.id

@description('Resource id of Application Insights.')
output insightsId string = insights.id

@description('Name of Application Insights.')
output insightsName string = insights.name

@description('Where telemetry is sent. It names the resource and is no secret: without a role nothing is taken.')
output connectionString string = insights.properties.ConnectionString
