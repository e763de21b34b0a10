import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import type { CreateAppOptions } from '../../src/service/create-app.ts';
import { createApp } from '../../src/index.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOn, describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { startProxy } from '../support/proxy.ts';
import { startConfiguredService } from '../support/configured-service.ts';
import { query, startTestService } from '../support/server.ts';
import { changeDirectly, unlockAuditLog } from '../support/direct.ts';
import { migratedStore, tempStore } from '../support/temp.ts';
import { until } from '../support/until.ts';

const LIMITS = `{ limits { defaultKeyLimits failedCredentials request {
  cost nodes characters timeMs errors pageSize tokens nameLength nesting depth fields aliases directives fragments expandedNesting repeatedPairs
} } }`;
const HEALTH = '{ health { storeKind storeAnswers answeredInMs hearsChanges searchIndex clockBehind } }';

type Fields = Record<string, unknown>;

describe('limits, over GraphQL', () => {
  const limitsOf = async (yaml: string, app: Parameters<typeof startConfiguredService>[1] = {}) => {
    const test = await startConfiguredService(yaml, app);
    const { secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    const { body } = await query(test.url, secret, LIMITS);
    await test.stop();
    assert.equal(body.errors, undefined);
    return body.data!['limits'] as Fields & { request: Fields };
  };

  it('are those of the configuration, and the cost limits of a request', async () => {
    const limits = await limitsOf('limits: { default: [5/month, 100 / m], failedCredentials: 7/m }\n');
    assert.deepEqual(limits, {
      defaultKeyLimits: ['100/m', '5/month'],
      failedCredentials: '7/m',
      request: {
        cost: 30_000,
        nodes: 60_000,
        characters: 4_000_000,
        timeMs: 10_000,
        errors: 1000,
        pageSize: 500,
        tokens: 5000,
        nameLength: 256,
        nesting: 100,
        depth: 20,
        fields: 1000,
        aliases: 100,
        directives: 100,
        fragments: 100,
        expandedNesting: 200,
        repeatedPairs: 2500,
      },
    });
  });

  it('are those that a library user sets, or none', async () => {
    const limits = { cost: 1e12, nodes: Infinity, timeMs: 500 };
    const { failedCredentials, request } = await limitsOf('limits: { failedCredentials: 7/m }\n', {
      failedCredentials: false,
      limits,
    });
    assert.equal(failedCredentials, null);
    const { cost, nodes, characters, timeMs } = request;
    assert.deepEqual([cost, nodes, characters, timeMs], [1e12, null, 4_000_000, 500]);
  });

  it('are the default ones without a configuration', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    const { body } = await query(test.url, secret, '{ limits { defaultKeyLimits failedCredentials } }');
    await test.stop();
    assert.deepEqual(body, { data: { limits: { defaultKeyLimits: [], failedCredentials: '20/m' } } });
  });

  it('require CONFIG:READ_ANY, and the health INFO:READ_ANY', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    const { body } = await query(test.url, secret, '{ limits { failedCredentials } health { storeAnswers } }');
    await test.stop();
    assert.deepEqual(body.data, { limits: null, health: null });
    assert.deepEqual(
      body.errors!.map(({ extensions }) => extensions['missing']),
      [['CONFIG:READ_ANY'], ['INFO:READ_ANY']],
    );
  });
});

/** Sends a request to an app of the library, without a server. */
async function askApp(options: CreateAppOptions, secret: string, document: string) {
  const app = await createApp(options);
  const response = await app.request('/graphql', {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: document }),
  });
  return (await response.json()) as { data: Record<string, Fields>; errors?: unknown };
}

