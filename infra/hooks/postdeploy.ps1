# After `azd deploy`: the subscription to new blobs. The key in its address exists only once the code runs, and
# some moments later at that, so it is tried again. Doing it twice changes nothing.
$ErrorActionPreference = 'Stop'
Set-Location (Join-Path $PSScriptRoot '../..')

for ($try = 1; ; $try++) {
    az deployment group create --output none `
        --resource-group $env:AZURE_RESOURCE_GROUP `
        --name event-subscription `
        --template-file infra/bicep/modules/event-subscription.bicep `
        --parameters "topicName=$env:EVENT_GRID_TOPIC_NAME" "appName=$env:AZURE_FUNCTION_APP_NAME" `
            "storageName=$env:CONTENT_STORAGE_NAME" "identityId=$env:IDENTITY_ID"
    if ($LASTEXITCODE -eq 0) { break }
    if ($try -eq 10) {
        Write-Error 'The subscription to new blobs could not be made: files dropped into storage are found by the timer only.'
    }
    Write-Host 'The app is not ready yet; trying again in 30 seconds.'
    Start-Sleep -Seconds 30
}
