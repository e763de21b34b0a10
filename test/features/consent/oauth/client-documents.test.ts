import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  ClientDocuments,
  type DocumentOptions,
  isPublic,
  resolveHost,
} from '../../../../src/features/consent/oauth/client-documents.ts';
import type { OAuthError } from '../../../../src/features/consent/oauth/oauth-error.ts';
import { OWN_COMMANDS } from '../../../../src/http/plain-endpoints.ts';
import { listen } from '../../../../src/http/listen.ts';
import { createAppOf } from '../../../../src/service/create-app.ts';
import { pairOf } from '../../../support/certificates.ts';
import { agree, authorizeUrl, CALLBACK, exchange, newPkce, openPage } from '../support/consent.ts';
import { createPrincipal, openTestKeys } from '../../../support/keys.ts';

const HERE: LookupAddress = { address: '127.0.0.1', family: 4 };

describe('an application that describes itself at the URL that is its id', () => {
  const { cert, key } = pairOf('first');
  let respond: (outgoing: ServerResponse, incoming: IncomingMessage) => void;
  let asked = 0;
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    asked += 1;
    respond(outgoing, incoming);
  });
  let id: string;
  let now: number;
  let documents: ClientDocuments;

  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    id = `https://localhost:${(server.address() as AddressInfo).port}/client.json`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const documentsWith = (options: Partial<DocumentOptions> = {}) =>
    new ClientDocuments({
      allowed: 'any',
      clock: () => now,
      isAllowed: () => true,
      resolve: async () => [HERE],
      ca: cert,
      ...options,
    });
  const says = (document: object, headers: Record<string, string> = {}) => {
    const text = JSON.stringify({ client_id: id, redirect_uris: ['http://127.0.0.1/done'], ...document });
    respond = (outgoing) => void outgoing.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text);
  };
  beforeEach(() => {
    [asked, now] = [0, Date.UTC(2030, 0, 1)];
    documents = documentsWith();
    says({});
  });

  it('has the name, the redirect URIs and the grants that its document says', async () => {
    says({
      client_name: 'Claude Code (beta)',
      redirect_uris: ['http://localhost/callback', 'https://localhost/done', 'javascript:alert(1)', 7],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    });
    assert.deepEqual(await documents.find(id), {
      id,
      name: 'Claude Code beta',
      redirects: ['http://localhost/callback', 'https://localhost/done'],
      refreshes: true,
    });
    says({ client_name: '\u202e\u3164' });
    assert.equal((await documentsWith().find(id)).name, 'localhost');
  });

  it('has no secret, if it names that as a method of authentication', async () => {
    for (const preferred of ['private_key_jwt', 'client_secret_basic', 'client_secret_post']) {
      says({
        client_name: 'ChatGPT',
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: preferred,
        token_endpoint_auth_methods_supported: ['none', preferred],
        token_endpoint_auth_signing_alg: 'RS256',
        jwks_uri: 'https://localhost/jwks.json',
      });
      assert.equal((await documentsWith().find(id)).name, 'ChatGPT', preferred);
    }
  });

  it('is asked once for many, and again when its answer is no longer fresh', async () => {
    says({}, { 'cache-control': 'public, max-age=60', age: '10' });
    await Promise.all([documents.find(id), documents.find(id)]);
    now += 49_000;
    await documents.find(id);
    assert.equal(asked, 1);
    now += 1000;
    says({}, { 'cache-control': 'max-age=60, no-cache' });
    await documents.find(id);
    await documents.find(id);
    assert.equal(asked, 3);
    says({}, { date: new Date(now).toUTCString(), expires: new Date(now + 3000).toUTCString() });
    await documents.find(id);
    now += 2999;
    await documents.find(id);
    assert.equal(asked, 4);
  });

  it('is known by a URL that is written as the document has it, of a host that is allowed', () => {
    const right = ['https://claude.ai/a.json', 'https://a.example:8443/x/y'];
    const wrong = [
      'http://claude.ai/a.json',
      'https://claude.ai',
      'https://claude.ai/',
      'https://Claude.ai/a',
      'claude.ai/a',
      'https://claude.ai/a?x=1',
      'https://claude.ai/a#x',
      'https://u@claude.ai/a',
      'https://claude.ai/x/../a',

      'https://127.0.0.1/a',
      'https://[::1]/a',
      'https://0x7f.1/a',
      'https://2130706433/a',
      'https://claude.ai:443/a',
      `https://claude.ai/${'a'.repeat(500)}`,
    ];
    for (const url of right) assert.ok(documents.allows(url), url);
    for (const url of wrong) assert.ok(!documents.allows(url), url);
    const some = documentsWith({ allowed: ['claude.ai'] });
    assert.ok(some.allows('https://claude.ai/a'));
    for (const url of ['https://x.claude.ai/a', 'https://claude.ai.example/a', 'https://claude.ai:8443/a'])
      assert.ok(!some.allows(url), url);
  });

  it('is not asked at an address that is not one of the internet', async () => {
    const special = [
      '127.0.0.1',
      '10.1.2.3',
      '172.31.0.1',
      '192.168.0.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
      '255.255.255.255',
      '198.18.0.1',
      '::1',
      '::',
      'fe80::1',
      'fd00::1',
      'ff02::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
      '2001:db8::1',
      '2002:7f00:1::',
      '2001::1',
    ];
    const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 });
    for (const text of special) assert.ok(!isPublic(address(text)), text);
    for (const text of ['64:ff9b::a00:1', '64:ff9b:1::5db8:d822', 'fd00::5db8:d822'])
      assert.ok(!isPublic(address(text)));
    for (const text of ['1.1.1.1', '160.79.104.10', '2606:4700::1111', '64:ff9b::5db8:d822', '64:ff9b::93.184.216.34'])
      assert.ok(isPublic(address(text)), text);
    for (const found of [[HERE], [HERE, address('fd00::1')], []]) {
      const strict = documentsWith({ isAllowed: isPublic, resolve: async () => found });
      await assert.rejects(strict.find(id), /its host has no address on the internet/);
    }
    assert.equal(asked, 0);
  });

  it('is fetched only from public addresses', async () => {
    const beside: LookupAddress = { address: 'fd00::5', family: 6 };
    const isAllowed = ({ address }: LookupAddress) => address === HERE.address;
    await documentsWith({ isAllowed, resolve: async () => [beside, HERE] }).find(id);
    assert.equal(asked, 1);
  });

  it('is refused with its address, unless that would reveal a private network to any client', async () => {
    const { host } = new URL(id);
    for (const [allowed, address, isTold] of [
      [[host], '10.1.2.3', true],
      ['any', '198.18.0.5', true],
      ['any', '10.1.2.3', false],
    ] as const) {
      const found: LookupAddress[] = [{ address, family: 4 }];
      const strict = documentsWith({ allowed, isAllowed: isPublic, resolve: async () => found });
      await assert.rejects(strict.find(id), (error: OAuthError) => {
        assert.equal(error.message.includes(address), isTold);
        assert.ok(error.detail.includes(address));
        return error.message.includes('clients: registered');
      });
    }
  });

  it('is resolved by DNS in both address families, within a time limit', async () => {
    // Resolves the IPv4 address of one name, and does not answer for others.
    const dns = createSocket('udp4', (question, { port, address }) => {
      const end = question.indexOf(0, 12) + 5;
      if (!question.includes('known')) return;
      const isV4 = question.readUInt16BE(end - 4) === 1;
      const head = Buffer.from(question.subarray(0, 12));
      head.writeUInt16BE(isV4 ? 0x8180 : 0x8185, 2);
      head.writeUInt16BE(isV4 ? 1 : 0, 6);
      head.writeUInt32BE(0, 8);
      const found = isV4 ? Buffer.from('c00c000100010000003c00040a010203', 'hex') : Buffer.alloc(0);
      dns.send(Buffer.concat([head, question.subarray(12, end), found]), port, address);
    });
    await once(dns.bind(0, '127.0.0.1'), 'listening');
    const resolver = new Resolver({ timeout: 60_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${dns.address().port}`]);
    const { signal } = new AbortController();
    assert.deepEqual(await resolveHost('known.example', signal, resolver), [{ address: '10.1.2.3', family: 4 }]);
    const stop = new AbortController();
    const silent = resolveHost('silent.example', stop.signal, resolver);
    stop.abort();
    await assert.rejects(silent, /ECANCELLED/);
    dns.close();
  });

  it('is resolved with one other at a time, counting abandoned ones', async () => {
    const names: string[] = [];
    const answers: (() => void)[] = [];
    const resolve = (host: string) => {
      names.push(host);
      return new Promise<LookupAddress[]>((done) => void answers.push(() => done([HERE])));
    };
    const slow = documentsWith({ resolve, timeoutMs: 200 });
    const find = (host: string, why: RegExp) => assert.rejects(slow.find(`https://${host}.example/a`), why);
    const [failed, waited] = [/cannot be fetched/, /Too many clients/];
    await Promise.all([find('a', failed), find('b', failed), find('c', waited), find('d', waited)]);
    await find('c', waited);
    assert.deepEqual(names, ['a.example', 'b.example']);
    answers[0]!();
    await find('c', failed);
    assert.deepEqual(names, ['a.example', 'b.example', 'c.example']);
    for (const answer of answers) answer();
  });

  it('is not asked for again half a minute after it failed, nor is another one of a host without an address', async () => {
    respond = (to) => void to.writeHead(404).end();
    for (let times = 0; times < 3; times += 1) await assert.rejects(documents.find(id), /status 404/);
    assert.equal(asked, 1);
    says({});
    now += 30_000;
    await documents.find(id);
    let resolved = 0;
    const resolve = async () => {
      resolved += 1;
      throw new Error('ENOTFOUND');
    };
    const lost = documentsWith({ resolve });
    for (const path of ['a', 'b', 'a'])
      await assert.rejects(lost.find(`https://a.example/${path}`), /cannot be fetched/);
    assert.equal(resolved, 1);
    now += 30_000;
    await assert.rejects(lost.find('https://a.example/b'));
    assert.equal(resolved, 2);
  });

  it('is fetched from the checked address, even if its name changes a moment later', async () => {
    const answers = [[HERE], [{ address: '192.0.2.1', family: 4 }]];
    const judged: string[] = [];
    const rebinding = documentsWith({
      resolve: async () => answers.shift()!,
      isAllowed: ({ address }) => judged.push(address) > 0,
    });
    await rebinding.find(id);
    assert.deepEqual([judged, asked, answers.length], [['127.0.0.1'], 1, 1]);
  });

  it('is not accepted by a redirect, or by a document that is too long, too slow or wrong', async () => {
    const json = { 'content-type': 'application/json' };
    const wrong: [respond: typeof respond, why: RegExp][] = [
      [(to) => void to.writeHead(302, { location: 'https://localhost/other' }).end(), /status 302/],
      [(to) => void to.writeHead(404, json).end('{}'), /status 404/],
      [(to) => void to.writeHead(200, { 'content-type': 'text/html' }).end('{}'), /not JSON/],
      [(to) => void to.writeHead(200, json).end('x'), /not a JSON object/],
      [(to) => void to.writeHead(200, json).end(' '.repeat(64 * 1024 + 1)), /longer than 64 KiB/],
      [(to) => void to.writeHead(200, json).write('{'), /cannot be fetched/],
      [() => {}, /cannot be fetched/],
      [(to) => void to.destroy(), /cannot be fetched/],
    ];
    for (const [how, why] of wrong) {
      respond = how;
      const isSlow = why.source === 'cannot be fetched';
      await assert.rejects(documentsWith(isSlow ? { timeoutMs: 300 } : {}).find(id), why);
    }
    for (const [document, why] of [
      [{ client_id: id.replace('client', 'other') }, /client_id is not its URL/],
      [{ client_id: undefined }, /client_id is not its URL/],
      [{ token_endpoint_auth_method: 'private_key_jwt' }, /requires a client secret/],
      [
        { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_methods_supported: ['private_key_jwt'] },
        /requires a client secret/,
      ],
      [{ client_secret: 'x', token_endpoint_auth_methods_supported: ['none'] }, /requires a client secret/],
      [{ redirect_uris: [] }, /no valid redirect_uris/],
      [{ redirect_uris: ['javascript:alert(1)'] }, /no valid redirect_uris/],
    ] as const) {
      says(document);
      await assert.rejects(documentsWith().find(id), why);
    }
    await assert.rejects(documentsWith({ ca: pairOf('other').cert }).find(id), /cannot be fetched/);
  });

  it('is not fetched through a proxy, and says so if one is configured', async () => {
    const before = process.env['HTTPS_PROXY'];
    process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1';
    try {
      const unknown = documentsWith({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
      await assert.rejects(unknown.find('https://client.invalid/app.json'), /cannot be fetched.*without the proxy/);
      await documents.find(id);
      assert.equal(asked, 1);
    } finally {
      if (before === undefined) delete process.env['HTTPS_PROXY'];
      else process.env['HTTPS_PROXY'] = before;
    }
  });

  it('gets a key, and sends people nowhere but where its document says', async () => {
    const test = await openTestKeys({ asServer: true, consent: 'both' });
    const app = await createAppOf({ keys: test.keys }, OWN_COMMANDS, { documents });
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    const { url } = server;
    try {
      const fields = { name: 'Anna', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] };
      const { secret } = await createPrincipal(test.keys, fields);
      says({ client_name: 'Bank' });
      const { verifier, challenge } = newPkce();
      const at = { client_id: id, code_challenge: challenge };
      const page = await openPage(authorizeUrl(url, at));
      assert.match(page.text, /<h1>localhost:\d+ asks for an API key<\/h1>/);
      assert.match(page.text, /<strong>localhost:\d+<\/strong>, which calls itself Bank/);
      const { headers } = await agree(url, page.fields, secret);
      const code = new URL(headers.get('location')!).searchParams.get('code')!;
      const { status } = await exchange(url, code, verifier, { client_id: id, redirect_uri: CALLBACK });
      assert.equal(status, 200);
      for (const redirect of [
        'https://evil.example/done',
        'http://127.0.0.1/other',
        'http://127.0.0.1@evil.example/',
      ]) {
        const refused = await openPage(authorizeUrl(url, { client_id: id, redirect_uri: redirect }));
        assert.deepEqual([refused.status, refused.headers.get('location')], [400, null], redirect);
      }
      const unknown = await openPage(authorizeUrl(url, { client_id: 'https://claude.ai/a?b' }));
      assert.match(unknown.text, /This client_id does not exist/);
      const metadata = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json();
      assert.equal((metadata as Record<string, unknown>)['client_id_metadata_document_supported'], true);
      assert.equal((metadata as Record<string, unknown>)['registration_endpoint'], undefined);
    } finally {
      await server.stop(0);
      await test.store.close();
    }
  });
});
