#!/usr/bin/env bash
# Lets the app read the SharePoint sites of SHAREPOINT_LIBRARIES: the application permission Sites.Selected, and
# full control of each site. Microsoft documents no smaller one with which permissions can be read.
#   azd env set SHAREPOINT_LIBRARIES https://contoso.sharepoint.com/sites/hr && infra/sharepoint.sh && azd provision
# An administrator of the tenant runs it. It may be repeated.
set -euo pipefail

graph=https://graph.microsoft.com/v1.0
identity=$(azd env get-value IDENTITY_PRINCIPAL_ID)
client=$(azd env get-value IDENTITY_CLIENT_ID)
libraries=$(azd env get-value SHAREPOINT_LIBRARIES)

grant_role() { # resource's application id, role's name
    resource=$(az ad sp show --id "$1" --query id --output tsv)
    role=$(az ad sp show --id "$1" --query "appRoles[?value=='$2'].id | [0]" --output tsv)
    granted=$(az rest --uri "$graph/servicePrincipals/$identity/appRoleAssignments" \
        --query "value[?resourceId=='$resource'].appRoleId" --output tsv)
    case "$granted" in *"$role"*) return ;; esac
    az rest --method POST --uri "$graph/servicePrincipals/$identity/appRoleAssignments" \
        --headers Content-Type=application/json \
        --body "{\"principalId\": \"$identity\", \"resourceId\": \"$resource\", \"appRoleId\": \"$role\"}" >/dev/null
    echo "Granted: $2"
}

# Microsoft Graph, and SharePoint itself, which alone lists the members of a site's groups.
for name in Sites.Selected User.Read.All GroupMember.Read.All; do
    grant_role 00000003-0000-0000-c000-000000000000 "$name"
done
grant_role 00000003-0000-0ff1-ce00-000000000000 Sites.Selected

printf '%s\n' "$libraries" | tr ',' '\n' | while read -r address; do
    [ -n "$address" ] || continue
    host=$(printf '%s' "$address" | cut -d/ -f3)
    # Sites lie below these folders; every other address belongs to the root site.
    case "/$(printf '%s' "$address" | cut -d/ -f4)" in
    /sites | /teams | /personal) path=":/$(printf '%s' "$address" | cut -d/ -f4-5)" ;;
    *) path= ;;
    esac
    site=$(az rest --uri "$graph/sites/$host$path" --query id --output tsv)
    known=$(az rest --uri "$graph/sites/$site/permissions" \
        --query "value[?grantedToIdentitiesV2[?application.id=='$client']].id | [0]" --output tsv)
    if [ -z "$known" ]; then
        az rest --method POST --uri "$graph/sites/$site/permissions" --headers Content-Type=application/json \
            --body "{\"roles\": [\"fullcontrol\"], \"grantedToIdentities\": [{\"application\":
            {\"id\": \"$client\", \"displayName\": \"Groundwork\"}}]}" >/dev/null
    else # perhaps with a smaller role
        az rest --method PATCH --uri "$graph/sites/$site/permissions/$known" \
            --headers Content-Type=application/json --body '{"roles": ["fullcontrol"]}' >/dev/null
    fi
    echo "Full control: $address"
done
