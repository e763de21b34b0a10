import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Machine } from '../support/machine.ts';
import { blocksOf, blockWith } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import type { TerminalSession } from '../support/pty.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';

const PAGE = 'README.md';
/** A service on port 3000 that echoes requests and accepts a WebSocket. */
const SERVICE = `
const got = ({ method, url, headers, socket }) => JSON.stringify({ method, url, headers }) + '\\n';
require('node:http').createServer((request, response) => response.end(got(request)))
  .on('upgrade', (request, socket) => socket.end(\`HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\n\` +
    \`Upgrade: \${request.headers.upgrade}\\r\\n\\r\\n\${got(request)}\`))
  .listen(3000, '127.0.0.1', () => console.log('The service is there.'));`;
interface Got {
  method: string;
  url: string;
  headers: Record<string, string>;
}
/** Pastes a text into a terminal, and returns the output until the shell is ready again. */
async function paste(terminal: TerminalSession, text: string, until: string): Promise<string> {
  const from = terminal.screen.length;
  terminal.type(`${text.trimEnd().replaceAll('\n', '\r')}\recho all "${until.slice(4)}"\r`);
  await terminal.see(until);
  return terminal.screen.slice(from);
}

describe(PAGE, () => {
  before(function () {
    needsRoot(this);
    needsPrograms(this, 'unshare', 'ip', 'curl', 'zsh');
  });

  it('has ways in of at most five lines, without the configuration of a proxy', () => {
    const ways = /^## Three ways.*?(?=^## )/ms.exec(readFileSync(join(ROOT, PAGE), 'utf8'))![0];
    const blocks = Array.from(ways.matchAll(/^```(\w+)\n(.*?)^```$/gms), ([, language, text]) => ({
      language,
      lines: text!.trimEnd().split('\n').length,
    }));
    assert.deepEqual(
      blocks.map(({ language }) => language),
      ['sh', 'js', 'sh'],
    );
    for (const { lines } of blocks) assert.ok(lines <= 5);
  });

  for (const shell of ['bash', 'zsh'] as const) {
    describe(`pasted into ${shell}, twice`, () => {
      let machine: Machine;
      let terminal: TerminalSession;
      beforeEach(async () => {
        machine = new Machine();
        terminal = machine.terminal(shell);
        await terminal.see('READY');
      });
      afterEach(() => terminal.close());

      it('has a first command that prints what the page shows, and then says that the name is taken', async () => {
        const withoutSecret = (text: string) => text.replaceAll(/svc_\w{12}_\w*…?/g, 'svc_…');
        const command = blockWith('create "CI deploy"', PAGE);
        const shown = blockWith('Created API key', PAGE, 'text');
        const printed = await paste(terminal, command, 'all created');
        assert.ok(withoutSecret(printed).includes(withoutSecret(shown)), printed);
        assert.match(await paste(terminal, command, 'all refused'), /already exists\. Pass --overwrite to replace it/);
      });

      it('has keys for scripts, which leave nothing behind', async () => {
        for (const time of ['all once', 'all twice']) {
          const printed = await paste(terminal, blockWith('Backup job', PAGE), time);
          assert.match(printed, /^valid: API key "Backup job" .*^Successfully deleted 1 API key$/ms);
        }
      });

      it('has a guard that accepts the key that is made for it, and ends, by the name of the program in a clone', async () => {
        await paste(terminal, `cd '${ROOT}' && ${blockWith('alias svc-api', PAGE)}`, 'all named');
        const service = `node -e 'http.createServer((_, answer) => answer.end("guarded")).listen(3000, "127.0.0.1")' &`;
        await paste(terminal, service, 'all there');
        for (const time of ['all once', 'all twice']) {
          const printed = await paste(terminal, blockWith('svc-api guard', PAGE), time);
          assert.match(printed, /^guarded/m);
          assert.doesNotMatch(printed, /EADDRINUSE|is in use/);
          const ended = 'wait "$GUARD"; curl --silent http://127.0.0.1:8080/; echo "curl: $?"';
          assert.match(await paste(terminal, ended, 'all ended'), /^curl: 7\r?$/m);
        }
      });

      it('leads to a guard that accepts no other keys', async () => {
        for (const time of ['all once', 'all twice']) {
          const printed = await paste(terminal, blocksOf('docs/guard.md')[0]!, time);
          assert.match(printed, /^Wall%20display: 200\r?$/m);
          assert.match(printed, /"code":"UNAUTHENTICATED".*: 401\r?$/m);
          assert.doesNotMatch(printed, /EADDRINUSE|is in use/);
        }
      });
    });
  }

  it('has an app that checks keys in five lines, in strict types', async () => {
    const machine = new Machine();
    const app = blockWith('bearerAuth', PAGE, 'js');
    assert.equal(app.trimEnd().split('\n').length, 5);
    const packages = join(machine.folder, 'node_modules');
    mkdirSync(packages);
    symlinkSync(ROOT, join(packages, 'svc-api'));
    for (const name of ['express', '@types']) symlinkSync(join(ROOT, 'node_modules', name), join(packages, name));
    writeFileSync(join(machine.folder, 'package.json'), '{"type":"module"}');
    for (const name of ['app.ts', 'app.mjs']) writeFileSync(join(machine.folder, name), app);
    const { code, stdout, stderr } = await machine.run(`
      '${ROOT}/node_modules/.bin/tsc' --noEmit --strict --module nodenext --target es2024 --types node app.ts
      for permission in DASHBOARD:READ_ANY DOCKER:READ_ANY; do
        echo "Authorization: Bearer $(svc-api apikey create "Key \${permission%:*}" --permissions $permission)" >> keys
      done
      node app.mjs &
      curl --silent --retry 99 --retry-delay 1 --retry-connrefused http://127.0.0.1:3000/; echo
      while read -r line; do echo "$line" | curl --silent -H @- http://127.0.0.1:3000/; echo; done < keys
    `);
    assert.equal(code, 0, stdout + stderr);
    const [unknown, dashboard, docker] = stdout.split('\n');
    assert.match(unknown!, /"code":"UNAUTHENTICATED"/);
    assert.equal(dashboard, 'Hello, Key DASHBOARD');
    assert.match(docker!, /This key lacks DASHBOARD:READ_ANY/);
  });
});

