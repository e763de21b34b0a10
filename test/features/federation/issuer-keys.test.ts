import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Federation } from '../../../src/features/federation/federation.ts';
import { IssuerKeys } from '../../../src/features/federation/issuer-keys.ts';
import { freshSeconds } from '../../../src/features/consent/oauth/fresh-seconds.ts';
import type { FederationRule } from '../../../src/features/federation/federation-rule.ts';
import type { TokenIssuer } from '../../../src/features/federation/token-issuer.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { startIssuer, type TestIssuer } from '../../support/issuer.ts';

const AUDIENCE = 'https://keys.example.org';

describe('the keys of an issuer', () => {
  let issuer: TestIssuer;
  let now: number;
  let federation: Federation;
  const rulesOf = (jwks?: TokenIssuer['jwks']): FederationRule[] => [
    {
      name: 'deploys',
      issuer: { url: issuer.url, jwks, audience: AUDIENCE, algorithms: ['ES256', 'RS256'] },
      when: [{ path: ['sub'], values: ['me'] }],
      grants: { roles: ['GUEST'], permissions: [] },
      ttl: 60,
      reuse: true,
    },
  ];
  const federationOf = (rules = rulesOf(), patienceMs?: number) =>
    new Federation({ rules, keys: new IssuerKeys({ clock: () => now }, patienceMs), clock: () => now });
  beforeEach(async () => {
    now = Date.UTC(2030, 0, 1);
    issuer = await startIssuer();
    federation = federationOf();
  });
  afterEach(() => issuer.stop());
  const token = (header?: Record<string, unknown>) =>
    issuer.sign({ aud: AUDIENCE, sub: 'me', exp: now / 1000 + 86_400 }, header);
  const accepts = async (given: string, by = federation) =>
    by.identify(given).then(
      ({ rule }) => rule.name,
      (error: Error) => error.message,
    );
  const AGAIN = "The token does not verify with its issuer's known keys. Try again in 10 seconds.";
  const UNAVAILABLE = 'The issuer of the token does not answer. Try again later.';

  it('are read once for concurrent requests, and for as long as they are fresh', async () => {
    issuer.headers = { 'cache-control': 'public, max-age=3600' };
    const tokens = await Promise.all(Array.from({ length: 20 }, () => token()));
    const accepted = await Promise.all(tokens.map((each) => accepts(each)));
    assert.deepEqual(new Set(accepted), new Set(['deploys']));
    assert.deepEqual(issuer.requests, ['/.well-known/openid-configuration', '/keys']);
    now += 3_599_000;
    await accepts(await token());
    assert.equal(issuer.requests.length, 2);
    now += 1000;
    await accepts(await token());
    assert.equal(issuer.requests.length, 4);
  });

  it('are read from where the rule says', async () => {
    federation = federationOf(rulesOf(`${issuer.url}/keys`));
    assert.equal(await accepts(await token()), 'deploys');
    assert.deepEqual(issuer.requests, ['/keys']);
  });

  it('in a file are read again when it changes, by the same rules, and stay if it is invalid', async () => {
    const file = join(tempFolder(), 'jwks.json');
    const write = (text = JSON.stringify({ keys: issuer.keys })) => {
      writeFileSync(file, text, { mode: 0o644 });
      now += 1000;
    };
    federation = federationOf(rulesOf({ file }));
    assert.equal(await accepts(await token()), UNAVAILABLE);
    write();
    const old = await token();
    assert.equal(await accepts(old), 'deploys');
    await issuer.rotate();
    assert.equal(await accepts(await token()), 'The issuer does not have the key that signed the token.');
    write();
    assert.equal(await accepts(await token()), 'deploys');
    assert.equal(await accepts(old), 'The issuer does not have the key that signed the token.');
    write('{');
    assert.equal(await accepts(await token()), 'deploys');
    await issuer.rotate('PS256');
    write();
    assert.match(await accepts(await token()), /^The signature algorithm of the token is not allowed/);
    assert.deepEqual(issuer.requests, [], 'nobody is asked');
  });

  it('are read anew for a token that is signed with another one, not more often than every ten seconds', async () => {
    const old = await token();
    assert.equal(await accepts(old), 'deploys');
    await issuer.rotate();
    now += 10_000;
    assert.equal(await accepts(await token()), 'deploys');
    assert.equal(await accepts(old), 'The issuer does not have the key that signed the token.');
    const before = issuer.requests.length;
    for (let count = 0; count < 50; count += 1) await accepts(await token({ kid: `unknown ${count}` }));
    assert.equal(issuer.requests.length, before);
    now += 10_000;
    for (let count = 0; count < 50; count += 1) await accepts(await token({ kid: `unknown ${count}` }));
    assert.equal(issuer.requests.length, before + 2);
  });

  it('are kept while the issuer is unavailable, for any reason', async () => {
    const good = await token();
    assert.equal(await accepts(good), 'deploys');
    const ways: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(503).end(),
      (response) => response.destroy(),
      (response) => response.writeHead(302, { location: '/keys' }).end(),
      (response) => response.end('<html>'),
      (response) => response.end('{}'),
      (response) =>
        response.end(JSON.stringify({ issuer: 'https://other.example.org', jwks_uri: `${issuer.url}/keys` })),
      (response) => response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: 'http://192.0.2.1/keys' })),
      (response) => response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: 'file:///etc/passwd' })),
      (response) => {
        const write = () => void (response.writable && response.write('x'.repeat(64 * 1024), write));
        write();
      },
    ];
    for (const answer of ways) {
      issuer.answer = answer;
      now += 600_000;
      const before = issuer.requests.length;
      assert.equal(await accepts(good), 'deploys');
      assert.ok(issuer.requests.length > before, 'it was asked');
      assert.equal(await accepts(good, federationOf()), UNAVAILABLE, 'who knows nothing of it');
    }
  });

  it('are waited for within a time limit, by all requests together', async () => {
    const good = await token();
    assert.equal(await accepts(good), 'deploys');
    issuer.answer = () => {};
    const impatient = federationOf(rulesOf(), 50);
    const before = issuer.requests.length;
    const waiting = await Promise.all([1, 2, 3].map(() => accepts(good, impatient)));
    assert.deepEqual(waiting, [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE]);
    assert.equal(issuer.requests.length, before + 1);
    assert.equal(await accepts(good, impatient), UNAVAILABLE, 'nor is it asked again at once');
    assert.equal(issuer.requests.length, before + 1);
    issuer.answer = undefined;
    await until(async () => {
      now += 10_000;
      return (await accepts(good, impatient)) === 'deploys';
    });
  });

  it('are read anew when a signature fails, and a replaced key ends with that', async () => {
    issuer.headers = { 'cache-control': 'max-age=86400' };
    const old = await token({ kid: 'main' });
    issuer.keys = issuer.keys.map((key) => ({ ...key, kid: 'main' }));
    assert.equal(await accepts(old), 'deploys');
    await issuer.rotate();
    issuer.keys = issuer.keys.map((key) => ({ ...key, kid: 'main' }));
    now += 9999;
    assert.equal(await accepts(old), 'deploys');
    assert.equal(await accepts(await token({ kid: 'main' })), AGAIN, 'they were read less than ten seconds ago');
    assert.equal(issuer.requests.length, 2);
    now += 1;
    assert.equal(await accepts(await token({ kid: 'main' })), 'deploys');
    assert.equal(await accepts(old), 'The signature of the token is invalid.');
    for (let count = 0; count < 50; count += 1) await accepts(old);
    assert.equal(issuer.requests.length, 4);
  });

  it('are asked for once by a burst of tokens with unknown ones, and the token that is right has its key', async () => {
    assert.equal(await accepts(await token()), 'deploys');
    const unknown = await Promise.all(Array.from({ length: 300 }, (_, count) => token({ kid: `unknown ${count}` })));
    await issuer.rotate();
    const right = await token();
    let release = () => {};
    issuer.answer = (response) => {
      release = () => {
        issuer.answer = undefined;
        response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }));
      };
    };
    now += 10_000;
    const before = issuer.requests.length;
    const waiting = unknown.map((each) => accepts(each));
    await until(() => issuer.requests.length > before);
    now += 4000;
    const last = accepts(right);
    const tooLate = accepts(unknown[0]!);
    release();
    assert.equal(await last, 'deploys');
    const NONE = 'The issuer does not have the key that signed the token.';
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set([NONE]));
    assert.equal(await tooLate, AGAIN, 'the answer can be older than the token');
    assert.equal(issuer.requests.length, before + 2);
  });

  it('are read anew also after the clock was set back', async () => {
    assert.equal(await accepts(await token()), 'deploys');
    await issuer.rotate();
    now -= 3_600_000;
    assert.equal(await accepts(await token()), 'deploys');
  });

  it('are not used any longer than the rule says while their issuer is away', async () => {
    const [short] = rulesOf();
    const hour = federationOf([{ ...short!, issuer: { ...short!.issuer, keysMaxAge: 3600 } }]);
    issuer.headers = { 'cache-control': 'max-age=86400' };
    const good = await token();
    const later = await issuer.sign({ aud: AUDIENCE, sub: 'me', exp: now / 1000 + 3 * 86_400 });
    for (const each of [federation, hour]) assert.equal(await accepts(good, each), 'deploys');
    issuer.answer = (response) => response.writeHead(503).end();
    now += 3_599_000;
    assert.equal(await accepts(good, hour), 'deploys');
    now += 1000;
    assert.equal(await accepts(good, hour), UNAVAILABLE);
    now += 23 * 3_600_000 - 1000;
    assert.equal(await accepts(later), 'deploys');
    now += 1000;
    assert.equal(await accepts(later), UNAVAILABLE);
    issuer.answer = undefined;
    now += 10_000;
    for (const each of [federation, hour]) assert.equal(await accepts(later, each), 'deploys');
  });

  it('are never those that anyone could sign with', async () => {
    const [real] = issuer.keys;
    issuer.keys = [{ kty: 'oct', k: Buffer.from('known to all').toString('base64url'), kid: real!.kid!, alg: 'HS256' }];
    assert.equal(await accepts(await token()), 'The issuer does not have the key that signed the token.');
  });

  it('are fresh as HTTP has it, within ten seconds and a day', () => {
    // The minimum is ten seconds, whatever the issuer says.
    const freshness = (headers: Record<string, string>) =>
      Math.max(
        freshSeconds((name) => headers[name]),
        10,
      );
    assert.equal(freshness({}), 300);
    assert.equal(freshness({ 'cache-control': 'max-age=600' }), 600);
    assert.equal(freshness({ 'cache-control': 'public, Max-Age="600", must-revalidate' }), 600);
    assert.equal(freshness({ 'cache-control': 's-maxage=5, max-age=600', age: '100' }), 500);
    assert.equal(freshness({ 'cache-control': 'max-age=600', age: '700' }), 10);
    assert.equal(freshness({ 'cache-control': 'no-store' }), 10);
    assert.equal(freshness({ 'cache-control': 'max-age=0' }), 10);
    assert.equal(freshness({ 'cache-control': 'max-age=9999999999' }), 86_400);
    const date = 'Tue, 01 Jan 2030 00:00:00 GMT';
    assert.equal(freshness({ date, expires: 'Tue, 01 Jan 2030 00:20:00 GMT' }), 1200);
    assert.equal(freshness({ date, expires: '0' }), 10);
  });
});
