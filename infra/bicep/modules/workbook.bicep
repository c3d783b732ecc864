metadata description = 'A page of charts over what the app reports: questions, quality, sub-agents, ingestion, cost.'

@description('Required. Region.')
param location string

@description('Required. Resource id of Application Insights.')
param insightsId string

@description('Required. Name that people see.')
param displayName string

@description('Optional. Tags of the resource.')
param tags object = {}

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(resourceGroup().id, 'groundwork-workbook')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: displayName
    category: 'workbook'
    sourceId: insightsId
    serializedData: loadTextContent('../workbook.json')
  }
}
