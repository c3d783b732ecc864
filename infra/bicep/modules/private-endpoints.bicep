metadata description = 'A private endpoint for each target, and the names by which it is found.'

@description('Required. Region.')
param location string

@description('Required. Resource id of the network.')
param networkId string

@description('Required. Resource id of the subnet for the endpoints.')
param subnetId string

@description('Required. Names of the private DNS zones; known at the start, for Azure counts them then.')
param zones string[]

@description('Required. Resources that get an endpoint, each with those of the zones that hold its names.')
param targets {
  name: string
  resourceId: string
  groupId: string
  zones: string[]
}[]

@description('Optional. Start of the names of the endpoints.')
param prefix string = 'pep-'

@description('Optional. Tags of the resources.')
param tags object = {}

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = [for item in zones: {
  name: item
  location: 'global'
  tags: tags
}]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [for (item, index) in zones: {
  parent: zone[index]
  name: 'to-network'
  location: 'global'
  properties: {
    registrationEnabled: false
    virtualNetwork: {
      id: networkId
    }
  }
}]

// One after another: endpoints created in parallel in one subnet fail now and then.
@batchSize(1)
resource endpoint 'Microsoft.Network/privateEndpoints@2025-05-01' = [for item in targets: {
  name: '${prefix}${item.name}'
  location: location
  tags: tags
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: item.name
        properties: {
          #disable-next-line use-resource-id-functions // it is the id of a resource; the rule does not follow parameters
          privateLinkServiceId: item.resourceId
          groupIds: [
            item.groupId
          ]
        }
      }
    ]
  }
}]

@batchSize(1)
resource names 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = [for (item, index) in targets: {
  parent: endpoint[index]
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [for name in item.zones: {
      name: replace(name, '.', '-')
      properties: {
        privateDnsZoneId: resourceId('Microsoft.Network/privateDnsZones', name)
      }
    }]
  }
  dependsOn: [
    zone
    link
  ]
}]
