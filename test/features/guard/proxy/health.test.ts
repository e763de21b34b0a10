import assert from 'node:assert/strict';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';

const healthPath = '/guard/health';

describe('the health path of the guard', () => {
  let service: GuardedService;
  const arrived: (string | undefined)[] = [];
  before(async () => {
    service = await startGuarded(
      ({ url }, outgoing) => {
        arrived.push(url);
        outgoing.end('service');
      },
      { healthPath },
    );
  });
  after(() => service.stop());
  beforeEach(() => {
    arrived.length = 0;
  });

  const answerOf = async (url: string) => {
    const reply = await fetch(url);
    return [reply.status, await reply.text()] as const;
  };

  it('is answered without a key, and the service gets nothing of it', async () => {
    assert.deepEqual(await answerOf(service.url + healthPath), [200, '{"status":"ok"}']);
    assert.deepEqual(arrived, []);
  });

  it('is answered without a Host by HTTP/1.0, as some load balancers ask, and nothing else is', async () => {
    for (const [line, status] of [
      [`OPTIONS ${healthPath} HTTP/1.0`, 200],
      [`GET ${healthPath} HTTP/1.0`, 200],
      [`GET ${healthPath} HTTP/1.1`, 400],
      [`GET ${healthPath}/ HTTP/1.0`, 400],
      [`GET http://x#${healthPath} HTTP/1.0`, 400],
    ] as const) {
      const raw = connectRaw(service.url);
      raw.request(line);
      await raw.receives(new RegExp(`^HTTP/1\\.1 ${status} [^]*\\}$`));
      raw.socket.destroy();
    }
    const url = await service.beside({ healthPath: undefined });
    const raw = connectRaw(url);
    raw.request(`GET ${healthPath} HTTP/1.0`);
    await raw.receives(/^HTTP\/1\.1 400 /);
    raw.socket.destroy();
  });

  it('reports that the store does not answer', async () => {
    const { keys } = service;
    const { authenticator, catalog, clock, limiter } = keys;
    const store = { check: () => Promise.reject(new Error()) };
    const failing = { authenticator, catalog, clock, limiter, feature: keys.feature.bind(keys), store };
    const url = await service.beside({ keys: failing });
    assert.equal((await answerOf(url + healthPath))[0], 503);
  });

  it('is only that path', async () => {
    for (const path of ['/guard', `${healthPath}/`, `${healthPath}?a`, '/Guard/health'])
      assert.equal((await answerOf(service.url + path))[0], 401, path);
  });

  it('does not exist by default', async () => {
    const url = await service.beside({ healthPath: undefined });
    assert.equal((await answerOf(url + healthPath))[0], 401);
    const reply = await fetch(url + healthPath, { headers: { authorization: `Bearer ${service.secret}` } });
    assert.equal(await reply.text(), 'service');
  });
});
