import assert from 'node:assert/strict';
import { parseConfig } from '../../../src/config/load-config.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { cpuTime } from '../../support/cpu.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import type { TestService } from '../../support/server.ts';

const ROUTES = `
limits: { default: [600/m], failedCredentials: 5/m }
routes:
  - { host: "*", path: /api/**, methods: [GET], allow: DOCKER:READ_ANY }
  - { host: "*", path: /api/**, methods: [POST], allow: DOCKER:UPDATE_ANY }
  - { host: "*", path: /open, allow: open }
`;

describe('what the console shows of the service', () => {
  let test: TestService;
  let visitor: Visitor;
  before(async () => {
    const config = await parseConfig({ path: 'svc-api.yaml', text: ROUTES });
    test = await startConsoleService({ defaultLimits: config.limits.default, app: { config } });
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
    await test.keys.create({ name: 'Deploy', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
  });
  after(() => test.stop());

  it('is the routes in their order, with their lines', async () => {
    const { text } = await visitor.open('routes');
    assert.match(
      text,
      /1 line 4 GET \/api\/\*\* DOCKER:READ_ANY Keys that can use route 1 2 line 5 POST \/api\/\*\* DOCKER:UPDATE_ANY Keys .* 3 line 6 all methods \/open no key Everyone/,
    );
  });

  it('is which route decides about a request, and why', async () => {
    await visitor.open('routes');
    const asked = await visitor.submit('routes', { url: 'https://a.example.org/api/x', method: 'POST', key: 'Deploy' });
    assert.match(asked.text, /403 Forbidden POST https:\/\/a\.example\.org\/api\/x with the key Deploy/);
    assert.match(asked.text, /The key lacks DOCKER:UPDATE_ANY/);
    assert.match(asked.text, /Decided by route 2: POST \/api\/\*\* requires DOCKER:UPDATE_ANY\./);
    assert.match(
      (await visitor.submit('routes', { key: '', method: 'GET' })).text,
      /401 Unauthorized: a valid key is required/,
    );
    assert.match((await visitor.submit('routes', { key: 'Deploy' })).text, /Allowed/);
  });

  it('is what a key can reach, and which keys a route accepts', async () => {
    await visitor.open('routes');
    const { text } = await visitor.submit('routes', { key: 'Deploy' });
    assert.match(text, /1 line 4 GET \/api\/\*\* DOCKER:READ_ANY Allowed Keys/);
    assert.match(text, /2 line 5 POST \/api\/\*\* DOCKER:UPDATE_ANY No access lacks DOCKER:UPDATE_ANY Keys/);
    const passing = await visitor.open('routes/1/keys');
    assert.match(passing.text, /Keys that can use route 1 GET \/api\/\*\* requires DOCKER:READ_ANY/);
    assert.match(passing.text, /Deploy DOCKER:READ_ANY never/);
    assert.doesNotMatch((await visitor.open('routes/2/keys')).text, /Deploy DOCKER/);
    for (const number of ['0', '4', '-1', 'x', '1e3']) {
      const missing = await visitor.open(`routes/${number}/keys`);
      assert.deepEqual([missing.status, /This route does not exist/.test(missing.text)], [404, true], number);
    }
    const { visitor: config } = await visitorWith(test, { name: 'Only routes', permissions: ['CONFIG:READ_ANY'] });
    assert.doesNotMatch((await config.open('routes')).html, /routes\/1\/keys/);
    assert.equal((await config.open('routes/1/keys')).status, 403);
  });

  it('is the error of a question, with the question', async () => {
    await visitor.open('routes');
    for (const [given, problem] of [
      [{ url: 'x' }, /URL/],
      [{ url: 'https://a.example.org/', key: 'Nobody' }, /Nobody/],
      [{ url: `https://a.example.org/${'x'.repeat(7000)}%`, key: '' }, /./],
    ] as const) {
      const page = await visitor.submit('routes', given);
      assert.match(page.text, problem);
      assert.match(page.text, /1 line 4/);
    }
  });

  it('is the limits of keys, addresses and requests', async () => {
    const { text } = await visitor.open('limits');
    assert.match(text, /Default limits 600\/m requests/);
    assert.match(text, /Invalid keys from one address 5\/m/);
    assert.match(text, /Query cost 30,000/);
  });

  it('is how the store and the program are', async () => {
    const { text } = await visitor.open('health');
    assert.match(text, /Key store, SQLite answers in \d+\.\d ms Change notifications instant/);
    assert.match(text, /Runs on Node\.js v\d+/);
  });

  it('says what to do where there are no routes', async () => {
    const bare = await startConsoleService();
    const { visitor: other } = await visitorWith(bare, { name: 'Ada', roles: ['ADMIN'] });
    assert.match((await other.open('routes')).text, /There is no svc-api\.yaml\. Declare routes in it/);
    await bare.stop();
  });

  it('is shown to keys that may read it', async () => {
    const { visitor: other } = await visitorWith(test, { name: 'Docker', permissions: ['API_KEY:READ_OWN'] });
    for (const [path, missing] of [
      ['routes', 'CONFIG:READ_ANY'],
      ['limits', 'CONFIG:READ_ANY'],
      ['health', 'INFO:READ_ANY'],
    ] as const) {
      const { status, text } = await other.open(path);
      assert.equal(status, 403);
      assert.ok(text.includes(`This key lacks ${missing}.`), text);
    }
    const { visitor: config } = await visitorWith(test, { name: 'Config', permissions: ['CONFIG:READ_ANY'] });
    assert.doesNotMatch((await config.open('routes')).html, /name="key"/);
  });
});

describe('what the console shows of a service with 10,000 routes', () => {
  it('is a page of them at a time, in little more time than where there are 200', async () => {
    const few = await timesOfPages(200);
    const many = await timesOfPages(10_000);
    for (const [path, time] of many) assert.ok(time < 20 * few.get(path)!, `${path}: ${time} and ${few.get(path)} ms`);
  });

  /** The processor time of each page in milliseconds, the minimum of several. */
  async function timesOfPages(count: number): Promise<Map<string, number>> {
    const routes = Array.from(
      { length: count },
      (_, index) => `  - { host: "*", path: /team${index % 100}/service${index}/**, allow: DOCKER:READ_ANY }`,
    );
    const text = `routes:\n${routes.join('\n')}\n`;
    const config = await parseConfig({ path: 'svc-api.yaml', text });
    const test = await startConsoleService({ app: { config } });
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const least = new Map<string, number>();
    for (let round = 0; round < 3; round += 1)
      for (const path of ['routes', 'routes?url=https://a.example.org/team3/service103/x', 'next']) {
        if (path === 'next') await visitor.open('routes');
        const next = /href="[^"]*\/(routes\?after=[^"]*)"/.exec(visitor.page!.html)?.[1];
        const before = cpuTime();
        const { status, html } = await visitor.open(path === 'next' ? next! : path);
        least.set(path, Math.min(cpuTime() - before, least.get(path) ?? Infinity));
        assert.equal(status, 200, path);
        assert.ok(html.split('<tr').length < 130 && html.length < 200_000, `${html.length} characters`);
      }
    await test.stop();
    return least;
  }
});
