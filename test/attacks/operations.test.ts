import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import { type KeysOperation, OPERATIONS, operationsOn, perform } from '../../src/keys/operations/index.ts';
import { createCatalog, type Permission } from '../../src/keys/permissions/catalog.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';
import type { KeyAdministration } from '../../src/keys/service/administration.ts';
import { remoteKeys } from '../../src/remote/remote-keys.ts';
import { type OpenKeys, openKeys } from '../../src/service/library-keys.ts';
import { startConsoleService, Visitor } from '../support/console.ts';
import { describeOn } from '../support/dialects.ts';
import { createPrincipal, principalOf } from '../support/keys.ts';
import { query, type TestService } from '../support/server.ts';

/** The outcome of a try: `done` also where there was nothing to do it to. */
type Outcome = 'done' | 'no key' | 'refused' | `other: ${string}`;

type Fields = Record<string, string>;
type By = Parameters<OpenKeys['list']>[1];

/** A form of the console. */
interface ConsoleForm {
  readonly page?: string;
  readonly form: string;
  readonly fields?: Fields;
  /** Fields that the page would have filled in, had it shown the form. */
  readonly unseen?: Fields;
}

/** Each door by which an operation can be reached, with how it is tried there. */
interface Doors {
  /** The root field, as it is written in a document. */
  readonly graphql: string;
  /** The code where there is nothing to do it to. Default: NOT_FOUND. */
  readonly missing?: string;
  /** Its input in the table, where it is one on keys. */
  readonly input?: object;
  /** The same by the client of `--server`. */
  readonly server?: (keys: KeyAdministration) => unknown;
  /** The same by a method of the library. */
  readonly library?: (keys: OpenKeys, by: By) => Promise<unknown>;
  /** The page of the console that needs it, or the form that it is sent by, with the page that has it. */
  readonly console?: string | ConsoleForm;
}

const requestId = randomUUID();
const sha256 = 'a'.repeat(64);
const place = { requestId };
const userCode = 'WDJB-MJHT';
const delivery = { deliver: () => {} };
let made = 0;
/** A key that each caller may create that may create any. */
const newKey = () => ({ name: `Made ${(made += 1)}`, permissions: ['ONLINE:READ_ANY'] as const });
const newKeyForm = () => ({ name: newKey().name, permission: 'ONLINE:READ_ANY' });
const GRANTED = 'permissions: [{ resource: ONLINE, actions: [READ_ANY] }]';

const selection = { first: 1, offset: 0, sort: 'CREATED', descending: true } as const;

