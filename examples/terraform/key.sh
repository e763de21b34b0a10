#!/bin/sh
# An external data source: a query as JSON on stdin, a flat object of strings on stdout.
set -eu
name=$(jq -r .name)
svc-api apikey show "$name" --json |
  jq '{ id, name, prefix, status, expiresAt: (.expiresAt // "never"), roles: (.roles | join(",")) }'
