import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { prefixOf, readSecret } from '../../src/keys/secret/index.ts';
import { issuedLines } from '../../src/cli/views/key-view.ts';
import { REQUESTS } from '../../src/remote/requests.ts';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { noticeOf } from '../../src/features/notices/notice.ts';
import { postNotice, readSigningKey } from '../../src/features/notices/post.ts';
import { askForKey } from '../../src/features/login/cli/ask-for-key.ts';
import { endKey } from '../../src/features/consent/cli/oauth.ts';
import { loadErrorCodes } from '../../src/cli/load-error-codes.ts';
import { serverClient } from '../../src/remote/server-client.ts';
import { pairOf } from '../support/certificates.ts';
import { runCliHere } from '../support/cli-here.ts';
import { freePort } from '../support/port.ts';
import { errorText } from '../support/errors.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { newNoticeSecret } from '../support/webhook.ts';
import { applyOperations } from '../../src/features/apply/operations.ts';

const KEY = createSecret(randomBytes).text;
const servers = new Set<Server & { closeAllConnections(): void }>();

/** A server with arbitrary answers. @returns its address */
async function serve(handle: RequestListener, tls?: object): Promise<string> {
  const server = tls ? createTlsServer(tls, handle) : createServer(handle);
  servers.add(server);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return `http${tls ? 's' : ''}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answer = (body: string, status = 200, headers = {}) =>
  serve((_, response) => void response.writeHead(status, headers).end(body));
const data = (value: object) => answer(JSON.stringify({ data: value }));
const failure = (code: string, status = 200, headers = {}, message = 'No.') =>
  answer(JSON.stringify({ errors: [{ message, extensions: { code, requestId: 'r1' } }] }), status, headers);

const keysOf = (server: string, timeoutMs?: number) =>
  serverClient({ server, key: KEY, loadErrorCodes, ...(timeoutMs !== undefined && { timeoutMs }) });
const refusal = (code: string, message: RegExp) => (error: Error & { code?: string }) => {
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  assert.ok(!error.message.includes(KEY.slice(17)));
  return true;
};

describe('a server elsewhere', () => {
  afterEach(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    servers.clear();
  });

  it('that is not one of ours causes an error, whatever it answers', async () => {
    for (const server of await Promise.all([
      answer('<html>Bad gateway</html>', 502),
      answer('<html>Log in</html>', 200),
      answer('', 200),
      answer('<html>No</html>', 401),
      answer('{}'),
      answer('null'),
      answer('[]'),
      answer('{"data":null}'),
      answer('{"errors":[{}]}'),
      answer('{"errors":{}}'),
      failure('NOT_FOUND', 404),
      data({}),
      data({ apiKey: {} }),
      data({ apiKey: 7 }),
    ]))
      await assert.rejects(
        keysOf(server).apiKey({ name: 'CI' }),
        refusal('SERVER_INCOMPATIBLE', /^The server http:/),
        server,
      );
  });

  it('has its failure read, whatever accompanies the message', async () => {
    const code = 'DECLARATION_INVALID';
    const bodies: [code: string, extensions: unknown][] = [
      ['SERVER_FAILED', null],
      ['SERVER_FAILED', 'x'],
      ['SERVER_FAILED', { code: { toString: 1 } }],
      [code, { code, problems: [null] }],
      [code, { code, problems: [{ path: [{}], message: 'm' }] }],
      [code, { code, problems: [{ path: ['keys', 0], message: 'm' }, 7] }],
    ];
    for (const [expected, extensions] of bodies) {
      const server = await answer(JSON.stringify({ errors: [{ message: 'x', extensions }] }));
      await assert.rejects(keysOf(server).apiKey({ name: 'CI' }), refusal(expected, /./));
    }
  });

  it('that redirects does not get the key sent on, by any status', async () => {
    const seen: IncomingMessage[] = [];
    const target = await serve((request, response) => {
      seen.push(request);
      response.end();
    });
    for (const status of [301, 302, 303, 307, 308]) {
      const server = await answer('', status, { location: `${target}/graphql` });
      await assert.rejects(
        keysOf(server).apiKey({ name: 'CI' }),
        refusal('SERVER_INCOMPATIBLE', new RegExp(`redirects to ${target} `)),
      );
    }
    assert.deepEqual(seen, []);
  });

  it('is asked below the path of its address', async () => {
    const paths: unknown[] = [];
    const server = await serve((request, response) => {
      paths.push(request.method, request.url);
      send(response, { apiKey: null });
    });
    assert.equal(await keysOf(`${server}/team/keys`).apiKey({ name: 'CI' }), null);
    assert.deepEqual(paths, ['POST', '/team/keys/graphql']);
  });

  it('that is older: the error names what it does not know', async () => {
    const server = await failure('GRAPHQL_VALIDATION_FAILED', 200, {}, 'Cannot query field "grants" on type "ApiKey".');
    await assert.rejects(
      keysOf(server).apiKey({ name: 'CI' }),
      refusal('SERVER_INCOMPATIBLE', /probably older: Cannot query field/),
    );
  });

  it('has its own failures, with the request id, and says when to come back', async () => {
    for (const code of ['INTERNAL_SERVER_ERROR', 'COST_EXCEEDED', 'WHAT_COMES_LATER'])
      await assert.rejects(
        keysOf(await failure(code)).apiKey({ name: 'CI' }),
        refusal('SERVER_FAILED', /No\. .*r1\.$/),
      );
    await assert.rejects(
      keysOf(await failure('SERVICE_UNAVAILABLE', 503)).apiKey({ name: 'CI' }),
      refusal('SERVER_FAILED', / failed: No\./),
    );
    await assert.rejects(
      keysOf(await failure('RATE_LIMITED', 429, { 'retry-after': '17' })).apiKey({ name: 'CI' }),
      refusal('RATE_LIMITED', /Try again in 17 s\.$/),
    );
    await assert.rejects(
      keysOf(await failure('UNAUTHENTICATED', 401)).apiKey({ name: 'CI' }),
      refusal('UNAUTHENTICATED', /does not accept the key/),
    );
  });

  it('that takes too long, or sends an endless answer, is given up', async () => {
    const silent = await serve(() => {});
    await assert.rejects(
      keysOf(silent, 50).apiKey({ name: 'CI' }),
      refusal('SERVER_UNREACHABLE', /did not answer in time\.$/),
    );
    const endless = await serve((_, response) => {
      const chunk = 'x'.repeat(1024 * 1024);
      const write = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', write);
      write();
    });
    await assert.rejects(
      keysOf(endless).apiKey({ name: 'CI' }),
      refusal('SERVER_INCOMPATIBLE', /sends an endless answer/),
    );
  });

  it('is read no further than the longest answer of ours, whatever the compression, at each door', async () => {
    const megabytes = 80;
    const packed = gzipSync(Buffer.alloc(megabytes * 1024 * 1024, ' '));
    for (const status of [200, 401, 500]) {
      const server = await serve((_, response) => {
        response.writeHead(status, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed);
      });
      const endless = refusal('SERVER_INCOMPATIBLE', /sends an endless answer/);
      const wanted = { server, scope: 'DOCKER:READ_ANY', expiresIn: '1h' };
      const shown = { show: () => assert.fail(), wait: () => assert.fail(), note: () => assert.fail(), now: () => 0 };
      await assert.rejects(keysOf(server).apiKey({ name: 'CI' }), endless);
      await assert.rejects(keysOf(server).deleteApiKeys({ ids: ['x'] }), endless);
      await assert.rejects(askForKey(wanted, shown), endless);
      await assert.rejects(endKey({ server, secret: 'x', endsCreated: true }), endless);
      // The client reads only the head of a webhook's response.
      const webhook = { url: server, keys: [readSigningKey(newNoticeSecret())!] };
      const notice = noticeOf('test', { event: ['x'], at: 0, data: {} });
      const tried = await postNotice(notice, webhook, { now: 0, version: '1', signal: new AbortController().signal });
      assert.equal(tried.status, status);
    }
  });

  it('is called from only two places, which share one reader', () => {
    const asking = globSync('src/**/*.{ts,tsx}', { cwd: ROOT, exclude: ['src/features/console/islands/**'] }).filter(
      (file) => /(?<![.\w])fetch\(|\bhttps?\.(?:get|request)\(/.test(readFileSync(join(ROOT, file), 'utf8')),
    );
    const clients = asking.filter((file) => /^src\/(?:remote|features\/consent\/cli)\//.test(file));
    assert.deepEqual(clients.toSorted(), ['src/features/consent/cli/oauth.ts', 'src/remote/connection.ts']);
    for (const file of clients) {
      const source = readFileSync(join(ROOT, file), 'utf8');
      assert.match(source, /await textOf\(response, server, MAX_CHARACTERS\)/);
      assert.doesNotMatch(source, /\.(?:text|json|arrayBuffer|blob|bytes|formData)\(\)/);
    }
  });

  it('that is gone after it was asked for a change leaves it open whether that was made', async () => {
    const cut = await serve((request) => void request.socket.destroy());
    const doubt = /Whether the change was made is not known/;
    await assert.rejects(keysOf(cut).deleteApiKeys({ ids: ['x'] }), refusal('SERVER_UNREACHABLE', doubt));
    await assert.rejects(
      keysOf(cut).apiKey({ name: 'CI' }),
      (error: Error) => refusal('SERVER_UNREACHABLE', /cannot be reached/)(error) && !doubt.test(error.message),
    );
    for (const nowhere of [`http://127.0.0.1:${await freePort()}`, 'http://127.0.0.1:1'])
      await assert.rejects(keysOf(nowhere).deleteApiKeys({ ids: ['x'] }), (error: Error) => !doubt.test(error.message));
  });

  it('whose certificate is not trusted gets no key', async () => {
    const seen: unknown[] = [];
    const server = await serve((request) => void seen.push(request), pairOf('first'));
    await assert.rejects(
      keysOf(server).deleteApiKeys({ ids: ['x'] }),
      refusal('SERVER_UNREACHABLE', /a certificate that is not trusted here \(\w+\)\. NODE_EXTRA_CA_CERTS/),
    );
    assert.deepEqual(seen, []);
  });

  it('brings no control character to the terminal, and nothing but a secret for one', async () => {
    const names = [{ id: 'x', name: '\u001b[31mred' }];
    await assert.rejects(
      keysOf(await data({ deleteApiKeys: { keys: names } })).deleteApiKeys({ ids: ['x'] }),
      refusal('SERVER_INCOMPATIBLE', /not as a server of svc-api does/),
    );
    const applied = { changes: [], created: [{ key: '$(reboot)', apiKey: { id: 'x', name: 'A' } }], ...REST };
    await assert.rejects(
      keysOf(await data({ applyApiKeys: applied }))
        .of(applyOperations)
        .applyApiKeys({
          declared: [DECLARED],
          rules: { prune: false, adopt: false },
          dryRun: true,
        }),
      refusal('SERVER_INCOMPATIBLE', /./),
    );
  });

  it('brings no word, value or missing rotation that a command stops at', async () => {
    const nested = `{"a":`.repeat(5000) + '1' + '}'.repeat(5000);
    const state = { ...STATE, prefix: prefixOf(readSecret(KEY)!.publicId) };
    const deep = JSON.stringify({ data: { apiKey: state } }).replace('"metadata":null', `"metadata":${nested}`);
    const long = JSON.stringify({ data: { apiKey: { ...state, metadata: { a: 'x'.repeat(4090) } } } });
    for (const body of [deep, long])
      await assert.rejects(keysOf(await answer(body)).apiKey({ name: 'CI' }), refusal('SERVER_INCOMPATIBLE', /./));

    const changes = (what: string) => [{ name: 'CI', keyId: null, what, at: STATE.createdAt, disabled: false }];
    for (const what of ['LATER', '__defineGetter__']) {
      const [line] = issuedLines(
        REQUESTS.deleteApiKeys.read({ deleteApiKeys: { keys: [], issued: changes(what) } }).issued,
      );
      assert.match(line!, /changed "CI"/);
    }

    const rotated = { key: KEY, apiKey: state, created: [], disabled: [], issued: [] };
    const delivered: string[] = [];
    const request = { grace: undefined, activate: undefined, disableCreated: undefined, createdSince: undefined };
    const delivery = { deliver: async ({ key }: { key: string }) => void delivered.push(key) };
    const { rotation } = await keysOf(await data({ rotateApiKey: rotated })).rotateApiKey({
      id: 'x',
      request,
      delivery,
    });
    assert.deepEqual([rotation, delivered], [null, [KEY]]);
  });

  it('can only cause files of declared keys to be written', async () => {
    const folder = join(tempFolder(), 'secrets');
    const change = { action: 'CREATE', name: 'A', keyId: null, secretSince: null, changes: [] };
    const created = [{ key: createSecret(randomBytes).text, apiKey: { id: 'x', name: '../stolen' } }];
    const asked: string[] = [];
    const server = await serve((request, response) => {
      void bodyOf(request).then((body) => {
        asked.push(body);
        if (body.includes('permissions {')) return send(response, { permissions: CATALOG });
        const dryRun = body.includes('"dryRun":true');
        return send(response, { applyApiKeys: { changes: [change], created: dryRun ? [] : created, ...REST } });
      });
    });
    const file = join(tempFolder(), 'keys.yaml');
    writeFileSync(file, 'keys: [{name: A, roles: [GUEST]}]');
    const args = ['apikey', 'apply', '-f', file, '--secrets-dir', folder, '--server', server];
    const { stdout, stderr, code } = await runCliHere(args, { env: { SVC_API_KEY: KEY } });
    assert.match(stderr, /^Error: The server .* answered, but not as a server of svc-api does\.\nCode: SERVER_INC/);
    assert.deepEqual([stdout, code, asked.length], ['', 1, 3]);
    assert.deepEqual([readdirSync(folder), existsSync(join(dirname(folder), 'stolen'))], [[], false]);
  });

  it('is an error on one line of JSON, or of text with its code, and exits with 1', async () => {
    const server = `http://127.0.0.1:${await freePort()}`;
    const env = { SVC_API_SERVER: server, SVC_API_KEY: KEY };
    const message = `The server ${server} cannot be reached (ECONNREFUSED). Check its address, and whether it runs.`;
    assert.deepEqual(await runCliHere(['apikey', 'list'], { env }), {
      stdout: '',
      stderr: errorText('SERVER_UNREACHABLE', message),
      code: 1,
      signal: null,
    });
    const { stdout, stderr, code } = await runCliHere(['apikey', 'list', '--json'], { env });
    assert.deepEqual([JSON.parse(stdout), stderr, code], [{ error: message, code: 'SERVER_UNREACHABLE' }, '', 1]);
  });
});

const DECLARED = {
  name: 'A',
  description: null,
  roles: ['GUEST'],
  permissions: [],
  expiresAt: null,
};
/** A key in an answer. */
const STATE = {
  id: 'x',
  name: 'CI',
  description: null,
  owner: null,
  tags: [],
  metadata: null,
  grants: [],
  limits: [],
  allowFrom: null,
  expiresAt: null,
  createdAt: '2030-01-01T00:00:00Z',
  createdBy: null,
  disabledAt: null,
  managed: false,
  audience: null,
  person: null,
  status: 'ACTIVE',
  disabledByPolicy: false,
  unknownGrants: [],
  rotation: null,
  uses: 0,
  lastUsedAt: null,
  budgets: [],
};
/** The other fields of an answer to `apply`. */
const REST = { rotated: [], waiting: [], unchanged: 0 };
const CATALOG = {
  roles: [{ role: 'GUEST', description: 'Limited.', permissions: [] }],
  resources: ['ME'],
  actions: ['READ_OWN'],
};

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

function send(response: ServerResponse, value: object): void {
  response.end(JSON.stringify({ data: value }));
}
