import assert from 'node:assert/strict';
import {
  buildClientSchema,
  getIntrospectionQuery,
  type GraphQLNamedType,
  type GraphQLScalarType,
  type GraphQLSchema,
  type IntrospectionQuery,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  print,
} from 'graphql';
import { FEATURES } from '../../src/features/index.ts';
import { MAX_DECLARED_KEYS } from '../../src/features/apply/schema.ts';
import { typeDefsOf } from '../../src/graphql/schema.ts';
import { MAX_URL_LENGTH, ROUTES_PAGE_SIZE } from '../../src/features/routes/schema.ts';
import { AUDIT_ACTIONS } from '../../src/keys/audit/audit-entry.ts';
import { DEFAULT_GRACE } from '../../src/keys/key/rotation.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../src/keys/basics/page-size.ts';
import { ACTIONS, createCatalog } from '../../src/keys/permissions/catalog.ts';
import { KEPT_DAYS } from '../../src/features/usage/usage.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

/** The root fields in the specification, with their fields. */
const QUERY = {
  me: '(): ApiKey',
  online: '(): Boolean',
  consentRequest: '(userCode: String, requestId: ID): ConsentRequest',
  consentRequests: '(first: Int = 50): [ConsentRequest!]',
  routeKeys: '(route: Int!, method: String, first: Int = 50, after: String): ApiKeyConnection',
  routes: '(first: Int = 100, after: String, keyId: ID, keyName: String): RouteConnection',
  serviceUsage: '(from: DateTime, to: DateTime, by: UsagePeriod = "HOUR"): [ApiKeyUsage!]',
  explainRequest:
    '(method: String = "GET", url: String!, preflight: Boolean = false, keyId: ID, keyName: String): RequestExplanation',
  limits: '(): ServiceLimits',
  edges: '(): [Edge!]',
  health: '(): Health',
  info: '(): Info',
  apiKeyChangePlan:
    '(ids: [ID!]!, change: ManyKeysChange!, expiresAt: DateTime, update: ManyKeysUpdate): ApiKeyChangePlan',
  apiKeyList:
    '(first: Int = 50, offset: Int = 0, sort: ApiKeySort = "CREATED", descending: Boolean = true, search: String, roles: [Role!], ' +
    'status: ApiKeyStatus, owner: String, tags: [String!], createdBy: ID, createdByOperator: Boolean = false, ' +
    'expiresBefore: DateTime, unusedSince: DateTime, neverUsed: Boolean = false, countUpTo: Int = 10000): ApiKeyList',
  apiKeys:
    '(first: Int = 50, after: String, search: String, roles: [Role!], status: ApiKeyStatus, owner: String, ' +
    'tags: [String!], createdBy: ID, expiresBefore: DateTime, unusedSince: DateTime): ApiKeyConnection',
  apiKey: '(id: ID, name: String): ApiKey',
  node: '(id: ID!): Node',
  permissions: '(): PermissionCatalog',
  policy: '(): Policy',
  previewApiKey: '(input: CreateApiKeyInput!): ApiKeyPreview',
  previewPermissions: '(roles: [Role!], permissions: [PermissionInput!]): [Permission!]',
  auditChain: '(): AuditChain',
  auditCounts:
    '(since: DateTime!, until: DateTime, by: UsagePeriod = "HOUR", apiKey: String, actor: String, action: AuditAction, outcome: AuditOutcome): AuditCounts',
  auditLog:
    '(first: Int = 50, after: String, beforeNumber: Int, afterNumber: Int, apiKey: String, actor: String, action: AuditAction, outcome: AuditOutcome, since: DateTime, until: DateTime): AuditLogConnection',
};
const MUTATION = {
  attestReview: '(input: AttestReviewInput!): Boolean',
  approveConsentRequest: '(input: ApproveConsentRequestInput!): ConsentRequest',
  denyConsentRequest: '(userCode: String, requestId: ID): ConsentRequest',
  containKey: '(input: ContainKeyInput!): ContainedKey',
  createApiKey: '(input: CreateApiKeyInput!): CreatedApiKey',
  updateApiKeys: '(ids: [ID!]!, update: ManyKeysUpdate!): ChangedApiKeys',
  updateApiKey: '(input: UpdateApiKeyInput!): ApiKey',
  setApiKeyEnabled: '(id: ID!, enabled: Boolean!): ApiKey',
  rotateApiKey: '(input: RotateApiKeyInput!): RotatedApiKey',
  narrowApiKeys: '(input: NarrowApiKeysInput!): ChangedApiKeys',
  activateApiKeyRotation: '(id: ID!): ApiKey',
  finishApiKeyRotation: '(id: ID!): ApiKey',
  rollBackApiKeyRotation: '(id: ID!): ApiKey',
  applyApiKeys: '(input: ApplyApiKeysInput!): AppliedApiKeys',
  deleteApiKeys: '(ids: [ID!]!): DeletedApiKeys',
};
const OBJECTS: Record<string, string[]> = {
  ApiKey: [
    'id: ID!',
    'name: String!',
    'roles: [Role!]!',
    'permissions: [Permission!]!',
    'effectivePermissions: [Permission!]!',
    'prefix: String!',
  ],
  Permission: ['resource: Resource!', 'actions: [AuthAction!]!'],
  CreatedApiKey: ['key: String!', 'apiKey: ApiKey!'],
  DeletedApiKeys: ['deleted: Int!', 'keys: [DeletedApiKey!]!'],
  ApiKeyConnection: ['edges: [ApiKeyEdge!]!', 'pageInfo: PageInfo!'],
  ApiKeyEdge: ['node: ApiKey!', 'cursor: String!'],
  PageInfo: ['hasNextPage: Boolean!', 'hasPreviousPage: Boolean!', 'startCursor: String', 'endCursor: String'],
};

