import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Browser, type ShownPage } from '../support/plain-browser.ts';
import { hostEnv, mustRun, packedFile, printable, run } from '../support/host.ts';
import { blocksOf } from '../support/pages.ts';
import { accepts, freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const [START, LOOK] = blocksOf('examples/web-app/README.md') as [string, string];
const ANY_SECRET = /svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/g;

describe('examples/web-app, in the packed package', () => {
  let folder: string;
  let port: number;
  let app: ChildProcess;
  let isRunning = false;
  /** Its output on both streams. */
  let printed = '';
  /** The person's key, and the app's address. */
  let own: string;
  let url: string;
  /** The text of all pages that the browsers saw. */
  const seen: string[] = [];

  before(async () => {
    const home = tempFolder();
    const dependencies = { 'svc-api': `file:${packedFile()}` };
    writeFileSync(join(home, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    await mustRun('npm', install, { cwd: home });
    folder = join(home, 'node_modules/svc-api/examples/web-app');
    port = await freePort();
    const env = hostEnv({ PORT: `${port}`, npm_config_prefer_offline: 'true', npm_config_loglevel: 'error' });
    app = spawn('bash', ['-ec', START], { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    isRunning = true;
    app.once('close', () => (isRunning = false));
    for (const stream of [app.stdout!, app.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
    const ended = once(app, 'exit');
    while (!printed.includes('Ctrl-C'))
      if ((await Promise.race([once(app.stdout!, 'data'), ended]))[0] === 1) assert.fail(printable(printed));
    [own] = printed.match(ANY_SECRET)!;
    [, url] = /^Open (\S+) /m.exec(printed) as unknown as [string, string];
  });
  after(() => {
    if (isRunning) process.kill(-app.pid!, 'SIGTERM');
  });

  /** Presses the button that leads to svc-api, and approves there. */
  async function agree(browser: Browser, page: ShownPage, button: string): Promise<ShownPage> {
    const asked = await browser.submit(page, button);
    assert.match(asked.text, /<h1>Notes app asks for an API key<\/h1>/);
    return browser.submit(asked, 'Approve', { key: own });
  }
  /** A connected browser and its page. */
  async function connected(): Promise<{ browser: Browser; page: ShownPage }> {
    const browser = new Browser(seen);
    return { browser, page: await agree(browser, await browser.open(url), 'Connect') };
  }
  const nameOfKey = (page: ShownPage) => /<dd>(Notes app \d{8} [B-Z]{6}) /.exec(page.text)![1]!;
  /** Runs a command from the README. */
  const look = (command: string) =>
    mustRun('bash', ['-ec', LOOK.replace('svc-api apikey delete', `svc-api ${command}`)], { cwd: folder });
  const titleOf = ({ text }: ShownPage) => /<h1>(.*)<\/h1>/.exec(text)![1];

  it('listens where the README says', () => {
    assert.equal(url, `http://127.0.0.1:${port}`);
    assert.match(printed, /svc-api listens on (http:\S+), the guard on (http:\S+), .*data\/keys\.sqlite\./);
  });

  it('shows what the service answers, once the person has agreed', async () => {
    const { browser, page } = await connected();
    assert.deepEqual([page.status, page.url.href], [200, `${url}/`]);
    assert.match(page.text, /There are none yet/);
    assert.match(page.text, /<code>NOTES:READ_ANY<\/code>/);
    assert.match(await look('apikey list --wide'), new RegExp(`^${nameOfKey(page)}\t`, 'm'));
    assert.match(browser.cookies.get('session')!, /^[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
  });

  it('has pages that load, run and frame nothing of others, and are not cached', async () => {
    const { headers } = await new Browser(seen).open(url);
    const [, server] = /svc-api listens on (\S+),/.exec(printed)!;
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' ${server}`,
    );
    assert.equal(headers.get('cache-control'), 'no-store');
    const elsewhere = await new Browser(seen).open(url.replace('127.0.0.1', 'localhost'));
    assert.deepEqual([elsewhere.status, elsewhere.text.includes(`Open ${url} instead`)], [421, true]);
  });

  it('takes no form of another page, of another port of the machine neither', async () => {
    for (const path of ['connect', 'notes', 'disconnect']) {
      const headers = { Origin: 'http://127.0.0.1:1', 'Sec-Fetch-Site': 'same-site' };
      const reply = await fetch(`${url}/${path}`, { method: 'POST', headers, body: new URLSearchParams() });
      assert.deepEqual([reply.status, await reply.text()], [403, 'Forbidden'], path);
    }
  });

  it('gets nothing if the person refuses', async () => {
    const browser = new Browser(seen);
    const asked = await browser.submit(await browser.open(url), 'Connect');
    const page = await browser.submit(asked, 'Deny');
    assert.deepEqual([page.status, page.url.searchParams.get('error')], [403, 'access_denied']);
    assert.match(page.text, /<p role="alert">You have refused\.<\/p>/);
    assert.match((await browser.open(url)).text, />Connect</);
  });

  it('accepts no answer with a wrong state, without one, or for another browser', async () => {
    const browser = new Browser(seen);
    const asked = await browser.leadsTo(await browser.open(url), 'Connect');
    const state = asked.searchParams.get('state')!;
    const answer = { code: 'a'.repeat(43), iss: asked.origin };
    const callback = (parameters: Record<string, string>) =>
      `${url}/callback?${new URLSearchParams(parameters).toString()}`;
    for (const [who, parameters] of [
      [browser, { ...answer, state: `${state}x` }],
      [browser, answer],
      [new Browser(seen), { ...answer, state }],
    ] as const) {
      const page = await who.open(callback(parameters));
      assert.equal(page.status, 400);
      assert.match(page.text, /This answer was used already, or is not for this browser/);
    }
    // The request is still pending, and this code is invalid.
    assert.match((await browser.open(callback({ ...answer, state }))).text, /There is no key: invalid_grant\./);
  });

  it('takes no answer of another server', async () => {
    for (const iss of ['http://127.0.0.1:1', undefined]) {
      const browser = new Browser(seen);
      const asked = await browser.leadsTo(await browser.open(url), 'Connect');
      const answer = new URLSearchParams({ code: 'a'.repeat(43), state: asked.searchParams.get('state')! });
      if (iss !== undefined) answer.set('iss', iss);
      const page = await browser.open(`${url}/callback?${answer.toString()}`);
      assert.equal(page.status, 403);
      assert.match(page.text, /There is no key: .*&quot;iss&quot; \(issuer\)/);
    }
  });

  it('sends no code twice: pressing back ends no key', async () => {
    const addresses: string[] = [];
    const browser = new Browser(addresses);
    const asked = await browser.submit(await browser.open(url), 'Connect');
    const cookie = browser.cookies.get('asking')!;
    await browser.submit(asked, 'Approve', { key: own });
    const back = addresses.find((address) => address.startsWith(`${url}/callback?code=`))!;
    browser.cookies.set('asking', cookie);
    assert.equal((await browser.open(back)).status, 400);
    assert.match((await browser.open(url)).text, /Disconnect/);
    seen.push(...addresses);
  });

  it('says which permission is missing, and has it with another key if the person agrees again', async () => {
    const { browser, page } = await connected();
    const before = nameOfKey(page);
    const refused = await browser.submit(page, 'Add', { text: 'Milk & <b>eggs</b>' });
    assert.deepEqual([refused.status, titleOf(refused)], [403, 'A permission is missing']);
    assert.match(refused.text, /The key lacks <code>NOTES:CREATE_ANY<\/code>/);
    assert.equal(refused.headers.get('cache-control'), 'no-store');
    const wider = await agree(browser, refused, 'Ask for it');
    assert.match(wider.text, /<code>NOTES:READ_ANY NOTES:CREATE_ANY<\/code>/);
    assert.notEqual(nameOfKey(wider), before);
    const added = await browser.submit(wider, 'Add', { text: 'Milk & <b>eggs</b>' });
    assert.equal(added.status, 200);
    assert.match(added.text, new RegExp(`Milk &amp; &lt;b&gt;eggs&lt;/b&gt; <small>by ${nameOfKey(wider)}</small>`));
  });

  it('notices that the key was deleted, and lets the person connect again', async () => {
    const { browser, page } = await connected();
    await look(`apikey delete "${nameOfKey(page)}" --yes`);
    const ended = await browser.open(url);
    assert.match(ended.text, /<p role="alert">The key has ended, or was deleted\. Connect again\.<\/p>/);
    assert.equal((await agree(browser, ended, 'Connect')).status, 200);
  });

  it('forgets the key, and ends it where the server offers that', async () => {
    const { browser, page } = await connected();
    const { origin } = await browser.leadsTo(await new Browser(seen).open(url), 'Connect');
    const metadata = await (await fetch(`${origin}/.well-known/oauth-authorization-server`)).json();
    const session = browser.cookies.get('session')!;
    const start = await browser.submit(page, 'Disconnect');
    assert.match(start.text, />Connect</);
    assert.equal(browser.cookies.has('session'), false);
    browser.cookies.set('session', session);
    assert.match((await browser.open(url)).text, />Connect</, 'the cookie is good for nothing any more');
    const isListed = (await look('apikey list --wide')).includes(nameOfKey(page));
    assert.equal(isListed, !('revocation_endpoint' in (metadata as object)));
  });

  it('reports that the port is in use, and leaves its program alone', async () => {
    const { stderr, code } = await run('npm', ['start'], { cwd: folder, env: { PORT: `${port}` } });
    assert.match(stderr, new RegExp(`^Port ${port} is taken\\. Choose another one: PORT=3001 npm start$`, 'm'));
    assert.equal(code, 1);
    assert.equal((await connected()).page.status, 200, 'the key of the person is still one');
  });

  it('ends all that it has started on Ctrl-C, in order', async () => {
    assert.ok(processesIn(folder).length >= 5);
    const ended = once(app, 'close');
    process.kill(-app.pid!, 'SIGINT');
    await ended;
    assert.deepEqual(processesIn(folder), []);
    assert.equal(await accepts(port), false);
    assert.equal(existsSync(join(folder, 'data/keys.sqlite-wal')), false);
  });

  it('shows no key at any time but that of the person, once, in the terminal', () => {
    assert.deepEqual(printed.match(ANY_SECRET), [own]);
    assert.ok(seen.length > 100);
    assert.deepEqual(
      seen.filter((text) => new RegExp(ANY_SECRET).test(text)),
      [],
    );
    assert.doesNotMatch(printed, /Error|warn/i);
  });
});

describe('examples/web-app, in a checkout', () => {
  let folder: string;
  before(() => {
    folder = tempFolder();
    const filter = (path: string) => !/\/(node_modules|data|package-lock\.json)$/.test(path);
    for (const path of ['package.json', 'examples/web-app'])
      cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter });
  });

  it('reports that its packages are not installed', async () => {
    const { stderr, code } = await run('node', ['start.js'], { cwd: join(folder, 'examples/web-app') });
    assert.equal(stderr, 'Error: the packages of this folder are not installed. Run: npm install\n');
    assert.equal(code, 1);
  });

  it('is packed without the files of a start', async () => {
    for (const path of ['data/keys.sqlite', 'node_modules/hono/index.js', 'package-lock.json']) {
      const left = join(folder, 'examples/web-app', path);
      mkdirSync(dirname(left), { recursive: true });
      writeFileSync(left, '');
    }
    const output = await mustRun('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], { cwd: folder });
    assert.match(output, /"examples\/web-app\/start\.js"/);
    assert.doesNotMatch(output, /data|node_modules|package-lock/);
  });
});

/** The processes whose working directory is a folder. */
function processesIn(folder: string): string[] {
  return globSync('/proc/[0-9]*/cwd').filter((path) => {
    try {
      return readlinkSync(path) === folder;
    } catch {
      return false; // It has ended, or belongs to another user.
    }
  });
}
