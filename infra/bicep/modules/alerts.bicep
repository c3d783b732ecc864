metadata description = 'What somebody must be told of: failures people see, work that got stuck, models at their limit.'

@description('Required. Name of the action group.')
param actionGroupName string

@description('Required. Region of the queries.')
param location string

@description('Required. Who is told.')
param emailAddress string

@description('Required. Resource id of the app.')
param appId string

@description('Required. Resource id of the Azure OpenAI account.')
param openAiId string

@description('Required. Resource id of Application Insights.')
param insightsId string

@description('Optional. Server errors in five minutes from which on somebody is told.')
@minValue(1)
param serverErrorLimit int = 5

@description('Optional. Refused model calls in fifteen minutes from which on somebody is told.')
@minValue(1)
param modelLimitCount int = 50

@description('Optional. Tags of the resources.')
param tags object = {}

resource team 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: actionGroupName
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'groundwork'
    enabled: true
    emailReceivers: [
      {
        name: 'operators'
        emailAddress: emailAddress
        useCommonAlertSchema: true
      }
    ]
  }
}

resource serverErrors 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'server-errors'
  location: 'global'
  tags: tags
  properties: {
    description: 'The app answers with 5xx. Look at docs/operations.md, "When something is wrong".'
    severity: 1
    enabled: true
    scopes: [
      appId
    ]
    evaluationFrequency: 'PT1M'
    windowSize: 'PT5M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          name: 'http5xx'
          criterionType: 'StaticThresholdCriterion'
          metricName: 'Http5xx'
          metricNamespace: 'Microsoft.Web/sites'
          skipMetricValidation: true // an app that was never asked has no such metric yet
          operator: 'GreaterThanOrEqual'
          threshold: serverErrorLimit
          timeAggregation: 'Total'
        }
      ]
    }
    actions: [
      {
        actionGroupId: team.id
      }
    ]
  }
}

resource modelLimits 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'model-limits'
  location: 'global'
  tags: tags
  properties: {
    description: 'The models refuse calls (429): their quota is too small for what is asked.'
    severity: 2
    enabled: true
    scopes: [
      openAiId
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          name: 'status429'
          criterionType: 'StaticThresholdCriterion'
          metricName: 'AzureOpenAIRequests'
          metricNamespace: 'Microsoft.CognitiveServices/accounts'
          skipMetricValidation: true
          dimensions: [
            {
              name: 'StatusCode'
              operator: 'Include'
              values: [
                '429'
              ]
            }
          ]
          operator: 'GreaterThanOrEqual'
          threshold: modelLimitCount
          timeAggregation: 'Total'
        }
      ]
    }
    actions: [
      {
        actionGroupId: team.id
      }
    ]
  }
}

var queries = [
  {
    name: 'poison-queues'
    description: 'Events were tried in vain: GET /api/maintenance/poison names them.'
    severity: 2
    query: 'traces | where tostring(parse_json(message).event) == "poison.found"'
  }
  {
    name: 'failed-orchestrations'
    description: 'Questions or ingestions ended by an error of ours.'
    severity: 2
    // The second line is the host's: an orchestration that Durable Functions itself gave up.
    query: 'traces | where tostring(parse_json(message).event) in ("http.defect", "ingestion.defect", "tool.broke", "sub_agent.broke", "turn.not_sent") or (message contains "failed with an error" and (message contains "(Orchestrator)" or tostring(customDimensions.functionType) == "Orchestrator" or tostring(customDimensions.prop__functionType) == "Orchestrator"))'
  }
]

resource logAlert 'Microsoft.Insights/scheduledQueryRules@2022-06-15' = [for item in queries: {
  name: item.name
  location: location
  tags: tags
  properties: {
    displayName: item.name
    description: item.description
    severity: item.severity
    enabled: true
    scopes: [
      insightsId
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      allOf: [
        {
          query: item.query
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    actions: {
      actionGroups: [
        team.id
      ]
    }
  }
}]

@description('Resource id of the action group.')
output actionGroupId string = team.id
