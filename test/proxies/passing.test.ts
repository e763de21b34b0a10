import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent } from 'node:https';
import { until } from '../support/until.ts';
import { ask, askByHttp2, askForWebSocket, begin, CLIENT } from '../support/proxies/client.ts';
import { CONFIGURATIONS, SITE } from '../support/proxies/configurations.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';
import { end, startGuardedSite } from '../support/proxies/guarded-site.ts';
import { PIECE, valuesOf } from '../support/proxies/service.ts';
import { needsPrograms } from '../support/skip.ts';

type Header = [name: string, value: string];

/** The number of pieces in 60 MB. */
const PIECES = Math.ceil((60 * 1024 * 1024) / PIECE.length);

describeEachProxy('a service', {}, (site, { program, resource, by }) => {
  let [reader, editor] = [] as unknown as [Header, Header];
  before(async () => {
    [reader, editor] = [await site().reader(), await site().editor()];
  });
  const send = (sent: Parameters<typeof ask>[1] = {}, key = reader) =>
    ask(site().port, { ...sent, headers: [key, ...(sent.headers ?? [])] });

  it('learns which key makes a request, and gets all of it but the key', async () => {
    const { key, id } = await site().create({ name: 'Läufer 7', roles: ['GUEST'], permissions: [site().may('READ')] });
    const secret = ['Authorization', `Bearer ${key}`] as Header;
    const path = '/api/dashboards/7?from=now-1h&to=%20';
    const { status, got } = await send({ path, headers: [['X-Custom', 'kept']] }, secret);
    assert.equal(status, 200);
    assert.deepEqual([got!.method, got!.url], ['GET', path]);
    const identity = ['x-auth-key-id', 'x-auth-key-name', 'x-auth-roles', 'x-auth-permission'];
    assert.deepEqual(
      identity.map((name) => valuesOf(got!, name)),
      [[id], ['L%C3%A4ufer%207'], ['GUEST'], [site().may('READ')]],
    );
    assert.deepEqual(valuesOf(got!, 'host'), [SITE]);
    assert.deepEqual(valuesOf(got!, 'x-custom'), ['kept']);
    assert.deepEqual(valuesOf(got!, 'x-forwarded-proto'), ['https']);
    assert.ok(!JSON.stringify(got).includes(key));
  });

  it('gets the client, the host and the scheme from the proxy, whatever the client sends', async () => {
    const forged = [
      ['X-Forwarded-For', '10.1.2.3'],
      ['X-Real-IP', '10.1.2.3'],
      ['CF-Connecting-IP', '10.1.2.3'],
      ['True-Client-IP', '10.1.2.3'],
      ['X-Client-IP', '10.1.2.3'],
      ['X_Forwarded_For', '10.1.2.3'],
      ['X-Real_IP', '10.1.2.3'],
      ['X_Forwarded_Host', 'admin.forged.example'],
      ['X_Host', 'admin.forged.example'],
      ['Forwarded', 'for=10.1.2.3;host=admin.forged.example;proto=http'],
      ['X-Forwarded-Host', 'admin.forged.example'],
      ['X-Host', 'admin.forged.example'],
      ['X-Forwarded-Server', 'admin.forged.example'],
      ['X-Forwarded-Proto', 'http'],
      ['X-Forwarded-Port', '4711'],
      ['X-Forwarded-Prefix', '/forged'],
      ['X-Forwarded-Uri', '/forged'],
      ['X-Forwarded-Method', 'FORGED'],
    ] as const;
    for (const headers of [forged, forged.map(([name, value]) => [name.toUpperCase(), value] as const)]) {
      const { status, got } = await send({ headers });
      assert.equal(status, 200);
      const untrue = got!.headers.filter(([, value]) => /forged|10\.1\.2\.3|4711/i.test(value));
      assert.deepEqual(untrue, []);
      assert.deepEqual(valuesOf(got!, 'host'), [SITE]);
      assert.deepEqual(valuesOf(got!, 'x-forwarded-host'), [SITE]);
      assert.deepEqual(valuesOf(got!, 'x-forwarded-proto'), ['https']);
      // Apache's address is last, because the guard appends it.
      assert.match(valuesOf(got!, 'x-forwarded-for').join(), new RegExp(`^${CLIENT}(, 127\\.0\\.0\\.1)?$`));
    }
  });

  it('gets paths byte by byte, where they do not decide', async () => {
    for (const path of [
      '/@acme%2Ftool',
      '/projects/a%2Fb',
      '/projects/a%2fb/x',
      '/a//b',
      '/a;b=c/d;e',
      '/a%20b/%C3%A9',
    ])
      assert.deepEqual([path, (await send({ path })).got?.url], [path, path]);
  });

  it('gets all cookies except those of the console', async () => {
    for (const [sent, got] of [
      ['a=1; b=2', 'a=1; b=2'],
      ['svc_api_session=secret; a=1; b=2', 'a=1; b=2'],
      ['a=1; __Host-svc_api_session=secret; b=2', 'a=1; b=2'],
      ['a=1; b=2; __Host-svc_api_session=secret', 'a=1; b=2'],
      ['a=1; svc_api_session=secret; __Host-svc_api_session=secret; svc_api_form_7=secret; b=2', 'a=1; b=2'],
      ['svc_api_session=secret; a=1; __Host-svc_api_session_lax=secret; b=2', 'a=1; b=2'],
      ['xsvc_api_session=1; a=svc-api', 'xsvc_api_session=1; a=svc-api'],
      ['__Host-svc_api_session=secret', ''],
    ] as const) {
      const answer = await send({ headers: [['Cookie', sent]] });
      const cookies = valuesOf(answer.got!, 'cookie').join('; ').replace(/; ?$/, '');
      assert.deepEqual([sent, answer.status, cookies], [sent, 200, got]);
    }
    const apart = await send({
      headers: [['Cookie', 'svc_api_a=secret; a=1; svc_api_b=secret; b=2; svc_api_c=secret']],
    });
    assert.ok(!JSON.stringify(apart.got).includes('secret'));
    const twice = await send({
      headers: [
        ['Cookie', 'a=1'],
        ['Cookie', 'svc_api_session=secret'],
      ],
    });
    // Apache merges them into one cookie, which browsers never send.
    if (program !== 'apache2') assert.ok(!JSON.stringify(twice.got ?? {}).includes('secret'));
  });

  // The guard accepts no header that long.
  if (by !== 'guard' || program !== 'nginx')
    it('gets more cookies than svc-api would take', async () => {
      const cookies = ['a', 'b', 'c'].map((name): Header => ['Cookie', `${name}=${'x'.repeat(7000)}`]);
      const { status, got } = await send({ headers: cookies });
      // These proxies refuse such a request themselves.
      if (program === 'haproxy' || program === 'apache2') assert.equal(status, 400);
      else assert.deepEqual([status, valuesOf(got!, 'cookie').join('; ').length], [200, 3 * 7002 + 2 * '; '.length]);
    });

  it('gets bodies whole', async () => {
    const body = 'body '.repeat(200_000);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, got } = await send({ method, path: '/api/import', body }, editor);
      assert.deepEqual([status, got!.method, got!.body === body], [200, method, true]);
    }
  });

  it('gets 60 MB while they are sent', async () => {
    for (const header of [
      ['Content-Length', String(PIECES * PIECE.length)] as const,
      ['Transfer-Encoding', 'chunked'] as const,
    ]) {
      const sent = begin(site().port, { method: 'POST', path: '/upload', headers: [editor, header] });
      const digest = createHash('sha256');
      for (let piece = 0; piece < PIECES; piece += 1) {
        digest.update(PIECE);
        if (!sent.write(PIECE)) await once(sent, 'drain');
        // The first ones must arrive before the rest is sent.
        if (piece === 8) await until(() => site().service.uploaded() > 0);
      }
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      assert.equal(Buffer.concat(await response.toArray()).toString(), digest.digest('hex'));
    }
  });

  it('sends 60 MB', async () => {
    const sent = begin(site().port, { path: `/download?${PIECES}`, headers: [reader] }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const [got, expected] = [createHash('sha256'), createHash('sha256')];
    for await (const chunk of response as AsyncIterable<Buffer>) got.update(chunk);
    for (let piece = 0; piece < PIECES; piece += 1) expected.update(PIECE);
    assert.equal(got.digest('hex'), expected.digest('hex'));
  });

  it('sends events one by one', async () => {
    const sent = begin(site().port, { path: '/events', headers: [reader, ['Accept', 'text/event-stream']] }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let received = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
    let expected = '';
    for (let event = 1; event <= 5; event += 1) {
      site().service.sendEvent(`event ${event}`);
      expected += `data: event ${event}\n\n`;
      await until(() => received === expected);
    }
    const ended = once(response, 'end');
    site().service.endEvents();
    await ended;
  });

  it('is reached by HTTP/2', async () => {
    const { status, got } = await askByHttp2(site().port, { path: '/api/x?y', headers: [reader] });
    assert.deepEqual([status, got!.url, valuesOf(got!, 'host')], [200, '/api/x?y', [SITE]]);
    assert.deepEqual(valuesOf(got!, 'x-auth-permission'), [`${resource}:READ_ANY`]);
    const posted = await askByHttp2(site().port, { method: 'POST', path: '/api/x', headers: [editor], body: 'é' });
    assert.deepEqual([posted.status, posted.got!.body], [200, 'é']);
    assert.equal((await askByHttp2(site().port, { path: '/api/x' })).status, 401);
    const cookie = ['Cookie', 'a=1; __Host-svc_api_session=secret; b=2'] as const;
    const other = await askByHttp2(site().port, { headers: [reader, cookie] });
    assert.match(valuesOf(other.got!, 'cookie').join('; '), /^a=1; b=2(; ?)?$/);
  });

  it('talks by WebSocket, once the key was checked, until it ends that', async () => {
    const [socket, greeting] = await askForWebSocket(site().port, [reader.join(': '), 'X-Auth-Key-Id: forged']);
    assert.match(greeting, /^HTTP\/1\.1 101 /);
    assert.ok(greeting.includes(`["x-auth-permission","${resource}:READ_ANY"]`), greeting);
    assert.ok(!greeting.includes('forged'));
    for (const message of ['ping\n', 'pong\n']) {
      socket.write(message);
      assert.deepEqual(await once(socket, 'data'), [message]);
    }
    const ended = once(socket, 'end');
    socket.write('bye\n');
    await ended;
    socket.destroy();
    const [refused, answer] = await askForWebSocket(site().port, []);
    assert.match(answer, /^HTTP\/1\.1 401 /);
    refused.destroy();
  });

  it('gets many requests of many keys on few connections, each under its own name', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const names = Array.from({ length: 8 }, (_, index) => `Many ${index}`);
    const keys = await Promise.all(names.map((name) => site().keyWith({ name, permissions: [site().may('READ')] })));
    const before = site().service.connections();
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const { status, got } = await send({ path: `/${index}`, agent }, keys[index % 8]);
        return [status, got?.url, got && valuesOf(got, 'x-auth-key-name')];
      }),
    );
    assert.deepEqual(
      answers,
      answers.map((_, index) => [200, `/${index}`, [`Many%20${index % 8}`]]),
    );
    assert.ok(site().service.connections() - before <= 50, `${site().service.connections() - before} connections`);
    agent.destroy();
  });
});

