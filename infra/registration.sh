#!/bin/sh
# The app registration that people sign in to. Run it before `azd up`, and again after it: the address of the app and
# its identity exist only then. It may run as often as you like. Needs Application Administrator in Entra ID, and for
# the permissions of Microsoft Graph somebody who may grant them (Privileged Role Administrator).
set -eu
cd "$(dirname "$0")/.."
applications=https://graph.microsoft.com/v1.0/applications
principals=https://graph.microsoft.com/v1.0/servicePrincipals

patch() {
    az rest --method PATCH --uri "$applications/$1" --headers Content-Type=application/json --body "$2" >/dev/null
}

# Made once and never changed: erasing a person finds what is theirs by ids that are made from it.
key=$(azd env get-value OWNER_ID_KEY 2>/dev/null) || key=
url=$(azd env get-value GROUNDWORK_URL 2>/dev/null) || url=
if [ -z "$key" ]; then
    if [ -n "$url" ]; then
        echo "The app at $url is deployed, but this azd environment has no OWNER_ID_KEY. A new one would make older" \
            "conversations unreachable. Set that of the first deployment: azd env set OWNER_ID_KEY <key>" >&2
        exit 1
    fi
    azd env set OWNER_ID_KEY "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
fi

app_id=$(azd env get-value AUTH_CLIENT_ID 2>/dev/null) || app_id=
if [ -z "$app_id" ]; then
    app_id=$(az ad app create --display-name Groundwork --sign-in-audience AzureADMyOrg --query appId --output tsv)
    az ad sp create --id "$app_id" >/dev/null
    object_id=$(az ad app show --id "$app_id" --query id --output tsv)
    scope_id=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
    admin_id=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
    publisher_id=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
    scope="{\"id\": \"$scope_id\", \"value\": \"user_impersonation\", \"type\": \"User\", \"isEnabled\": true,
        \"adminConsentDisplayName\": \"Ask Groundwork\", \"adminConsentDescription\": \"Ask in a person's name\"}"
    patch "$object_id" "{\"identifierUris\": [\"api://$app_id\"],
        \"groupMembershipClaims\": \"ApplicationGroup\",
        \"api\": {\"requestedAccessTokenVersion\": 2, \"oauth2PermissionScopes\": [$scope]},
        \"appRoles\": [{\"id\": \"$admin_id\", \"value\": \"admin\", \"displayName\": \"Administrator\",
            \"isEnabled\": true, \"description\": \"Changes and deletes documents\", \"allowedMemberTypes\": [\"User\"]},
            {\"id\": \"$publisher_id\", \"value\": \"publisher\", \"displayName\": \"Publisher\", \"isEnabled\": true,
            \"description\": \"Opens documents to the whole organisation\", \"allowedMemberTypes\": [\"User\"]}],
        \"optionalClaims\": {\"idToken\": [{\"name\": \"acct\"}, {\"name\": \"groups\"}],
            \"accessToken\": [{\"name\": \"acct\"}, {\"name\": \"idtyp\"}, {\"name\": \"groups\"}]}}"
    # Only now, for the scope must exist: the Azure CLI may ask for tokens, for the check and for the command line.
    patch "$object_id" "{\"api\": {\"requestedAccessTokenVersion\": 2, \"oauth2PermissionScopes\": [$scope],
        \"preAuthorizedApplications\": [{\"appId\": \"04b07795-8ddb-461a-bbee-02f9e1bf7b46\",
            \"delegatedPermissionIds\": [\"$scope_id\"]}]}}"
    azd env set AUTH_CLIENT_ID "$app_id"
    echo "Registered as $app_id."
fi

if [ -z "$url" ]; then
    echo "Next: azd up, and then this script once more."
    exit 0
fi
set -- "$url/.auth/login/aad/callback"
host=$(azd env get-value CUSTOM_HOST_NAME_BOUND 2>/dev/null) || host=
[ -z "$host" ] || set -- "$@" "https://$host/.auth/login/aad/callback"
az ad app update --id "$app_id" --web-redirect-uris "$@"

# The app's identity proves the registration, in place of a secret.
identity=$(azd env get-value IDENTITY_PRINCIPAL_ID)
if [ -z "$(az ad app federated-credential list --id "$app_id" --query "[?subject=='$identity'].id" --output tsv)" ]; then
    az ad app federated-credential create --id "$app_id" --parameters "{\"name\": \"groundwork-$identity\",
        \"issuer\": \"https://login.microsoftonline.com/$(azd env get-value AZURE_TENANT_ID)/v2.0\",
        \"subject\": \"$identity\", \"audiences\": [\"api://AzureADTokenExchange\"]}" >/dev/null
fi

# Groups beyond a token, names of groups in access lists, and everybody in Teams (the second permission).
graph=$(az ad sp show --id 00000003-0000-0000-c000-000000000000 --query id --output tsv)
granted=$(az rest --uri "$principals/$identity/appRoleAssignments" --query "value[].appRoleId" --output tsv)
for name in GroupMember.Read.All User.Read.All; do
    role=$(az ad sp show --id "$graph" --query "appRoles[?value=='$name'].id | [0]" --output tsv)
    case "$granted" in *"$role"*) continue ;; esac
    az rest --method POST --uri "$principals/$identity/appRoleAssignments" --headers Content-Type=application/json \
        --body "{\"principalId\": \"$identity\", \"resourceId\": \"$graph\", \"appRoleId\": \"$role\"}" >/dev/null ||
        echo "Not granted: $name. A tenant's administrator runs this script once more." >&2
done
echo "People can sign in at $url."
