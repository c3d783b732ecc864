metadata description = 'A network of the app: it calls out through one subnet, and what it calls has private endpoints in another.'

@description('Required. Name of the network.')
param name string

@description('Required. Region.')
param location string

@description('Optional. Addresses of the network.')
param addressPrefix string = '10.40.0.0/16'

@description('Optional. Addresses of the subnet of the app; part of those of the network.')
param appPrefix string = '10.40.0.0/24'

@description('Optional. Addresses of the subnet of the private endpoints; part of those of the network.')
param endpointsPrefix string = '10.40.1.0/24'

@description('Optional. Tags of the resources.')
param tags object = {}

resource endpointsGroup 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${name}-endpoints'
  location: location
  tags: tags
  properties: {
    securityRules: [
      {
        name: 'deny-from-internet'
        properties: {
          priority: 4000
          direction: 'Inbound'
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: 'Internet'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
    ]
  }
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        addressPrefix
      ]
    }
    subnets: [
      {
        name: 'app'
        properties: {
          addressPrefix: appPrefix
          // The app calls Entra ID, Microsoft Graph and telemetry, which have no private endpoints here.
          defaultOutboundAccess: true
          delegations: [
            {
              name: 'flex-consumption'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: endpointsPrefix
          defaultOutboundAccess: false
          networkSecurityGroup: {
            id: endpointsGroup.id
          }
          privateEndpointNetworkPolicies: 'Enabled'
        }
      }
    ]
  }
}

@description('Resource id of the network.')
output networkId string = network.id

@description('Resource id of the subnet that the app calls out through.')
output appSubnetId string = resourceId('Microsoft.Network/virtualNetworks/subnets', network.name, 'app')

@description('Resource id of the subnet with the private endpoints.')
output endpointsSubnetId string = resourceId('Microsoft.Network/virtualNetworks/subnets', network.name, 'endpoints')
