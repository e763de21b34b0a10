import assert from 'node:assert/strict';
import { serverTarget } from '../../src/cli/with-keys.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import type { OwnFeature } from '../../src/feature.ts';
import { FEATURES } from '../../src/features/index.ts';
import { isOnKeys, type Operation, OPERATIONS, type Operations, perform } from '../../src/keys/operations/index.ts';
import { createCatalog, type Permission } from '../../src/keys/permissions/catalog.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';
import type { ConsentRequest } from '../../src/features/consent/consent-request.ts';
import { serverClient } from '../../src/remote/server-client.ts';
import { type OpenKeys, openKeys } from '../../src/service/library-keys.ts';
import { configFile } from '../support/config-file.ts';
import { APP } from '../features/consent/support/consent.ts';
import { startConsoleService, Visitor } from '../features/console/support/console.ts';
import { describeOn } from '../support/dialects.ts';
import { createPrincipal, principalOf } from '../support/keys.ts';
import { query, type TestService } from '../support/server.ts';
import { Consent } from '../../src/features/consent/consent.ts';

/** The outcome of an attempt. A change that writes nothing is not `done`. */
type Outcome = 'done' | 'no key' | 'refused' | `other: ${string}`;

type Fields = Record<string, string>;
type By = Parameters<OpenKeys['list']>[1];

/** A form of the console. */
interface ConsoleForm {
  readonly page?: string;
  readonly form: string;
  readonly fields?: Fields;
  /** Hidden fields that the page would have filled in. */
  readonly unseen?: Fields;
  /** The status without a session, unless it redirects to the sign-in page. */
  readonly withoutKey?: number;
}

/** A key and a request of an application. Each attempt has new ones. */
interface Target {
  readonly key: ApiKey;
  readonly request: ConsentRequest;
  readonly userCode: string;
}

/** Every door to an operation, and how to try it there. */
interface Doors {
  /** The root field in a document. */
  readonly graphql: string;
  /** The input for the operations table, if it is an operation on keys. */
  readonly input?: object;
  /** The method of the library. */
  readonly library?: (keys: OpenKeys, by: By) => Promise<unknown>;
  /** The console's pages that need the operation, and the forms that send it, with their pages. */
  readonly console?: readonly (string | ConsoleForm)[];
}

const sha256 = 'a'.repeat(64);
let made = 0;
/** A key that any caller who can create keys is able to create. */
const newKey = () => ({ name: `Made ${(made += 1)}`, permissions: ['ONLINE:READ_ANY' as Permission] });
const declaredKey = () => ({ ...newKey(), description: null, roles: [], expiresAt: null });
const newKeyForm = () => ({ name: newKey().name, permission: 'ONLINE:READ_ANY' });
const GRANTED = 'permissions: [{ resource: ONLINE, actions: [READ_ANY] }]';

const selection = { first: 1, offset: 0, sort: 'CREATED', descending: true } as const;

/** The operations of the core and of the features. */
const ALL: Operations = Object.assign({}, OPERATIONS, ...FEATURES.map(({ operations = {} }) => operations));

