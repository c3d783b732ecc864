metadata description = 'A private endpoint for each target, and the names by which it is found.'

@description('Required. Region.')
param location string

@description('Required. Resource id of the network.')
param networkId string

@description('Required. Resource id of the subnet for the endpoints.')
param subnetId string

@description('Required. What gets one: each name, resourceId, groupId, and zone (index into zones).')
param targets array

@description('Required. Names of the private DNS zones.')
param zones array

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
          privateLinkServiceId: item.resourceId
          groupIds: [
            item.groupId
          ]
        }
      }
    ]
  }
}]

resource names 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = [for (item, index) in targets: {
  parent: endpoint[index]
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: item.groupId
        properties: {
          privateDnsZoneId: zone[item.zone].id
        }
      }
    ]
  }
}]
