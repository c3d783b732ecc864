# After `azd deploy`: the subscriptions to events of documents, then a check that the app works. The key in the
# address of the blob trigger exists only once the code runs, and roles take up to ten minutes to hold. So both are
# retried, except for what waiting doesn't fix: no Azure CLI, not signed in, no permission. It may run twice.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $false  # a program that fails is looked at by its exit code
Set-Location (Join-Path $PSScriptRoot '../..')

function Exit-NoSubscription([string]$Why) {
    [Console]::Error.WriteLine('The subscriptions to events could not be created: only the timer finds files that are dropped into storage, and those that are deleted.')
    [Console]::Error.WriteLine($Why)
    [Console]::Error.WriteLine('Then run: azd hooks run postdeploy')
    exit 1
}

if (-not (Get-Command az -ErrorAction SilentlyContinue)) {
    Exit-NoSubscription 'The Azure CLI is not installed: https://aka.ms/azure-cli'
}
az account show --subscription $env:AZURE_SUBSCRIPTION_ID --output none
if ($LASTEXITCODE -ne 0) {
    Exit-NoSubscription "The Azure CLI, which azd does not sign in, does not reach the subscription: az login --tenant $env:AZURE_TENANT_ID"
}

for ($try = 1; ; $try++) {
    $ErrorActionPreference = 'Continue'  # before PowerShell 7 a line on stderr would end the hook
    $said = az deployment group create --output none --only-show-errors `
        --subscription $env:AZURE_SUBSCRIPTION_ID `
        --resource-group $env:AZURE_RESOURCE_GROUP `
        --name event-subscriptions `
        --template-file infra/bicep/modules/event-subscriptions.bicep `
        --parameters "topicName=$env:EVENT_GRID_TOPIC_NAME" "appName=$env:AZURE_FUNCTION_APP_NAME" `
            "storageName=$env:CONTENT_STORAGE_NAME" 2>&1 | Out-String
    $ErrorActionPreference = 'Stop'
    if ($LASTEXITCODE -eq 0) { break }
    [Console]::Error.WriteLine($said)
    if ($said -match 'AuthorizationFailed') {
        Exit-NoSubscription "You need Contributor on the resource group $env:AZURE_RESOURCE_GROUP."
    }
    if ($try -eq 20) {
        Exit-NoSubscription 'The last error stands above: does the app start? docs/troubleshooting.md, "Alerts".'
    }
    Write-Host 'The app is not ready yet; trying again in 30 seconds.'
    Start-Sleep -Seconds 30
}

function Exit-NotChecked([string]$Why) {
    Write-Host "Whether the app works was not checked: $Why."
    Write-Host 'docs/deploy.md, "Check it", says how to do it by hand.'
    exit 0
}

if ($env:GROUNDWORK_SMOKE_TEST -eq 'skip') { Exit-NotChecked 'GROUNDWORK_SMOKE_TEST is skip' }
$python = 'python'
if (Test-Path '.venv/Scripts/python.exe') { $python = '.venv/Scripts/python.exe' }
if (-not (Get-Command $python -ErrorAction SilentlyContinue)) { Exit-NotChecked 'there is no Python' }
& $python -c 'import httpx, rich, pydantic'
if ($LASTEXITCODE -ne 0) { Exit-NotChecked "$python has not what the command line needs (requirements/local.txt)" }
$env:GROUNDWORK_TOKEN = az account get-access-token --tenant $env:AUTH_TENANT_ID --scope $env:GROUNDWORK_SCOPE `
    --query accessToken --output tsv
if (($LASTEXITCODE -ne 0) -or (-not $env:GROUNDWORK_TOKEN)) { Exit-NotChecked "there is no token for $env:GROUNDWORK_SCOPE" }

for ($try = 1; ; $try++) {
    & $python -m cli check
    if ($LASTEXITCODE -eq 0) { break }
    if ($try -eq 3) {
        [Console]::Error.WriteLine('The app is deployed and does not work: docs/troubleshooting.md, "Alerts".')
        exit 1
    }
    Write-Host 'It does not work yet; trying again in 60 seconds.'
    Start-Sleep -Seconds 60
}