/** Every operation, at each of its doors, for a key and a request of an application. */
const triesOn = ({ key, request, userCode }: Target): Readonly<Record<string, Doors>> => {
  const { id, name } = key;
  const ids = [id];
  const { id: requestId } = request;
  const selectedForm = (change: string): ConsoleForm => ({
    page: `keys/selected?change=${change}&expiry=30d&id=${id}`,
    form: 'keys/selected#confirm',
    fields: { id, change, expiry: '30d' },
    unseen: { planned: '0 of 0' },
  });
  return {
    // A key's own page also needs the operation apiKey.
    me: { graphql: 'me { id }' },
    online: { graphql: 'online' },
    info: { graphql: 'info { name }' },
    health: { graphql: 'health { storeAnswers }', input: {}, console: ['health'] },
    apiKeys: {
      graphql: 'apiKeys(first: 1) { edges { node { id } } }',
      input: { query: { first: 1 } },
      library: (keys, by) => keys.list({ first: 1 }, by),
    },
    apiKey: {
      graphql: `apiKey(name: "${name}") { id }`,
      input: { name },
      library: async (keys, by) => [await keys.get(id, by), await keys.get(name, by)],
      console: [`keys/${id}`],
    },
    node: { graphql: `node(id: "${id}") { id }`, input: { id } },
    apiKeyList: {
      graphql: 'apiKeyList(first: 1) { total }',
      input: { query: selection },
      console: ['keys'],
    },
    serviceUsage: { graphql: 'serviceUsage { start }', input: { request: {} } },
    permissions: { graphql: 'permissions { resources }', input: {} },
    previewPermissions: {
      graphql: 'previewPermissions(roles: [GUEST]) { resource }',
      input: { roles: ['GUEST'], permissions: [] },
    },
    policy: { graphql: 'policy { maxLifetime }', input: {} },
    previewApiKey: {
      graphql: `previewApiKey(input: { name: "Previewed", ${GRANTED} }) { name }`,
      input: { input: { name: 'Previewed', permissions: ['ONLINE:READ_ANY'] } },
    },
    createApiKey: {
      graphql: `createApiKey(input: { name: "Made by GraphQL", overwrite: true, ${GRANTED} }) { key }`,
      get input() {
        return { input: newKey() };
      },
      library: (keys, by) => keys.create(newKey(), by),
      console: [{ form: 'keys/new', fields: { ...newKeyForm(), step: 'create' } }],
    },
    updateApiKey: {
      graphql: `updateApiKey(input: { id: "${id}", description: "x" }) { id }`,
      input: { id, change: { description: 'x' } },
      library: (keys, by) => keys.update(id, { description: 'x' }, by),
      console: [{ page: `keys/${id}/edit`, form: `keys/${id}/edit`, fields: { description: 'x' } }],
    },
    setApiKeyEnabled: {
      graphql: `setApiKeyEnabled(id: "${id}", enabled: false) { id }`,
      input: { id, enabled: false },
      library: async (keys, by) => [await keys.disable(id, by), await keys.enable(id, by)],
      console: [{ page: `keys/${id}/disable`, form: `keys/${id}/disable` }],
    },
    rotateApiKey: {
      graphql: `rotateApiKey(input: { id: "${id}" }) { key }`,
      input: { id, request: {} },
      library: (keys, by) => keys.rotate(id, {}, by),
      console: [{ page: `keys/${id}/rotation`, form: `keys/${id}/rotation` }],
    },
    activateApiKeyRotation: {
      graphql: `activateApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      console: [{ form: `keys/${id}/rotation/activate` }],
    },
    finishApiKeyRotation: {
      graphql: `finishApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      library: (keys, by) => keys.finishRotation(id, by),
      console: [{ form: `keys/${id}/rotation/finish` }],
    },
    rollBackApiKeyRotation: {
      graphql: `rollBackApiKeyRotation(id: "${id}") { id }`,
      input: { id },
      library: (keys, by) => keys.rollBackRotation(id, by),
      console: [{ form: `keys/${id}/rotation/roll-back` }],
    },
    deleteApiKeys: {
      graphql: `deleteApiKeys(ids: ["${id}"]) { deleted }`,
      input: { ids },
      library: (keys, by) => keys.delete(ids, by),
      console: [{ page: `keys/${id}/delete`, form: `keys/${id}/delete` }, selectedForm('DELETE')],
    },
    apiKeyChangePlan: {
      graphql: `apiKeyChangePlan(ids: ["${id}"], change: DISABLE) { total }`,
      input: { ids, request: { what: 'DISABLE' } },
      console: [`keys/selected?change=DISABLE&id=${id}`],
    },
    narrowApiKeys: {
      graphql: `narrowApiKeys(input: { ids: ["${id}"] }) { keys { id } }`,
      input: { ids, request: { what: 'DISABLE' } },
      console: [selectedForm('DISABLE'), selectedForm('EXPIRE')],
    },
    updateApiKeys: {
      graphql: `updateApiKeys(ids: ["${id}"], update: { description: "x" }) { keys { id } }`,
      input: { ids, request: { what: 'UPDATE', change: { description: 'x' } } },
    },
    containKey: {
      graphql: `containKey(input: { id: "${id}" }) { name }`,
      input: { key: id },
      console: [{ page: `keys/${id}/contain`, form: `keys/${id}/contain` }],
    },
    applyApiKeys: {
      graphql: `applyApiKeys(input: { keys: [{ name: "${newKey().name}", ${GRANTED} }] }) { created { key } }`,
      get input() {
        return { declared: [declaredKey()], rules: {} };
      },
    },
    auditLog: {
      graphql: 'auditLog(first: 1) { edges { node { number } } }',
      input: { request: { first: 1 } },
      console: ['audit-log'],
    },
    auditCounts: {
      graphql: 'auditCounts(since: "2029-12-31T00:00:00Z") { complete }',
      input: { request: { since: '2029-12-31T00:00:00Z', by: 'HOUR' } },
    },
    auditChain: { graphql: 'auditChain { verified: reason }', input: {} },
    attestReview: {
      graphql: `attestReview(input: { text: "Seen", sha256: "${sha256}", keys: 1 })`,
      input: { input: { text: 'Seen', sha256, keys: 1 } },
    },
    consentRequests: {
      graphql: 'consentRequests(first: 1) { requestId }',
      input: { first: 1 },
    },
    consentRequest: {
      graphql: `consentRequest(requestId: "${requestId}") { requestId }`,
      input: { place: { requestId } },
    },
    approveConsentRequest: {
      graphql: `approveConsentRequest(input: { userCode: "${userCode}" }) { requestId }`,
      input: { userCode, choice: {} },
      console: [
        {
          page: `../device?user_code=${userCode}`,
          form: 'device',
          fields: { decision: 'approve', scope: 'ONLINE:READ_ANY', expiry: '30d' },
          withoutKey: 400,
        },
      ],
    },
    denyConsentRequest: {
      graphql: `denyConsentRequest(requestId: "${requestId}") { requestId }`,
      input: { place: { userCode } },
      console: [{ page: 'requests', form: 'requests/refuse', fields: { request: requestId } }],
    },
    routes: { graphql: 'routes(first: 1) { total }', console: ['routes'] },
    explainRequest: {
      graphql: 'explainRequest(url: "https://example.org/") { outcome }',
      console: ['routes?url=https://example.org/'],
    },
    routeKeys: { graphql: 'routeKeys(route: 1, first: 1) { edges { node { id } } }', console: ['routes/1/keys'] },
    limits: { graphql: 'limits { failedCredentials }', console: ['limits'] },
    edges: { graphql: 'edges { edgeId }', input: {} },
  };
};

