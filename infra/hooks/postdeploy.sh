#!/bin/sh
# After `azd deploy`: the subscription to new blobs. The key in its address exists only once the code runs, and
# some moments later at that, so it is tried again. Doing it twice changes nothing.
set -eu
cd "$(dirname "$0")/../.."

tries=10
until az deployment group create --output none \
    --resource-group "$AZURE_RESOURCE_GROUP" \
    --name event-subscription \
    --template-file infra/bicep/modules/event-subscription.bicep \
    --parameters "topicName=$EVENT_GRID_TOPIC_NAME" "appName=$AZURE_FUNCTION_APP_NAME" \
        "storageName=$CONTENT_STORAGE_NAME" "identityId=$IDENTITY_ID"; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        echo "The subscription to new blobs could not be made: files dropped into storage are found by the timer only." >&2
        exit 1
    fi
    echo "The app is not ready yet; trying again in 30 seconds."
    sleep 30
done