describe('the schema, as introspection shows it', () => {
  let test: TestService;
  let schema: GraphQLSchema;
  let own: GraphQLNamedType[];

  before(async () => {
    test = await startTestService({ resources: ['DISK_POOL'] });
    const { secret } = await createPrincipal(test.keys, { name: 'Looker', permissions: ['WELCOME:READ_OWN'] });
    const options = {
      descriptions: true,
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
    };
    const { status, body } = await query(test.url, secret, getIntrospectionQuery(options));
    assert.deepEqual([status, body.errors], [200, undefined]);
    schema = buildClientSchema(body.data as unknown as IntrospectionQuery);
    own = Object.values(schema.getTypeMap()).filter(
      ({ name }) => !name.startsWith('__') && !['Boolean', 'Float', 'ID', 'Int', 'String'].includes(name),
    );
  });
  after(() => test.stop());

  const fieldsOf = (name: string) => {
    const type = schema.getType(name);
    assert.ok(isObjectType(type), name);
    return Object.values(type.getFields());
  };
  const signatures = (name: string) =>
    Object.fromEntries(
      fieldsOf(name).map(({ name, args, type }) => {
        const shown = args.map(
          (arg) =>
            `${arg.name}: ${String(arg.type)}${arg.defaultValue === undefined ? '' : ` = ${JSON.stringify(arg.defaultValue)}`}`,
        );
        return [name, `(${shown.join(', ')}): ${String(type)}`];
      }),
    );

  it('has the root fields of the specification, and no others', () => {
    assert.deepEqual(signatures('Query'), QUERY);
    assert.deepEqual(signatures('Mutation'), MUTATION);
    assert.ok(!schema.getSubscriptionType());
  });

  it('has the types of the specification', () => {
    for (const [name, expected] of Object.entries(OBJECTS)) {
      const fields = new Set(fieldsOf(name).map((field) => `${field.name}: ${String(field.type)}`));
      assert.deepEqual(
        expected.filter((field) => !fields.has(field)),
        [],
        name,
      );
    }
    const [apiKey, node] = [schema.getType('ApiKey'), schema.getType('Node')];
    assert.ok(isObjectType(apiKey) && isInterfaceType(node) && schema.isSubType(node, apiKey));
  });

  it('describes a DateTime', () => {
    const { specifiedByURL } = schema.getType('DateTime') as GraphQLScalarType;
    assert.equal(specifiedByURL, 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6');
  });

  it('says the numbers and the names that the rules go by', async () => {
    const sdl = (await typeDefsOf(createCatalog(), FEATURES)).map(print).join('\n');
    const said = (pattern: RegExp) => Array.from(sdl.matchAll(pattern), ([, value]) => value);
    const most = String(MAX_PAGE_SIZE);
    assert.deepEqual(new Set(said(/assumedSize: (\d+), slicingArguments/g)), new Set([most]));
    assert.deepEqual(new Set(said(/up to (\d+)\."\s+first:/g)), new Set([most]));
    assert.deepEqual(new Set(said(/ids of the keys, at most (\d+)/g)), new Set([most]));
    assert.deepEqual(new Set(said(/first: Int = (\d+)/g)), new Set([`${DEFAULT_PAGE_SIZE}`, `${ROUTES_PAGE_SIZE}`]));
    assert.deepEqual(said(/The keys, at most (\d+)\./g), [`${MAX_DECLARED_KEYS}`]);
    assert.deepEqual(said(/at most (\d+) characters\."\s+url/g), [`${MAX_URL_LENGTH}`]);
    assert.deepEqual(said(/grace: String = "(.*)"/g), [DEFAULT_GRACE]);
    assert.match(sdl, new RegExp(`kept for ${KEPT_DAYS.HOUR} days, days for ${KEPT_DAYS.DAY}\\.`));
    const names = (type: string) => {
      const named = schema.getType(type);
      return isEnumType(named) ? named.getValues().map(({ name }) => name) : [];
    };
    assert.deepEqual(names('AuditAction'), AUDIT_ACTIONS);
    assert.deepEqual(names('AuthAction'), ACTIONS);
  });

  it('uses no other names for ids of objects, including deleted ones', () => {
    const withId = own.filter((type) => isObjectType(type) && type.getFields()['id']);
    assert.deepEqual(withId.map(({ name }) => name).toSorted(), ['ApiKey', 'DeletedApiKey']);
  });

  it('holds the resources of the host beside its own', () => {
    const resource = schema.getType('Resource');
    assert.ok(isEnumType(resource));
    assert.equal(resource.getValues().length, 31);
    for (const name of ['CONNECT__REMOTE_ACCESS', 'DISK_POOL']) assert.ok(resource.getValue(name), name);
  });

  it('describes every type, field, argument, enum value and input field', () => {
    const silent: string[] = [];
    let described = 0;
    const look = (path: string, description: string | null | undefined) => {
      if (/^[A-Z].*[.!]$|…$/s.test(description ?? '')) described += 1;
      else silent.push(path);
    };
    for (const type of own) {
      look(type.name, type.description);
      if (isEnumType(type)) for (const value of type.getValues()) look(`${type.name}.${value.name}`, value.description);
      if (isInputObjectType(type))
        for (const field of Object.values(type.getFields())) look(`${type.name}.${field.name}`, field.description);
      if (!isObjectType(type) && !isInterfaceType(type)) continue;
      for (const field of Object.values(type.getFields())) {
        look(`${type.name}.${field.name}`, field.description);
        for (const arg of field.args) look(`${type.name}.${field.name}(${arg.name}:)`, arg.description);
      }
    }
    assert.deepEqual(silent, []);
    assert.ok(described > 120, `${described} descriptions`);
  });
});
