# After `azd deploy`: the subscription to new blobs, then whether the app works. The key in the subscription's
# address exists only once the code runs, and some moments later at that; roles take minutes to hold everywhere.
# So both are tried again. Doing it twice changes nothing.
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

function Exit-NotChecked([string]$Why) {
    Write-Host "Whether the app works was not checked: $Why."
    Write-Host 'docs/operations.md, "Check it", says how to do it by hand.'
    exit 0
}

if ($env:GROUNDWORK_SMOKE_TEST -eq 'skip') { Exit-NotChecked 'GROUNDWORK_SMOKE_TEST is skip' }
$python = 'python'
if (Test-Path '.venv/Scripts/python.exe') { $python = '.venv/Scripts/python.exe' }
if (-not (Get-Command $python -ErrorAction SilentlyContinue)) { Exit-NotChecked 'there is no Python' }
& $python -c 'import httpx, rich, pydantic'
if ($LASTEXITCODE -ne 0) { Exit-NotChecked "$python has not what the command line needs (requirements/local.txt)" }
$env:GROUNDWORK_TOKEN = az account get-access-token --scope $env:GROUNDWORK_SCOPE --query accessToken --output tsv
if (($LASTEXITCODE -ne 0) -or (-not $env:GROUNDWORK_TOKEN)) { Exit-NotChecked "there is no token for $env:GROUNDWORK_SCOPE" }

for ($try = 1; ; $try++) {
    & $python -m cli check
    if ($LASTEXITCODE -eq 0) { break }
    if ($try -eq 3) {
        Write-Error 'The app is deployed and does not work: docs/operations.md, "When something is wrong".'
    }
    Write-Host 'It does not work yet; trying again in 60 seconds.'
    Start-Sleep -Seconds 60
}