describe('docs/how-to/caddy.md', () => {
  before(function () {
    needsRoot(this);
    needsPrograms(this, 'unshare', 'ip', 'curl');
  });

  it('has a block for Caddy that accepts the right callers', async function () {
    needsPrograms(this, 'caddy');
    const machine = new Machine();
    writeFileSync(join(machine.folder, 'service.cjs'), SERVICE);
    machine.configure('resources: [GRAFANA]\nroutes: [{ host: grafana.example.org, path: /**, resource: GRAFANA }]');
    const site = blockWith('forward_auth', 'docs/how-to/caddy.md', 'caddyfile');
    // A public certificate authority cannot issue one here.
    writeFileSync(join(machine.folder, 'Caddyfile'), `{\n\tlocal_certs\n\tskip_install_trust\n}\n${site}`);
    const keys = {
      reader: '--permissions GRAFANA:READ_ANY',
      author: '--permissions GRAFANA:CREATE_ANY',
      guest: '--roles GUEST',
      near: '--permissions GRAFANA:READ_ANY --allow-from 127.0.0.1',
      far: '--permissions GRAFANA:READ_ANY --allow-from 203.0.113.7',
    };
    const upgrade = (...protocols: string[]) => ['Connection: Upgrade', ...protocols.map((each) => `Upgrade: ${each}`)];
    /** Requests with each key, and their answers: the status, and the method that the service received. */
    const requests: [key: keyof typeof keys | '', headers: string[], answer: string, data?: string][] = [
      ['reader', [], '200 GET'],
      ['reader', [], '403', 'text'],
      ['author', [], '200 POST', 'text'],
      ['', [], '401'],
      ['guest', [], '403'],
      ['near', [], '200 GET'],
      ['far', [], '403'],
      ['far', ['X-Forwarded-For: 203.0.113.7'], '403'],
      ['far', ['X-Real-IP: 203.0.113.7', 'Forwarded: for=203.0.113.7'], '403'],
      ['reader', ['X-Forwarded-For: 203.0.113.7'], '200 GET'],
      ['reader', ['X-Auth-Roles: ADMIN', 'X-Auth-Key-Name: Root', 'x-auth-groups: admins'], '200 GET'],
      ['reader', ['X_Auth_Roles: ADMIN', 'X_Auth_Groups: admins'], '200 GET'],
      ['reader', ['X.Auth.Roles: ADMIN'], '403'],
      ['reader', ['Connection: X-Auth-Key-Name'], '200 GET'],
      ['reader', upgrade('websocket'), '101 GET'],
      ['', upgrade('websocket'), '401'],
      ['reader', upgrade('h2c'), '200 GET'],
      ['reader', upgrade('websocket, h2c'), '200 GET'],
      ['reader', upgrade('websocket', 'h2c'), '200 GET'],
      ['reader', upgrade('h2c', 'websocket'), '200 GET'],
      ['author', upgrade('websocket'), '200 POST', ''],
    ];
    const host = /^(\S+) \{$/m.exec(site)![1]!;
    const curl = 'curl --silent --retry 99 --retry-delay 1 --retry-connrefused --retry-all-errors';
    const asked = requests.map(([key, headers, , data]) => {
      const words = [...(key === '' ? [] : [`@${key}`]), ...headers].map((header) => `-H '${header}'`);
      return `ask ${words.join(' ')} ${data === undefined ? '' : `-d '${data}'`}`;
    });
    const { code, stdout, stderr } = await machine.run(
      [
        'node service.cjs > service.log & svc-api serve > serve.log 2>&1 &',
        'caddy run --config Caddyfile --adapter caddyfile > caddy.log 2>&1 &',
        ...Object.entries(keys).map(
          ([name, grants]) =>
            `echo "Authorization: Bearer $(svc-api apikey create ${name} ${grants} 2> /dev/null)" > ${name}`,
        ),
        `${curl} http://127.0.0.1:4000/readyz http://127.0.0.1:3000/ > ready`,
        `ask() { ${curl} --insecure --http1.1 --resolve ${host}:443:127.0.0.1 --write-out '%{http_code} ' --output body "$@" 'https://${host}/a?b=1'; head -1 body; echo; }`,
        ...asked,
      ].join('\n'),
    );
    assert.equal(code, 0, stderr + stdout);
    const answers = stdout.split(/\n+/).filter((line) => line !== '');
    for (const [index, [key, , expected]] of requests.entries()) {
      const [, status, body] = /^(\d+) (.*)$/.exec(answers[index]!)!;
      const { method, url, headers } = JSON.parse(body!) as Partial<Got>;
      assert.equal([status, method].join(' ').trim(), expected, asked[index]);
      if (!headers) continue;
      assert.equal(url, '/a?b=1');
      const { 'x-auth-key-name': name, 'x-auth-roles': roles, 'x-auth-permission': permission, ...others } = headers;
      const required = method === 'POST' ? 'GRAFANA:CREATE_ANY' : 'GRAFANA:READ_ANY';
      assert.deepEqual([name, roles || '', permission], [key, '', required], asked[index]);
      assert.deepEqual([others['x-forwarded-for'], others['authorization']], ['127.0.0.1', undefined]);
      assert.deepEqual(
        Object.keys(others).filter((other) => /^x.auth/.test(other)),
        ['x-auth-key-id'],
      );
      assert.equal(others['upgrade'], expected.startsWith('101') ? 'websocket' : undefined);
    }
    assert.equal(answers.length, requests.length);
  });
});
