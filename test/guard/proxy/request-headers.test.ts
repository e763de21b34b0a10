import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { Networks } from '../../../src/keys/networks.ts';
import { connectRaw, type GuardedService, PERMISSION, rawHeaders, startGuarded } from '../../support/guard.ts';
import { createPrincipal } from '../../support/keys.ts';

/** What a service gets of a request, which it answers with. */
interface Seen {
  method: string;
  url: string;
  /** Names and values in turn. */
  headers: string[];
}

describe('the headers of a request that is passed on', () => {
  let service: GuardedService;
  before(async () => {
    service = await startGuarded(({ method, url, rawHeaders }, outgoing) => {
      outgoing.end(JSON.stringify({ method, url, headers: rawHeaders }));
    });
    service.upstream.maxHeadersCount = 0;
  });
  after(() => service.stop());

  /** Sends the head of a request, and returns what the service has got. */
  const send = async (lines: readonly string[], to = service.url): Promise<Seen> => {
    const raw = connectRaw(to);
    raw.request(...lines);
    const text = await raw.receives(/\}$/);
    raw.socket.destroy();
    return JSON.parse(Buffer.from(text.slice(text.indexOf('\r\n\r\n')), 'latin1').toString()) as Seen;
  };

  /** What the service gets of a GET with these header lines, besides Host and the key. */
  const headersOf = async (lines: readonly string[], to?: string): Promise<string[]> =>
    (await send(['GET / HTTP/1.1', 'Host: a.example', service.authorization, ...lines], to)).headers;

  /** The values of a header. */
  const valuesIn = (headers: readonly string[], name: string) =>
    headers.filter((_, index) => index % 2 === 1 && headers[index - 1]!.toLowerCase() === name.toLowerCase());

  it('are as the client sends them, in their order, with their case, their bytes and duplicates', async () => {
    const path = '/a%2Fb//c/../d;e?f=%00&g';
    const { method, url, headers } = await send([
      `PROPFIND ${path} HTTP/1.1`,
      'X-CaSe: MiXed',
      'Host: a.example:8080',
      service.authorization,
      'x-twice: 1',
      'Cookie: a=1',
      'X-Twice: 2',
      'Cookie: b=2',
      'X-Bytes: \xe9\xff',
      'X-Empty:',
      'Accept-Encoding: br',
    ]);
    assert.deepEqual([method, url], ['PROPFIND', path]);
    assert.deepEqual(
      headers.slice(0, headers.indexOf('X-Forwarded-For')),
      rawHeaders(
        'Host: a.example:8080',
        'X-CaSe: MiXed',
        'x-twice: 1',
        'Cookie: a=1',
        'X-Twice: 2',
        'Cookie: b=2',
        'X-Bytes: \xe9\xff',
        'X-Empty:',
        'Accept-Encoding: br',
      ),
    );
  });

  it('are all there, however many come before', async () => {
    const many = Array.from({ length: 1100 }, (_, index) => `a: ${index}`);
    const headers = await headersOf([...many, 'X-Last: 1', 'Content-Length: 0']);
    assert.equal(valuesIn(headers, 'a').length, many.length);
    assert.deepEqual([...valuesIn(headers, 'x-last'), ...valuesIn(headers, 'content-length')], ['1', '0']);
  });

  it('say who makes it', async () => {
    const { keys } = service;
    const { secret, principal } = await createPrincipal(keys, { name: 'Größe 1', roles: ['VIEWER', 'CONNECT'] });
    const { headers } = await send(['GET / HTTP/1.1', 'Host: a', `Authorization: Bearer ${secret}`]);
    const identity = headers.slice(headers.indexOf('X-Auth-Key-Id'), headers.indexOf('X-Auth-Key-Id') + 8);
    assert.deepEqual(
      identity,
      rawHeaders(
        `X-Auth-Key-Id: ${principal.apiKey.id}`,
        'X-Auth-Key-Name: Gr%C3%B6%C3%9Fe%201',
        'X-Auth-Roles: VIEWER,CONNECT',
        `X-Auth-Permission: ${PERMISSION}`,
      ),
    );
  });

  it('do not name a role that a parent key of the caller has lost', async () => {
    const { keys } = service;
    const parent = await createPrincipal(keys, {
      name: 'Parent',
      roles: ['VIEWER', 'CONNECT'],
      permissions: ['API_KEY:CREATE_OWN'],
    });
    const child = await createPrincipal(keys, { name: 'Child', roles: ['VIEWER', 'CONNECT'] }, parent.principal);
    await keys.update(parent.principal.apiKey.id, { roles: ['VIEWER'] }, OPERATOR);
    const { headers } = await send(['GET / HTTP/1.1', 'Host: a', `Authorization: Bearer ${child.secret}`]);
    assert.deepEqual(valuesIn(headers, 'x-auth-roles'), ['VIEWER']);
  });

  describe('never hold', () => {
    it('an identity that the client made up, however it is written', async () => {
      const forged = [
        'X-Auth-Roles',
        'x-auth-key-id',
        'X_Auth_Key_Id',
        'X-AUTH_ROLES',
        'X.Auth.Key.Name',
        'X-Auth-User',
      ];
      const headers = await headersOf(forged.map((name) => `${name}: forged`));
      assert.ok(!headers.includes('forged'), headers.join('\n'));
      for (const name of ['X-Auth-Key-Id', 'X-Auth-Key-Name', 'X-Auth-Roles', 'X-Auth-Permission'])
        assert.equal(valuesIn(headers, name).length, 1);
    });

    it('the key', async () => {
      const headers = await headersOf(['X-Other: 1']);
      assert.deepEqual(valuesIn(headers, 'authorization'), []);
      assert.ok(!headers.some((text) => text.includes(service.secret)));
    });

    it('what is for one connection alone, nor what the client declares to be so', async () => {
      const headers = await headersOf([
        'Connection: close, X-Named',
        'connection: x-other',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic eDp5',
        'TE: gzip',
        'Transfer_Encoding: chunked',
        'Content_Length: 5',
        'X-Named: 1',
        'X-OTHER: 2',
        'X-Kept: 3',
      ]);
      assert.deepEqual(headers.slice(2, headers.indexOf('X-Forwarded-For')), ['X-Kept', '3']);
      assert.deepEqual(valuesIn(headers, 'connection'), ['keep-alive']);
    });
  });

  it('keep our own, whatever the client declares to be for one connection alone (CVE-2022-31813)', async () => {
    const names = ['X-Auth-Key-Id', 'X-Auth-Roles', 'X-Forwarded-For', 'X-Forwarded-Host', 'Forwarded', 'Via', 'Host'];
    const headers = await headersOf([`Connection: ${names.join(', ')}`, 'X-Forwarded-For: 192.0.2.1']);
    for (const name of names) assert.equal(valuesIn(headers, name).length, 1, name);
    assert.deepEqual(valuesIn(headers, 'x-forwarded-for'), ['192.0.2.1, 127.0.0.1']);
  });

  it('hold the key and other credentials where the operator says so', async () => {
    const passing = await service.beside({ passCredential: true });
    const headers = await headersOf([], passing);
    assert.deepEqual(valuesIn(headers, 'authorization'), [`Bearer ${service.secret}`]);
  });

  it('have the Host of the client, or that of the upstream where the operator says so', async () => {
    const { headers } = await send(['GET / HTTP/1.1', 'Host: a.example:81', service.authorization]);
    assert.deepEqual(headers.slice(0, 2), ['Host', 'a.example:81']);
    const rewriting = await service.beside({ rewriteHost: true });
    const rewritten = await headersOf([], rewriting);
    assert.match(rewritten[1]!, /^127\.0\.0\.1:\d+$/);
    assert.deepEqual(valuesIn(rewritten, 'x-forwarded-host'), ['a.example']);
  });

  it('name us among the intermediaries (RFC 9110, section 7.6.3)', async () => {
    assert.deepEqual(valuesIn(await headersOf(['Via: 1.0 first']), 'via'), ['1.0 first', '1.1 svc-api']);
  });

  describe('say where it came from', () => {
    const EARLIER = [
      'X-Forwarded-For: 192.0.2.1',
      'X-Forwarded-For: 192.0.2.2',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: public.example',
      'X-Forwarded-Prefix: /app',
      'X-Real-IP: 192.0.2.1',
      'Forwarded: for=192.0.2.1;proto=https',
    ];

    it('in addition to what a trusted proxy says', async () => {
      const headers = await headersOf(EARLIER);
      assert.deepEqual(valuesIn(headers, 'x-forwarded-for'), ['192.0.2.1, 192.0.2.2, 127.0.0.1']);
      assert.deepEqual(valuesIn(headers, 'x-forwarded-proto'), ['https']);
      assert.deepEqual(valuesIn(headers, 'x-forwarded-host'), ['public.example']);
      assert.deepEqual(valuesIn(headers, 'x-forwarded-prefix'), ['/app']);
      assert.deepEqual(valuesIn(headers, 'x-real-ip'), ['192.0.2.1']);
      const forwarded = 'for=192.0.2.1;proto=https, for=127.0.0.1;host=a.example;proto=http';
      assert.deepEqual(valuesIn(headers, 'forwarded'), [forwarded]);
    });

    it('and nothing under other names, which a trusted proxy passes on from its clients', async () => {
      const exact = await headersOf(EARLIER);
      const variants = [
        'X_Forwarded_Host: other.example',
        'X-Forwarded_Proto: other',
        'x_real_ip: 192.0.2.3',
        'X.Forwarded.For: 192.0.2.3',
        'X-Forwarded-Client_Cert: other',
      ];
      const withId = (headers: string[]) => headers.with(headers.indexOf('X-Request-Id') + 1, 'id');
      assert.deepEqual(withId(await headersOf([...EARLIER, ...variants])), withId(exact));
    });

    it('and nothing of what anybody else says, however it is written', async () => {
      const untrusting = await service.beside({ trust: new Networks(['192.0.2.0/24']) });
      const variants = ['X_Forwarded_For: 192.0.2.3', 'X-Forwarded_Host: other.example', 'x_real_ip: 192.0.2.3'];
      const headers = await headersOf([...EARLIER, ...variants], untrusting);
      assert.deepEqual(
        headers.slice(2, headers.indexOf('Via')),
        rawHeaders(
          'X-Forwarded-For: 127.0.0.1',
          'X-Forwarded-Proto: http',
          'X-Forwarded-Host: a.example',
          'Forwarded: for=127.0.0.1;host=a.example;proto=http',
        ),
      );
    });

    it('with hosts and addresses quoted as RFC 7239 wants it', async () => {
      const { headers } = await send(['GET / HTTP/1.1', 'Host: [::1]:80', service.authorization]);
      assert.deepEqual(valuesIn(headers, 'forwarded'), ['for=127.0.0.1;host="[::1]:80";proto=http']);
    });
  });
});