describeOnEach('the health of a service, over GraphQL', (dialect) => {
  let keys: OpenKeys;
  let secret: string;
  beforeEach(async () => {
    keys = await openKeys({ database: await migratedStore() });
    ({ key: secret } = await keys.create({ name: 'Viewer', roles: ['VIEWER'] }, OPERATOR));
  });
  afterEach(() => keys.close());

  it('reports that the store answers, and its kind, but not its location', async () => {
    const ask = async () => (await askApp({ keys }, secret, HEALTH)).data['health']!;
    // On PostgreSQL, notifications start with the first request.
    await until(async () => (await ask())['hearsChanges'] === true);
    const { answeredInMs, ...health } = await ask();
    assert.ok(Number(answeredInMs) > 0, `${String(answeredInMs)} ms`);
    assert.deepEqual(health, {
      storeKind: dialect === 'sqlite' ? 'SQLITE' : 'POSTGRESQL',
      storeAnswers: true,
      hearsChanges: true,
      searchIndex: true,
      clockBehind: 0,
    });
  });

  it('says by how much the clock is behind the audit log', async () => {
    await unlockAuditLog(keys.location);
    const behindOf = async (aheadMs: number) => {
      await changeDirectly(keys.location, `update audit_log set at = ${Date.now() + aheadMs}`);
      const { data } = await askApp({ keys }, secret, HEALTH);
      return Number(data['health']!['clockBehind']);
    };
    // Up to a minute is ignored.
    assert.equal(await behindOf(50_000), 0);
    const behind = await behindOf(3_600_000);
    assert.ok(behind > 3500 && behind <= 3600, `${behind} s`);
  });
});

describe('the health of a service, over GraphQL,', () => {
  it('says that a file does not answer that is not there, and is no error', async () => {
    const keys = await openKeys({ database: tempStore() });
    const { key: secret } = await keys.create({ name: 'Viewer', roles: ['VIEWER', 'GUEST'] }, OPERATOR);
    const typeDefs = 'extend type Query { away: Boolean @requires(resource: ME, action: READ_OWN) @cost(weight: 2) }';
    const away = async () => {
      renameSync(keys.location, `${keys.location}.away`);
      await until(() =>
        keys.store.check().then(
          () => false,
          () => true,
        ),
      );
      return true;
    };
    const extensions = [{ typeDefs, resolvers: { Query: { away } } }];
    const body = await askApp({ keys, extensions }, secret, HEALTH.replace('{', '{ away '));
    renameSync(`${keys.location}.away`, keys.location);
    await keys.close();
    assert.deepEqual(body, {
      data: {
        away: true,
        health: {
          storeKind: 'SQLITE',
          storeAnswers: false,
          answeredInMs: null,
          hearsChanges: false,
          searchIndex: null,
          clockBehind: 0,
        },
      },
    });
  });
});

describeOn('postgres', 'the health of a service, over GraphQL,', () => {
  it('says that a server does not answer that keeps silent, without waiting for it long', async () => {
    const direct = new URL(await migratedStore());
    const proxy = await startProxy(Number(direct.port));
    const database = Object.assign(new URL(direct), { port: String(proxy.port) }).href;
    let endWait = () => {};
    const schedule = (work: () => void, delayMs: number) => void (delayMs === 2000 && (endWait = work));
    const test = await startTestService({ database, schedule });
    const { secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    const ask = async () => (await query(test.url, secret, HEALTH)).body;
    await until(async () => (await ask()).data!['health']!['hearsChanges' as never] === true);
    // From now on, the key is cached.
    await ask();
    endWait = () => {};
    proxy.block();
    const asked = ask();
    let isAnswered = false;
    void asked.then(() => (isAnswered = true));
    await until(() => {
      endWait();
      return isAnswered;
    });
    const { data, errors } = await asked;
    proxy.unblock();
    await test.stop();
    proxy.close();
    assert.equal(errors, undefined);
    const { storeKind, storeAnswers, answeredInMs, searchIndex } = data!['health'] as Fields;
    assert.deepEqual([storeKind, storeAnswers, answeredInMs, searchIndex], ['POSTGRESQL', false, null, null]);
  });
});