const ALL_PERMISSIONS = (() => {
  const { resources, actions } = createCatalog();
  return resources.flatMap((resource) => actions.map((action): Permission => `${resource}:${action}`));
})();

/** All permissions except this one and those that include it. */
function allBut(needed: Permission): Permission[] {
  return ALL_PERMISSIONS.filter((permission) => permission !== needed && permission !== needed.replace('_OWN', '_ANY'));
}

function outcomeOf(code: unknown): Outcome {
  if (code === undefined) return 'done';
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

/** A caller, with its secret and key if it has them. */
interface Caller {
  readonly secret: string | undefined;
  readonly principal: Principal | undefined;
}

/** The outcome in the console. A form is sent even if the page does not show it. */
async function triedInConsole(
  test: TestService,
  secret: string | undefined,
  way: string | ConsoleForm,
): Promise<Outcome> {
  const visitor = new Visitor(test.url);
  if (secret !== undefined) await visitor.signIn(secret);
  const { page, form, fields, unseen, withoutKey = 401 } = typeof way === 'string' ? { page: way } : way;
  const opened = page === undefined ? undefined : await visitor.open(page);
  const isShown = form !== undefined && new RegExp(`action="[^"]*${form}`).test(opened?.html ?? '');
  if (form !== undefined && !isShown) sendsUnseen(visitor, form);
  const shown = form === undefined ? opened! : await visitor.submit(form, isShown ? fields : { ...fields, ...unseen });
  if (shown.path.includes('sign-in')) return 'no key';
  const meant = new Map<number, Outcome>([
    [200, 'done'],
    [withoutKey, 'no key'],
    [403, 'refused'],
  ]);
  return meant.get(shown.status) ?? `other: ${shown.status} ${shown.text}`;
}

/** Adds a form to a page that did not show it. */
function sendsUnseen(visitor: Visitor, form: string): void {
  const html = `<form action="${form}" method="post"></form>`;
  visitor.page = { status: 200, headers: new Headers(), text: '', path: '', html };
}

/** The environment of a user without saved logins. */
const LOGGED_OUT = { HOME: '/nonexistent', XDG_DATA_HOME: '/nonexistent' };

/** The outcome of an operation at each door, each time on a new target. */
async function outcomes(
  test: TestService,
  library: OpenKeys,
  name: string,
  { secret, principal }: Caller,
  target: () => Promise<Target>,
): Promise<Record<string, Outcome>> {
  const operation = ALL[name]!;
  const found: Record<string, Outcome> = {};
  async function at(door: string, work: (doors: Doors) => Promise<Outcome>): Promise<void> {
    const doors = triesOn(await target())[name]!;
    const before = await lastEntry(test);
    const outcome = await work(doors);
    const isUnwritten = outcome === 'done' && operation.root === 'Mutation' && (await lastEntry(test)) === before;
    found[door] = isUnwritten ? 'other: nothing was written' : outcome;
  }

  await at('graphql', async ({ graphql }) => {
    const document = `${operation.root === 'Query' ? 'query' : 'mutation'} { ${graphql} }`;
    const { status, body } = await query(test.url, secret, document);
    if (status === 401) return 'no key';
    const outcome = outcomeOf(body.errors?.[0]?.extensions['code']);
    return outcome === 'done' && Object.values(body.data ?? {}).includes(null) ? 'other: null' : outcome;
  });

  const { library: call, console: ways = [] } = triesOn(await target())[name]!;
  const feature = FEATURES.find(({ operations = {} }) => name in operations);
  const isOnServer = feature
    ? name in ((await feature.remote?.()) ?? {})
    : name in serverClient({ server: '', key: '' });
  if (isOnServer)
    await at('server', ({ input }) =>
      tried(async () => {
        const env = { ...LOGGED_OUT, ...(secret !== undefined && { SVC_API_KEY: secret }) };
        const client = serverClient((await serverTarget({ server: test.url }, env, 'login'))!);
        const door: object = feature ? client.of(feature as Required<OwnFeature>) : client;
        return (door as Readonly<Record<string, (given: unknown) => unknown>>)[name]!(input);
      }),
    );

  if (isOnKeys(operation) && principal)
    await at('table', ({ input }) => tried(() => perform(operation, test.keys, input!, principal)));

  if (call && secret !== undefined)
    await at('library', async (doors) => {
      const checked = await library.check({ secret });
      return checked.ok ? tried(() => doors.library!(library, { actor: checked.principal })) : 'no key';
    });

  for (const [index] of ways.entries())
    await at(`console ${index}`, (doors) => triedInConsole(test, secret, doors.console![index]!));
  return found;
}

/** The number of the last change. Refused requests are recorded later. */
async function lastEntry({ keys }: TestService): Promise<number | undefined> {
  return (await keys.audit.read({ first: 1, outcome: 'DONE' }, OPERATOR))[0]?.number;
}

describeOn('sqlite', 'each operation, at each door', () => {
  let test: TestService;
  let library: OpenKeys;
  const callers = new Map<string, Caller>();
  let asked: Omit<Target, 'key'> | undefined;

  /** A key with these permissions. If `narrowed`, its parent had all of them when it created the key, and lost some. */
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
    const file = configFile('routes: [{ host: "*", path: /, allow: key }]\n');
    const config = await loadConfig({ file });
    test = await startConsoleService({ consent: 'both', app: { config, failedCredentials: false } });
    library = await openKeys({ database: test.database });
  });

  after(async () => {
    await library.close();
    await test.stop();
  });

  for (const [name, operation] of Object.entries(ALL)) {
    const { needs }: Operation = operation;

    const target = async (): Promise<Target> => {
      const { apiKey } = await test.keys.create(newKey(), OPERATOR);
      const isRotated = name.endsWith('ApiKeyRotation');
      const key = isRotated
        ? (await test.keys.rotate(apiKey.id, { activate: 'ON_FIRST_USE' }, OPERATOR)).after
        : apiKey;
      if (!asked || name.includes('Consent')) {
        const consent = test.keys.feature(Consent);
        const { request, handle } = await consent.ask({ client: APP, roles: [], permissions: ['ONLINE:READ_ANY'] });
        asked = { request: await consent.findListed(request.id, OPERATOR), userCode: handle };
      }
      return { key, ...asked };
    };

    /** Asserts that all doors give the expected outcome, and that a refused operation changes nothing. */
    async function assertAll(caller: Caller, expected: Outcome): Promise<void> {
      const one = await target();
      const before = await lastEntry(test);
      const found = await outcomes(test, library, name, caller, expected === 'done' ? target : async () => one);
      if (expected !== 'done') {
        assert.equal(await lastEntry(test), before);
        assert.deepEqual(await test.keys.findById(one.key.id, OPERATOR), one.key);
        assert.deepEqual(await test.keys.feature(Consent).findListed(one.request.id, OPERATOR), one.request);
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
      const { input } = triesOn(await target())[name]!;
      if (isOnKeys(operation)) await perform(operation, test.keys, input!, OPERATOR);
      await triesOn(await target())[name]!.library?.(library, { actor: OPERATOR });
    });
  }

  it('shows visitors their own key by me or by apiKey, and no other visitor', async () => {
    const shown = async (permissions: Permission[]) =>
      triedInConsole(test, (await callerWith(permissions)).secret, 'me');
    assert.equal(await shown(['ME:READ_OWN']), 'done');
    assert.equal(await shown(['API_KEY:READ_OWN']), 'done');
    assert.equal(await shown(allBut('ME:READ_OWN').filter((one) => !one.startsWith('API_KEY:READ'))), 'refused');
  });

  it('is tried, with an input if it is one on keys', () => {
    const tries = triesOn({ key: {}, request: {}, userCode: '' } as Target);
    assert.deepEqual(Object.keys(tries).toSorted(), Object.keys(ALL).toSorted());
    const without = Object.entries(ALL).filter(([name, operation]) => isOnKeys(operation) && !tries[name]?.input);
    assert.deepEqual(without, []);
  });
});
