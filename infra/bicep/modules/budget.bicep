metadata description = 'A monthly budget of the resource group: who pays is told at 80 %, at 100 %, and when 100 % is foreseen.'

@description('Required. Name of the budget.')
param name string

@description('Required. Amount in a month, in the currency of the subscription; more than 0.')
param amount int

@description('Required. Who is told.')
param emailAddress string

@description('Required. First day of this month for a new budget, of its own month for one that is there: Azure takes no other.')
param startDate string

resource budget 'Microsoft.Consumption/budgets@2023-11-01' = {
  name: name
  properties: {
    amount: amount
    category: 'Cost'
    timeGrain: 'Monthly'
    timePeriod: {
      startDate: startDate
    }
    notifications: {
      most: {
        enabled: true
        operator: 'GreaterThanOrEqualTo'
        threshold: 80
        thresholdType: 'Actual'
        contactEmails: [
          emailAddress
        ]
      }
      all: {
        enabled: true
        operator: 'GreaterThanOrEqualTo'
        threshold: 100
        thresholdType: 'Actual'
        contactEmails: [
          emailAddress
        ]
      }
      foreseen: {
        enabled: true
        operator: 'GreaterThanOrEqualTo'
        threshold: 100
        thresholdType: 'Forecasted'
        contactEmails: [
          emailAddress
        ]
      }
    }
  }
}