describe('events behind Apache', () => {
  it('may be silent for longer than it waits for anything else', async function () {
    needsPrograms(this, 'apache2');
    const configuration = CONFIGURATIONS.find(({ program }) => program === 'apache2')!;
    const site = await startGuardedSite(configuration);
    const reader = await site.reader();
    const path = '/events?%2F%20=%3F';
    const open = async (...accept: Header[]) => {
      const sent = begin(site.port, { path, headers: [reader, ...accept] }).end();
      return ((await once(sent, 'response')) as [IncomingMessage])[0];
    };
    const events = await open(['Accept', 'text/event-stream']);
    const others = await open();
    await once(others, 'error');
    const received = once(events.setEncoding('utf8'), 'data');
    site.service.sendEvent('late');
    assert.deepEqual(await received, ['data: late\n\n']);
    for (const target of ['/@a%2Fb/c;d//e?f=%2F&%3F', '/é'.replace('é', '%C3%A9')]) {
      const { got } = await ask(site.port, { path: target, headers: [reader, ['Accept', 'text/event-stream']] });
      assert.equal(got?.url, target);
    }
    await end(site.svcApi, 'SIGKILL');
    const { status } = await ask(site.port, { path, headers: [reader, ['Accept', 'text/event-stream']] });
    assert.equal(status, 503);
    await site.stop();
  });
});

describe("Caddy's directives", () => {
  it('would be in another order without the route of the example', async function () {
    needsPrograms(this, 'caddy');
    const configuration = CONFIGURATIONS.find(({ title }) => title === 'examples/caddy')!;
    const site = await startGuardedSite(configuration, { edits: { '\troute {': '\thandle {' } });
    const { got } = await ask(site.port, { headers: [await site.reader()] });
    assert.deepEqual(valuesOf(got!, 'x-auth-key-id'), []);
    await site.stop();
  });
});

/** 5 KB in total: more than nginx's default buffer for response headers. */
const ROLES = Array.from({ length: 100 }, (_, index) => `ROLE_${'X'.repeat(40)}_${index}`);

describeEachProxy('a service whose keys have many roles', { roles: ROLES }, (site) => {
  it('gets all of them', async () => {
    const { status, got } = await ask(site().port, { headers: [await site().keyWith({ roles: ROLES })] });
    assert.equal(status, 200);
    assert.deepEqual(valuesOf(got!, 'x-auth-roles').join().split(',').toSorted(), ROLES.toSorted());
  });
});
