import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { createApp } from '../../src/index.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { collectingLog } from '../support/log.ts';
import { tempStore } from '../support/temp.ts';

interface Body {
  data?: Record<string, unknown>;
  errors?: { message: string; path: string[]; extensions: { code: string; requestId: string } }[];
}

describe('a store that fails behind the bearer check', () => {
  let keys: OpenKeys;
  let secret: string;
  const { log, lines } = collectingLog();

  beforeEach(async () => {
    keys = await openKeys({ database: tempStore(), lockWaitMs: 50 });
    ({ key: secret } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, 'operator'));
    lines.length = 0;
  });
  afterEach(() => keys.close());

  async function ask(document: string, extension?: () => Promise<unknown>) {
    const typeDefs = 'extend type Query { host: String @requires(resource: ME, action: READ_OWN) }';
    const extensions = extension ? [{ typeDefs, resolvers: { Query: { host: extension } } }] : [];
    const app = await createApp({ keys, extensions, log });
    const response = await app.request('/graphql', {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: document }),
    });
    return { status: response.status, text: await response.text() };
  }

  function check({ status, text }: { status: number; text: string }, path: string[], logged: RegExp) {
    const { data, errors } = JSON.parse(text) as Body;
    assert.equal(status, 200);
    const { requestId } = errors![0]!.extensions;
    assert.deepEqual(
      [errors![0]!.message, errors![0]!.path, errors![0]!.extensions],
      [
        'The key store does not answer at the moment. Try again later.',
        path,
        { code: 'SERVICE_UNAVAILABLE', requestId },
      ],
    );
    assert.doesNotMatch(text, /sqlite|\/tmp|locked/i);
    const line = lines.find(({ fields }) => 'requestId' in fields && fields.requestId === requestId);
    assert.equal(line?.level, 'error');
    assert.match(String((line.fields as { err: Error }).err), logged);
    return data;
  }

  it('is reported to the client without its path while another process holds its lock, and logged with it', async () => {
    const other = new Database(keys.location);
    other.exec('begin immediate');
    const create = 'mutation { createApiKey(input: { name: "New", roles: [GUEST] }) { key } }';
    const data = check(await ask(create), ['createApiKey'], new RegExp(`The key store ${keys.location} is locked`));
    assert.deepEqual(data, { createApiKey: null });
    other.exec('rollback');
    other.close();
    assert.match((await ask(create)).text, /"key":"svc_/);
  });

  it('leaves the answers of other fields when it goes away in between', async () => {
    const reply = await ask('{ host online }', async () => {
      renameSync(keys.location, `${keys.location}.away`);
      // The last check of the file is trusted for a moment.
      for (;;) {
        await yieldToEventLoop();
        await keys.list({}, 'operator');
      }
    });
    renameSync(`${keys.location}.away`, keys.location);
    assert.deepEqual(check(reply, ['host'], new RegExp(`The key store ${keys.location} does not exist`)), {
      host: null,
      online: true,
    });
  });
});
