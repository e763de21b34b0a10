const STATE = `fragment State on ApiKey {
  id name description grants limits allowFrom prefix createdAt createdBy expiresAt disabledAt managed
  status disabledByPolicy unknownGrants uses lastUsedAt
  rotation { startedAt previousPrefix previousEndsAt previousLastUsedAt }
}`;

/** What servers are asked for. */
export const CATALOG = `query {
  permissions { roles { role description permissions { resource actions } } resources actions }
}`;

export const FIND = `query ($name: String!) { apiKey(name: $name) { ...State } } ${STATE}`;

export const SHOW = `query ($name: String!) {
  apiKey(name: $name) {
    ...State
    effectivePermissions { resource actions }
    limitedBy { keyId name status expiresAt permissions { resource actions } limits allowFrom }
    issued { name what at disabled }
  }
} ${STATE}`;

/** Filters that are left out cost nothing. */
export function listDocument(filters: { search: boolean; roles: boolean; status: boolean }): string {
  const given = [
    ['search', 'String'],
    ['roles', '[Role!]'],
    ['status', 'ApiKeyStatus'],
  ].filter(([name]) => filters[name as keyof typeof filters]);
  const declared = given.map(([name, type]) => `, $${name}: ${type}`).join('');
  const passed = given.map(([name]) => `, ${name}: $${name}`).join('');
  return `query ($first: Int!, $after: String${declared}) {
  apiKeys(first: $first, after: $after${passed}) { edges { node { ...State } } pageInfo { hasNextPage } }
} ${STATE}`;
}

export const ACCESS = `query ($id: ID!, $permission: String!) {
  apiKey(id: $id) {
    access(permission: $permission) { allowed permission grantedBy status deniedById deniedByName }
  }
}`;

export const SUGGEST = `query ($id: ID!) {
  apiKey(id: $id) { suggestedRoles suggestedPermissions { resource actions } unusedPermissions { resource actions } }
}`;

export const USAGE = `query ($id: ID!, $from: DateTime!, $to: DateTime!, $by: UsagePeriod!) {
  apiKey(id: $id) { usage(from: $from, to: $to, by: $by) { start accepted forbidden limited refused } }
}`;

export const PREVIEW = `query ($input: CreateApiKeyInput!) {
  previewApiKey(input: $input) {
    name description grants limits allowFrom expiresAt effectivePermissions { resource actions }
  }
}`;

export const CREATE = `mutation ($input: CreateApiKeyInput!) {
  createApiKey(input: $input) { key apiKey { ...State } replaced { id name } }
} ${STATE}`;

export const UPDATE = `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { ...State } } ${STATE}`;

export const ENABLE = `mutation ($id: ID!) {
  setApiKeyEnabled(id: $id, enabled: true) { ...State }
} ${STATE}`;

export const DISABLE = `mutation ($id: ID!) {
  setApiKeyEnabled(id: $id, enabled: false) { ...State issued { name what at disabled } }
} ${STATE}`;

export const ROTATE = `mutation ($input: RotateApiKeyInput!) {
  rotateApiKey(input: $input) {
    key apiKey { ...State } created { ...State } disabled { ...State } issued { name what at disabled }
  }
} ${STATE}`;

/** A change of a rotation under way. */
export function rotationDocument(field: `${'activate' | 'finish' | 'rollBack'}ApiKeyRotation`): string {
  return `mutation ($id: ID!) { apiKey: ${field}(id: $id) { ...State } } ${STATE}`;
}

export const DELETE = `mutation ($ids: [ID!]!) {
  deleteApiKeys(ids: $ids) { keys { id name } issued { name what at disabled } }
}`;

export const CONTAIN = `mutation ($input: ContainKeyInput!) {
  containKey(input: $input) {
    keyId name exists
    issued { name what at disabled }
    changes { action name keyId changes { field before after } }
    requests { requestId clientName keyName }
  }
}`;

export const APPLY = `mutation ($input: ApplyApiKeysInput!) {
  applyApiKeys(input: $input) {
    changes { action name keyId changes { field before after } }
    created { key apiKey { id name } }
    unchanged
  }
}`;

const CONSENT = `fragment Consent on ConsentRequest {
  requestId flow clientId clientName grants keyExpiresIn address createdAt expiresAt status
  keyName keyGrants keyExpiresAt
}`;

export const CONSENT_REQUESTS = `query ($first: Int!) { consentRequests(first: $first) { ...Consent } } ${CONSENT}`;

export const CONSENT_REQUEST = `query ($userCode: String, $requestId: ID) {
  consentRequest(userCode: $userCode, requestId: $requestId) { ...Consent }
} ${CONSENT}`;

export const APPROVE = `mutation ($input: ApproveConsentRequestInput!) {
  approveConsentRequest(input: $input) { ...Consent }
} ${CONSENT}`;

export const DENY = `mutation ($userCode: String, $requestId: ID) {
  denyConsentRequest(userCode: $userCode, requestId: $requestId) { ...Consent }
} ${CONSENT}`;

/** Filters that are left out cost nothing. */
export function auditLogDocument(filters: readonly string[]): string {
  const types: Readonly<Record<string, string>> = {
    first: 'Int',
    beforeNumber: 'Int',
    afterNumber: 'Int',
    apiKey: 'String',
    actor: 'String',
    action: 'AuditAction',
    since: 'DateTime',
    until: 'DateTime',
  };
  return `query (${filters.map((name) => `$${name}: ${types[name]}`).join(', ')}) {
  auditLog(${filters.map((name) => `${name}: $${name}`).join(', ')}) {
    edges {
      node { number at actor { kind keyId name } action keyId keyName changes { field before after } address hash }
    }
  }
}`;
}