/** Every operation, at each of its doors; those on one key, on a given one. */
const triesOn = (key: ApiKey): Readonly<Record<keyof typeof OPERATIONS, Doors>> => {
  const { id } = key;
  const ids = [id];
  return {
    me: { graphql: 'me { id }' },
    online: { graphql: 'online' },
    info: { graphql: 'info { name }' },
    health: { graphql: 'health { storeAnswers }', input: {}, console: 'health' },
    apiKeys: {
      graphql: 'apiKeys(first: 1) { edges { node { id } } }',
      input: { query: { first: 1 } },
      server: (keys) => keys.list({ first: 1 }),
      library: (keys, by) => keys.list({ first: 1 }, by),
    },
    apiKey: {
      graphql: 'apiKey(name: "Gone") { id }',
      input: { name: 'Gone' },
      server: (keys) => keys.find('Gone'),
      library: async (keys, by) => [await keys.get(id, by), await keys.get('Gone', by)],
    },
    node: { graphql: `node(id: "${id}") { id }`, input: { id } },
    apiKeyList: {
      graphql: 'apiKeyList(first: 1) { total }',
      input: { query: selection },
      server: (keys) => keys.select(selection),
      console: 'keys',
    },
    serviceUsage: { graphql: 'serviceUsage { start }', input: { request: {} } },
    permissions: { graphql: 'permissions { resources }', input: {}, server: (keys) => keys.catalog() },
    previewPermissions: {
      graphql: 'previewPermissions(roles: [GUEST]) { resource }',
      input: { roles: ['GUEST'], permissions: [] },
    },
    policy: { graphql: 'policy { maxLifetime }', input: {} },
    previewApiKey: {
      graphql: `previewApiKey(input: { name: "Previewed", ${GRANTED} }) { name }`,
      input: { input: { name: 'Previewed', permissions: ['ONLINE:READ_ANY'] } },
      server: (keys) => keys.preview({ name: 'Previewed', permissions: ['ONLINE:READ_ANY'] }),
    },
    createApiKey: {
      graphql: `createApiKey(input: { name: "Made by GraphQL", overwrite: true, ${GRANTED} }) { key }`,
      get input() {
        return { input: newKey() };
      },
      server: (keys) => keys.create(newKey()),
      library: (keys, by) => keys.create(newKey(), by),
      console: { form: 'keys/new', fields: { ...newKeyForm(), step: 'create' } },
    },
    updateApiKey: {
      graphql: `updateApiKey(input: { id: "${id}", description: "x" }) { id }`,
      input: { id, change: { description: 'x' } },
      server: (keys) => keys.update(key, { description: 'x' }),
      library: (keys, by) => keys.update(id, { description: 'x' }, by),
      console: { page: `keys/${id}/edit`, form: `keys/${id}/edit`, fields: { description: 'x' } },
    },
    setApiKeyEnabled: {
      graphql: `setApiKeyEnabled(id: "${id}", enabled: false) { id }`,
      input: { id, enabled: false },
      server: (keys) => keys.setEnabled(key, false),
      library: (keys, by) => keys.disable(id, by),
      console: { page: `keys/${id}/disable`, form: `keys/${id}/disable` },
    },
    rotateApiKey: {
      graphql: `rotateApiKey(input: { id: "${id}" }) { key }`,
      input: { id, request: {} },
      server: (keys) => keys.rotate(key, {}, delivery),
      library: (keys, by) => keys.rotate(id, {}, by),
      console: { page: `keys/${id}/rotation`, form: `keys/${id}/rotation` },
    },
    activateApiKeyRotation: {
      graphql: `activateApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      console: { form: `keys/${id}/rotation/activate` },
    },
    finishApiKeyRotation: {
      graphql: `finishApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      server: (keys) => keys.finishRotation(id),
      library: (keys, by) => keys.finishRotation(id, by),
      console: { form: `keys/${id}/rotation/finish` },
    },
    rollBackApiKeyRotation: {
      graphql: `rollBackApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      server: (keys) => keys.rollBackRotation(id),
      library: (keys, by) => keys.rollBackRotation(id, by),
      console: { form: `keys/${id}/rotation/roll-back` },
    },
    deleteApiKeys: {
      graphql: `deleteApiKeys(ids: ["${id}"]) { deleted }`,
      input: { ids },
      server: (keys) => keys.delete(ids),
      library: (keys, by) => keys.delete(ids, by),
      console: { page: `keys/${id}/delete`, form: `keys/${id}/delete` },
    },
    apiKeyChangePlan: {
      graphql: `apiKeyChangePlan(ids: ["${id}"], change: DISABLE) { total }`,
      input: { ids, request: { what: 'DISABLE' } },
      server: (keys) => keys.planMany(ids, { what: 'DISABLE' }),
      console: `keys/selected?change=DISABLE&id=${id}`,
    },
    narrowApiKeys: {
      graphql: `narrowApiKeys(input: { ids: ["${id}"] }) { keys { id } }`,
      input: { ids, request: { what: 'DISABLE' } },
      server: (keys) => keys.changeMany(ids, { what: 'DISABLE' }),
      console: {
        page: `keys/selected?change=DISABLE&id=${id}`,
        form: 'keys/selected',
        fields: { id, change: 'DISABLE' },
        unseen: { planned: '0 of 0' },
      },
    },
    updateApiKeys: {
      graphql: `updateApiKeys(ids: ["${id}"], update: { description: "x" }) { keys { id } }`,
      input: { ids, request: { what: 'UPDATE', change: { description: 'x' } } },
      server: (keys) => keys.changeMany(ids, { what: 'UPDATE', change: { description: 'x' } }),
    },
    containKey: {
      graphql: `containKey(input: { id: "${id}" }) { name }`,
      input: { key: id },
      server: (keys) => keys.containments.contain({ key: id }),
      console: `keys/${id}/contain`,
    },
    applyApiKeys: {
      graphql: 'applyApiKeys(input: { keys: [] }) { unchanged }',
      input: { declared: [], rules: {} },
      server: (keys) => keys.declarations.apply([], { prune: false, adopt: false }, delivery),
    },
    auditLog: {
      graphql: 'auditLog(first: 1) { edges { node { number } } }',
      input: { request: { first: 1 } },
      server: (keys) => keys.auditLog({ first: 1 }),
      console: 'audit-log',
    },
    auditCounts: {
      graphql: 'auditCounts(since: "2029-12-31T00:00:00Z") { complete }',
      input: { request: { since: '2029-12-31T00:00:00Z', by: 'HOUR' } },
    },
    auditChain: { graphql: 'auditChain { verified: reason }', input: {} },
    attestReview: {
      graphql: `attestReview(input: { text: "Seen", sha256: "${sha256}", keys: 1 })`,
      input: { input: { text: 'Seen', sha256, keys: 1 } },
      server: (keys) => keys.attest({ text: 'Seen', sha256, keys: 1 }),
    },
    consentRequests: {
      graphql: 'consentRequests(first: 1) { requestId }',
      input: { first: 1 },
      server: (keys) => keys.consents.list(1),
    },
    consentRequest: {
      graphql: `consentRequest(requestId: "${requestId}") { requestId }`,
      input: { place },
      server: (keys) => keys.consents.find(place),
    },
    approveConsentRequest: {
      graphql: `approveConsentRequest(input: { userCode: "${userCode}" }) { requestId }`,
      input: { userCode, choice: {} },
      server: (keys) => keys.consents.approve(userCode, {}),
    },
    denyConsentRequest: {
      graphql: `denyConsentRequest(requestId: "${requestId}") { requestId }`,
      input: { place },
      server: (keys) => keys.consents.deny(place),
      console: { form: 'requests/refuse', fields: { request: requestId } },
    },
    routes: { graphql: 'routes(first: 1) { total }' },
    explainRequest: { graphql: 'explainRequest(url: "https://example.org/") { outcome }' },
    routeKeys: { graphql: 'routeKeys(route: 1, first: 1) { edges { node { id } } }', missing: 'INPUT_INVALID' },
    limits: { graphql: 'limits { failedCredentials }', console: 'limits' },
    edges: { graphql: 'edges { edgeId }', input: {}, server: (keys) => keys.edges() },
  };
};

const ALL_PERMISSIONS = (() => {
  const { resources, actions } = createCatalog();
  return resources.flatMap((resource) => actions.map((action): Permission => `${resource}:${action}`));
})();

/** Everything but a permission, and the one that includes it. */
function allBut(needed: Permission): Permission[] {
  return ALL_PERMISSIONS.filter((permission) => permission !== needed && permission !== needed.replace('_OWN', '_ANY'));
}

function outcomeOf(code: unknown, missing = 'NOT_FOUND'): Outcome {
  if (code === undefined || code === missing) return 'done';
  if (code === 'UNAUTHENTICATED') return 'no key';
  return code === 'FORBIDDEN' ? 'refused' : `other: ${JSON.stringify(code)}`;
}

async function tried(work: () => unknown): Promise<Outcome> {
  try {
    await work();
    return 'done';
  } catch (error) {
    if (!isKeysError(error)) throw error;
    return outcomeOf(error.code);
  }
}

/** A caller: its secret, if it sends one, and the key that has it, if one does. */
interface Caller {
  readonly secret: string | undefined;
  readonly principal: Principal | undefined;
}

/** The outcome in the console; a page that does not show the form does not keep it from being sent. */
async function triedInConsole(
  test: TestService,
  secret: string | undefined,
  way: NonNullable<Doors['console']>,
): Promise<Outcome> {
  const visitor = new Visitor(test.url);
  if (secret !== undefined) await visitor.signIn(secret);
  const { page, form, fields, unseen } = typeof way === 'string' ? { page: way } : way;
  const opened = page === undefined ? undefined : await visitor.open(page);
  const isShown = form !== undefined && new RegExp(`action="[^"]*${form}`).test(opened?.html ?? '');
  if (form !== undefined && !isShown) sendsUnseen(visitor, form);
  const shown = form === undefined ? opened! : await visitor.submit(form, isShown ? fields : { ...fields, ...unseen });
  if (shown.path.includes('sign-in')) return 'no key';
  const meant = { 401: 'no key', 403: 'refused', 200: 'done', 404: 'done' } as const;
  return meant[shown.status as keyof typeof meant] ?? `other: ${shown.status} ${shown.text}`;
}

/** Puts a visitor on a page with a form that it was not shown. */
function sendsUnseen(visitor: Visitor, form: string): void {
  const html = `<form action="${form}" method="post"></form>`;
  visitor.page = { status: 200, headers: new Headers(), text: '', path: '', html };
}

/** The outcome of an operation at each door, each time on the key that `target` gives. */
async function outcomes(
  test: TestService,
  library: OpenKeys,
  name: keyof typeof OPERATIONS,
  { secret, principal }: Caller,
  target: () => Promise<ApiKey>,
): Promise<Record<string, Outcome>> {
  const operation = OPERATIONS[name];
  const tries = async () => triesOn(await target())[name];
  const found: Record<string, Outcome> = {};
  const { graphql, missing } = await tries();
  const document = `${operation.root === 'Query' ? 'query' : 'mutation'} { ${graphql} }`;
  const { status, body } = await query(test.url, secret, document);
  found['graphql'] = status === 401 ? 'no key' : outcomeOf(body.errors?.[0]?.extensions['code'], missing);

  const { server } = await tries();
  if (server && secret !== undefined)
    found['server'] = await tried(() => server(remoteKeys({ server: test.url, key: secret })));

  if ('run' in operation && principal) {
    const { input } = await tries();
    found['table'] = await tried(() =>
      perform(operation as KeysOperation<object, unknown>, test.keys, input!, principal),
    );
  }

  const { library: call } = await tries();
  if (call && secret !== undefined) {
    const checked = await library.check({ secret });
    found['library'] = checked.ok ? await tried(() => call(library, { actor: checked.principal })) : 'no key';
  }

  const { console: way } = await tries();
  if (way !== undefined) found['console'] = await triedInConsole(test, secret, way);
  return found;
}

describeOn('sqlite', 'each operation, at each door', () => {
  let test: TestService;
  let library: OpenKeys;
  const callers = new Map<string, Caller>();

  /** A key for each set of permissions; `narrowed` by its parent, which had all when it created it. */
  async function callerWith(permissions: readonly Permission[], narrowed = false): Promise<Caller> {
    const known = JSON.stringify([permissions, narrowed]);
    const name = `Caller ${callers.size}`;
    let caller = callers.get(known);
    if (!caller && !narrowed) caller = await createPrincipal(test.keys, { name, permissions });
    else if (!caller) {
      const parent = await createPrincipal(test.keys, { name: `${name} parent`, roles: ['ADMIN'] });
      const { secret } = await createPrincipal(test.keys, { name, roles: ['ADMIN'] }, parent.principal);
      await test.keys.update(parent.principal.apiKey.id, { roles: [], permissions }, OPERATOR);
      caller = { secret, principal: await principalOf(test.keys, secret) };
    }
    callers.set(known, caller);
    return caller;
  }

  before(async () => {
    test = await startConsoleService({ consent: 'both', app: { failedCredentials: false } });
    library = await openKeys({ database: test.database });
  });

  after(async () => {
    await library.close();
    await test.stop();
  });

  for (const name of Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]) {
    const { needs } = OPERATIONS[name];

    const target = async () => {
      const { apiKey } = await test.keys.create(newKey(), OPERATOR);
      if (!name.endsWith('ApiKeyRotation')) return apiKey;
      return (await test.keys.rotate(apiKey.id, { activate: 'ON_FIRST_USE' }, OPERATOR)).after;
    };
    const count = async () => (await test.keys.lists.select(selection, OPERATOR)).total;

    /** Asserts that all doors answer the same, and so, and that a refused operation leaves the store as it was. */
    async function assertAll(caller: Caller, expected: Outcome): Promise<void> {
      const one = await target();
      const before = await count();
      const found = await outcomes(test, library, name, caller, expected === 'done' ? target : async () => one);
      if (expected !== 'done') {
        assert.equal(await count(), before);
        assert.deepEqual(await test.keys.findById(one.id, OPERATOR), one);
      }
      assert.deepEqual(found, Object.fromEntries(Object.keys(found).map((door) => [door, expected])));
    }

    it(`${name} is done for a key with its permission, and for no other`, async () => {
      await assertAll(await callerWith(ALL_PERMISSIONS), 'done');
      await assertAll(await callerWith(allBut(needs)), 'refused');
      await assertAll(await callerWith(allBut(needs), true), 'refused');
      const gone = await createPrincipal(test.keys, { name: `Gone ${name}`, permissions: ALL_PERMISSIONS });
      await test.keys.delete([gone.principal.apiKey.id], OPERATOR);
      await assertAll({ secret: gone.secret, principal: undefined }, 'no key');
      await assertAll({ secret: undefined, principal: undefined }, 'no key');
    });

    it(`${name} is done for the operator`, async () => {
      const operation = OPERATIONS[name];
      const { input } = triesOn(await target())[name];
      const { library: call } = triesOn(await target())[name];
      if ('run' in operation) {
        const work = () => perform(operation as KeysOperation<object, unknown>, test.keys, input!, OPERATOR);
        assert.equal(await tried(work), 'done');
      }
      if (call) assert.equal(await tried(() => call(library, { actor: OPERATOR })), 'done');
    });
  }

  it('has an input for each that is one on keys', async () => {
    const tries: Readonly<Record<string, Doors>> = triesOn((await test.keys.create(newKey(), OPERATOR)).apiKey);
    const without = Object.keys(operationsOn(test.keys)).filter((name) => !tries[name]?.input);
    assert.deepEqual(without, []);
  });
});
