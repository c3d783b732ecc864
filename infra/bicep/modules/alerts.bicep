metadata description = 'Alerts: failures that people see, work that is stuck, models at their quota, telemetry at its cap.'

@description('Required. Name of the action group.')
param actionGroupName string

@description('Required. Region of the queries.')
param location string

@description('Required. Recipient.')
param emailAddress string

@description('Required. Resource id of the workspace.')
param workspaceId string

@description('Required. Resource id of the account of the models.')
param openAiId string

@description('Required. Resource id of Application Insights.')
param insightsId string

@description('Optional. Server errors in fifteen minutes that raise the alert.')
@minValue(1)
param serverErrorLimit int = 5

@description('Optional. Refused model calls in fifteen minutes that raise the alert.')
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

resource modelLimits 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'model-limits'
  location: 'global'
  tags: tags
  properties: {
    description: 'The models refuse calls (429): their quota is too small.'
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
    name: 'server-errors'
    description: 'Answers of 5xx. See docs/troubleshooting.md, "Alerts".'
    severity: 1
    scope: insightsId
    threshold: serverErrorLimit - 1
    // A reader who leaves a stream early is a failed invocation too, but the status of the stream stays 200.
    query: 'requests | where toint(resultCode) between (500 .. 599)'
  }
  {
    name: 'poison-queues'
    description: 'Events failed every retry: GET /api/maintenance/poison names them.'
    severity: 2
    scope: insightsId
    threshold: 0
    query: 'traces | where tostring(parse_json(message).event) == "poison.found"'
  }
  {
    name: 'audit-trail'
    description: 'Entries of the audit trail could not be written: what was read or changed then is not on record.'
    severity: 1
    scope: insightsId
    threshold: 0
    query: 'traces | where tostring(parse_json(message).event) == "audit.write_failed"'
  }
  {
    name: 'failed-orchestrations'
    description: 'Questions or ingestions ended by an error of the app.'
    severity: 2
    scope: insightsId
    threshold: 0
    // The second line is the host's: an orchestration that Durable Functions gave up.
    query: 'traces | where tostring(parse_json(message).event) in ("http.defect", "activity.defect", "ingestion.defect", "tool.defect", "sub_agent.defect", "turn.dropped") or (message contains "failed with an error" and (message contains "(Orchestrator)" or tostring(customDimensions.functionType) == "Orchestrator" or tostring(customDimensions.prop__functionType) == "Orchestrator"))'
  }
  {
    name: 'telemetry-stopped'
    description: 'The daily cap on telemetry is reached: until it is reset, the other alerts on logs see nothing.'
    severity: 1
    scope: workspaceId
    threshold: 0
    // This table is written above the cap, too.
    query: '_LogOperation | where Category =~ "Ingestion" and Detail has "OverQuota"'
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
      item.scope
    ]
    // A component without telemetry has no tables yet.
    skipQueryValidation: true
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      allOf: [
        {
          query: item.query
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: item.threshold
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
