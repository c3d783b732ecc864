#!/bin/sh
# After `azd deploy`: the subscriptions to events of documents, then a check that the app works. The key in the
# address of the blob trigger exists only once the code runs, and roles take up to ten minutes to hold. So both are
# retried, except for what waiting doesn't fix: no Azure CLI, not signed in, no permission. It may run twice.
set -eu
cd "$(dirname "$0")/../.."

ends() {
    echo "The subscriptions to events could not be created: only the timer finds files that are dropped into storage, and those that are deleted." >&2
    echo "$1" >&2
    echo "Then run: azd hooks run postdeploy" >&2
    exit 1
}

command -v az >/dev/null || ends "The Azure CLI is not installed: https://aka.ms/azure-cli"
az account show --subscription "$AZURE_SUBSCRIPTION_ID" --output none ||
    ends "The Azure CLI, which azd does not sign in, does not reach the subscription: az login --tenant $AZURE_TENANT_ID"

tries=20
until said=$(az deployment group create --output none --only-show-errors \
    --subscription "$AZURE_SUBSCRIPTION_ID" \
    --resource-group "$AZURE_RESOURCE_GROUP" \
    --name event-subscriptions \
    --template-file infra/bicep/modules/event-subscriptions.bicep \
    --parameters "topicName=$EVENT_GRID_TOPIC_NAME" "appName=$AZURE_FUNCTION_APP_NAME" \
        "storageName=$CONTENT_STORAGE_NAME" 2>&1); do
    echo "$said" >&2
    case "$said" in
        *AuthorizationFailed*) ends "You need Contributor on the resource group $AZURE_RESOURCE_GROUP." ;;
    esac
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        ends "The last error stands above: does the app start? docs/troubleshooting.md, \"Alerts\"."
    fi
    echo "The app is not ready yet; trying again in 30 seconds."
    sleep 30
done

not_checked() {
    echo "Whether the app works was not checked: $1."
    echo "docs/deploy.md, \"Check it\", says how to do it by hand."
    exit 0
}

if [ "${GROUNDWORK_SMOKE_TEST:-run}" = skip ]; then
    not_checked "GROUNDWORK_SMOKE_TEST is skip"
fi
python=python3
if [ -x .venv/bin/python ]; then
    python=.venv/bin/python
fi
"$python" -c "import httpx, rich, pydantic" 2>/dev/null ||
    not_checked "$python has not what the command line needs (requirements/local.txt)"
GROUNDWORK_TOKEN=$(az account get-access-token --tenant "$AUTH_TENANT_ID" --scope "$GROUNDWORK_SCOPE" \
    --query accessToken --output tsv) || not_checked "there is no token for $GROUNDWORK_SCOPE"
if [ -z "$GROUNDWORK_TOKEN" ]; then
    not_checked "there is no token for $GROUNDWORK_SCOPE"
fi
export GROUNDWORK_TOKEN GROUNDWORK_URL

tries=3
until "$python" -m cli check; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        echo "The app is deployed and does not work: docs/troubleshooting.md, \"Alerts\"." >&2
        exit 1
    fi
    echo "It does not work yet; trying again in 60 seconds."
    sleep 60
done
