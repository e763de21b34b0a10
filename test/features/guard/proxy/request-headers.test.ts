import assert from 'node:assert/strict';
import { byRoutes } from '../../../../src/features/guard/access.ts';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import { createRouter } from '../../../../src/features/routes/index.ts';
import { type GuardedService, PERMISSION, startGuarded } from '../support/guard.ts';
import { connectRaw, rawHeaders } from '../../../support/raw-connection.ts';
import { createPrincipal } from '../../../support/keys.ts';

/** The head of a request, as the service received and echoed it. */
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

  /** Sends the head of a request, and returns what the service received. */
  const send = async (lines: readonly string[], to = service.url): Promise<Seen> => {
    const raw = connectRaw(to);
    raw.request(...lines);
    const text = await raw.receives(/\}$/);
    raw.socket.destroy();
    return JSON.parse(Buffer.from(text.slice(text.indexOf('\r\n\r\n')), 'latin1').toString()) as Seen;
  };

  /** The headers of a GET that reach the service, besides Host and the key. */
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

  it('name the caller', async () => {
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

    /**
     * Headers that services trust for the caller's identity, and spellings that CGI, WSGI and PHP treat as the same.
     */
    const BELIEVED = [
      'Remote-User',
      'REMOTE_USER',
      'X-Remote-User',
      'X-Remote-Group',
      'X-Forwarded-User',
      'X_Forwarded_User',
      'X-Forwarded-Email',
      'X-Forwarded-Groups',
      'X-Forwarded-Preferred-Username',
      'X-Forwarded-Access-Token',
      'X-Forwarded-Tls-Client-Cert',
      'X-WEBAUTH-USER',
      'X-Webauth_User',
      'X-Auth-Request-User',
      'X-Authentik-Username',
      'X-authentik_username',
      'X-Authenticated-User',
      'Cf-Access-Jwt-Assertion',
      'Cf-Access-Authenticated-User-Email',
      'CF-Access-Client-Id',
      'CF_Access_Client_Id',
      'Tailscale-User-Login',
      'X-Goog-Authenticated-User-Email',
      'X-Amzn-Oidc-Data',
      'X-MS-CLIENT-PRINCIPAL-NAME',
      'X-Pomerium-Claim-Email',
      'X-Consumer-Username',
      'X-User-Email',
      'X-Client-Cert',
      'SSL-Client-Verify',
    ];
    const lines = BELIEVED.map((name) => `${name}: forged`);

    it('one that services trust from a proxy, unless the upstream is to get it', async () => {
      assert.ok(!(await headersOf(lines)).includes('forged'));
      const passHeaders = ['x-forwarded-user', 'x-webauth-user', 'x-auth-request-user'];
      const passing = await service.beside({ passHeaders });
      const headers = await headersOf(lines, passing);
      assert.deepEqual(
        headers.flatMap((text, index) => (text === 'forged' ? headers[index - 1]! : [])),
        ['X-Forwarded-User', 'X-WEBAUTH-USER', 'X-Auth-Request-User'],
      );
      const untrusting = await service.beside({ passHeaders, trust: new Networks(['192.0.2.0/24']) });
      assert.ok(!(await headersOf(lines, untrusting)).includes('forged'));
    });

    it('the second header of a pair if the first one is the key', async () => {
      const credentials = [{ header: 'cf-access-client-secret' }] as const;
      const pair = ['CF-Access-Client-Id: id', `CF-Access-Client-Secret: ${service.secret}`];
      const url = await service.beside({ credentials });
      const headers = (await send(['GET / HTTP/1.1', 'Host: a', ...pair], url)).headers;
      assert.ok(!headers.some((name) => /^cf-/i.test(name)), headers.join('\n'));
      const passing = await service.beside({ credentials, forwardCredential: true });
      const { headers: passed } = await send(['GET / HTTP/1.1', 'Host: a', ...pair], passing);
      assert.deepEqual(valuesIn(passed, 'cf-access-client-secret'), [service.secret]);
    });

    it('but what only looks like one', async () => {
      const kept = ['X-User-Agent: grpc-web', 'X-Forward: 1', 'X-Access-Token: 1', 'X-Remote: 1', 'User: 1'];
      const headers = await headersOf(kept);
      assert.deepEqual(headers.slice(2, headers.indexOf('X-Forwarded-For')), rawHeaders(...kept));
    });

    it('the key', async () => {
      const headers = await headersOf(['X-Other: 1']);
      assert.deepEqual(valuesIn(headers, 'authorization'), []);
      assert.ok(!headers.some((text) => text.includes(service.secret)));
    });

    it('headers of one connection, or those that the client declares as such', async () => {
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

  it('keep our own, even if the client declares them as headers of one connection (CVE-2022-31813)', async () => {
    const names = ['X-Auth-Key-Id', 'X-Auth-Roles', 'X-Forwarded-For', 'X-Forwarded-Host', 'Forwarded', 'Via', 'Host'];
    const headers = await headersOf([`Connection: ${names.join(', ')}`, 'X-Forwarded-For: 192.0.2.1']);
    for (const name of names) assert.equal(valuesIn(headers, name).length, 1, name);
    assert.deepEqual(valuesIn(headers, 'x-forwarded-for'), ['192.0.2.1, 127.0.0.1']);
  });

  it('hold the key and other credentials if configured', async () => {
    const passing = await service.beside({ forwardCredential: true });
    const headers = await headersOf([], passing);
    assert.deepEqual(valuesIn(headers, 'authorization'), [`Bearer ${service.secret}`]);
  });

  it("hold the service's credentials on an open route, but no key of ours in any form", async () => {
    const requirements = byRoutes(
      createRouter([{ host: '*', path: '/**', allow: { kind: 'open' }, preflightOpen: false }]),
    );
    const url = await service.beside({ requirements, credentials: ['bearer', 'basic', { header: 'x-api-key' }] });
    const get = async (line: string) =>
      (await send(['GET / HTTP/1.1', 'Host: a', line], url)).headers.slice(2).slice(0, 2);
    const { secret } = service;
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    for (const line of [
      'Authorization: Bearer abc.def.ghi',
      `Authorization: Basic ${base64('admin:correct horse')}`,
      'Authorization: Basic not base64!',
      'Authorization: Digest username="a"',
      'X-Api-Key: 0123456789abcdef',
    ])
      assert.deepEqual(await get(line), rawHeaders(line), line);
    for (const line of [
      `Authorization: Bearer ${secret}`,
      `Authorization: bearer  "${secret}"`,
      `Authorization: Bearer ${secret.slice(0, -1)}`,
      `Authorization: Bearer abc, Bearer ${secret}`,
      `Authorization: Bearer ${secret.replaceAll('_', '%5f')}`,
      `Authorization: Bearer %73vc${secret.slice(3)}`,
      `Authorization: Basic ${base64(`user:${secret}`)}`,
      `Authorization: Basic ${base64(`${secret}:`)}`,
      `Authorization: Basic ${base64(`user:${secret.replaceAll('_', '%5F')}`)}`,
      `Authorization: Bearer ${base64(secret)}`,
      `Authorization: ${secret}`,
      `Authorization: Token ${secret}`,
      `X-Api-Key: ${secret}`,
    ])
      assert.equal((await get(line))[0], 'X-Forwarded-For', line);
    const passing = await service.beside({ requirements, forwardCredential: true });
    const { headers } = await send(['GET / HTTP/1.1', 'Host: a', service.authorization], passing);
    assert.deepEqual(valuesIn(headers, 'authorization'), [`Bearer ${secret}`]);
  });

  it('have the Host of the client, or that of the upstream if configured', async () => {
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

  describe('say how it has come', () => {
    const EARLIER = [
      'X-Forwarded-For: 192.0.2.1',
      'X-Forwarded-For: 192.0.2.2',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: other.example',
      'X-Forwarded-Server: other.example',
      'X-Forwarded-Port: 4711',
      'X-Forwarded-Prefix: /app',
      'X-Forwarded-Uri: /other',
      'X-Forwarded-Path: /other',
      'X-Forwarded-Method: DELETE',
      'X-Forwarded-Scheme: http',
      'X-Forwarded-Ssl: off',
      'X-Original-Method: DELETE',
      'X-Original-URI: /other',
      'X-Original-Host: other.example',
      'X-Host: other.example',
      'X-HTTP-Host-Override: other.example',
      'X-Real-IP: 192.0.2.1',
      'CF-Connecting-IP: 192.0.2.1',
      'True-Client-IP: 192.0.2.1',
      'X-Client-IP: 192.0.2.1',
      'X-Originating-IP: 192.0.2.1',
      'X-Appengine-User-IP: 192.0.2.1',
      'X-Remote_IP: 192.0.2.1',
      'X-Forwarded: for=192.0.2.1',
      'Forwarded-For: 192.0.2.1',
      'Forwarded: for=192.0.2.2;proto=http;host=other.example',
    ];
    const VARIANTS = [
      'X_Forwarded_Host: other.example',
      'X-Forwarded_Proto: other',
      'x_real_ip: 192.0.2.3',
      'X.Forwarded.For: 192.0.2.3',
      'X-Forwarded-Client_Cert: other',
      'X_Original_Host: other.example',
      'X_Client_IP: 192.0.2.3',
    ];
    /** The headers between the client's own and `Via`. */
    const saidIn = (headers: readonly string[]) => headers.slice(2, headers.indexOf('Via'));
    const saying = (addresses: string, proto: string, port: string) =>
      rawHeaders(
        `X-Forwarded-For: ${addresses}`,
        `X-Real-IP: ${addresses.split(',')[0]!}`,
        `X-Forwarded-Proto: ${proto}`,
        'X-Forwarded-Host: a.example',
        `X-Forwarded-Port: ${port}`,
        'X-Forwarded-Method: GET',
        'X-Forwarded-Uri: /',
        `Forwarded: ${addresses
          .split(', ')
          .map((address) => `for=${address};host=a.example;proto=${proto}`)
          .join(', ')}`,
      );

    it('as it was judged, whatever a trusted proxy forwards from its client', async () => {
      for (const lines of [EARLIER, [...EARLIER, ...VARIANTS]])
        assert.deepEqual(saidIn(await headersOf(lines)), saying('192.0.2.2, 127.0.0.1', 'https', '443'));
      const hidden = ['X-Forwarded-For: 192.0.2.2, unknown', 'X-Forwarded-Proto: gopher'];
      assert.deepEqual(saidIn(await headersOf(hidden)), saying('127.0.0.1', 'http', '80'));
      assert.deepEqual(
        saidIn(await headersOf(['Forwarded: for=192.0.2.7'])),
        saying('192.0.2.7, 127.0.0.1', 'http', '80'),
      );
      const several = ['X-Forwarded-For: 192.0.2.9, 192.0.2.3, 127.0.0.2', 'X-Forwarded-Proto: https, wss'];
      assert.deepEqual(saidIn(await headersOf(several)), saying('192.0.2.3, 127.0.0.2, 127.0.0.1', 'https', '443'));
    });

    it('by the schemes of HTTP, which X-Forwarded-Proto and Forwarded say alike', async () => {
      for (const [lines, scheme] of [
        [['X-Forwarded-Proto: wss'], 'https'],
        [['X-Forwarded-Proto: WSS'], 'https'],
        [['X-Forwarded-Proto: ws'], 'http'],
        [['Forwarded: for=192.0.2.1;proto=wss'], 'https'],
        [['Forwarded: for=6.6.6.6;proto=http, for=192.0.2.1;proto="HTTPS"'], 'https'],
        [['Forwarded: proto=http', 'Forwarded: proto=ws, proto=https'], 'https'],
        [['Forwarded: for=192.0.2.1;proto=https, for=192.0.2.2'], 'http'],
        [['Forwarded: proto=https;proto=https'], 'http'],
        [['X-Forwarded-Proto: https', 'Forwarded: proto=http'], 'https'],
        [['X-Forwarded-Proto: http', 'Forwarded: proto=https'], 'http'],
        [['X-Forwarded-Proto: gopher'], 'http'],
      ] as const) {
        const headers = await headersOf(lines);
        assert.deepEqual(valuesIn(headers, 'x-forwarded-proto'), [scheme], lines.join());
        assert.match(valuesIn(headers, 'forwarded').join(), new RegExp(`;proto=${scheme}$`), lines.join());
      }
    });

    it('also by other names of the address, if they say the same', async () => {
      for (const [name, said] of [
        ['CF-Connecting-IP', '192.0.2.2'],
        ['x-client-ip', '192.0.2.2'],
        ['X-Client-IP', '192.0.2.1'],
      ] as const) {
        const headers = await headersOf(['X-Forwarded-For: 192.0.2.1, 192.0.2.2', `${name}: ${said}`]);
        assert.deepEqual(valuesIn(headers, name), said === '192.0.2.2' ? [said] : [], `${name}: ${said}`);
      }
    });

    it('and nothing that others say, in any spelling', async () => {
      const untrusting = await service.beside({ trust: new Networks(['192.0.2.0/24']) });
      const user = 'X-Forwarded-User: root';
      const headers = await headersOf([...EARLIER, ...VARIANTS, user], untrusting);
      assert.deepEqual(saidIn(headers), saying('127.0.0.1', 'http', '80'));
    });

    it('with hosts and addresses quoted as RFC 7239 wants it', async () => {
      const { headers } = await send(['GET / HTTP/1.1', 'Host: [::1]:80', service.authorization]);
      assert.deepEqual(valuesIn(headers, 'forwarded'), ['for=127.0.0.1;host="[::1]:80";proto=http']);
    });
  });

  it("hold all cookies, byte by byte, except those of svc-api's own pages", async () => {
    for (const [sent, got] of [
      ['a=1;b="svc_api";  c=é=;;d', ['a=1;b="svc_api";  c=é=;;d']],
      ['svc_api_session=x', []],
      ['__Host-svc_api_session=x; __Secure-svc_api_a=x;__host-SVC_API_session=x', []],
      ['a=1; svc_api_session=x;  b= 2 ;c', ['a=1;  b= 2 ;c']],
      ['svc_api_form_abc=x; a=1', ['a=1']],
      [' svc_api_session =x;my_svc_api_session=1', ['my_svc_api_session=1']],
      ['=svc_api_session=x; a', ['a']],
    ] as const) {
      const headers = await headersOf([`Cookie: ${Buffer.from(sent).toString('latin1')}`, 'Cookie: svc_api_session=y']);
      const asLatin1 = got.map((text) => Buffer.from(text).toString('latin1'));
      assert.deepEqual(valuesIn(headers, 'cookie'), asLatin1, sent);
    }
  });
});
