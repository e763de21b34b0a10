import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type GuardedService, startGuarded } from '../../features/guard/support/guard.ts';
import { cleanEnv } from '../../support/process.ts';
import { needsPrograms } from '../../support/skip.ts';
import { tempFolder } from '../../support/temp.ts';

const run = promisify(execFile);

describe('a git server behind the guard', () => {
  let service: GuardedService;
  let folder: string;
  /** Key names, as the server received them. */
  const callers = new Set<string>();

  before(async function () {
    needsPrograms(this, 'git');
    folder = tempFolder();
    await git('init', '--quiet', '--bare', '--initial-branch', 'main', join(folder, 'repository.git'));
    await git('-C', join(folder, 'repository.git'), 'config', 'http.receivepack', 'true');
    service = await startGuarded((incoming, outgoing) => serveGit(incoming, outgoing), { credentials: ['basic'] });
  });
  after(() => service?.stop());

  /** Runs git with the key from its credential helper, or without one. */
  async function git(...args: readonly string[]): Promise<string> {
    const helper = '!f() { echo username=anybody; echo "password=$KEY"; }; f';
    const env = cleanEnv({
      KEY: service?.secret,
      HOME: folder,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@example.org',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@example.org',
    });
    return (await run('git', ['-c', `credential.helper=${helper}`, ...args], { env })).stdout;
  }

  /** Git's own CGI program. */
  function serveGit(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { pathname, search } = new URL(incoming.url!, 'http://a');
    callers.add(String(incoming.headers['x-auth-key-name']));
    const child = spawn('git', ['http-backend'], {
      env: cleanEnv({
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: incoming.method,
        CONTENT_TYPE: incoming.headers['content-type'],
        HTTP_CONTENT_ENCODING: incoming.headers['content-encoding'],
        HTTP_GIT_PROTOCOL: String(incoming.headers['git-protocol'] ?? ''),
        REMOTE_USER: String(incoming.headers['x-auth-key-name']),
      }),
    });
    incoming.pipe(child.stdin).on('error', () => {});
    let head: Buffer = Buffer.alloc(0);
    child.stdout.on('data', (chunk: Buffer) => {
      if (outgoing.headersSent) return void outgoing.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return undefined;
      const lines = head.toString('latin1', 0, end).split('\r\n');
      const headers = new Map(lines.map((line) => line.split(': ', 2) as [string, string]));
      outgoing.writeHead(Number(headers.get('Status')?.slice(0, 3) ?? 200), {
        'Content-Type': headers.get('Content-Type')!,
      });
      return void outgoing.write(head.subarray(end + 4));
    });
    child.stdout.once('end', () => outgoing.end());
  }

  it('accepts pushes and clones with a key as the password', async () => {
    const [one, other] = [join(folder, 'one'), join(folder, 'other')];
    const url = `${service.url}/repository.git`;
    await git('clone', '--quiet', url, one);
    // Large enough that git sends chunks, after a first request to try the key.
    const content = randomBytes(3_000_000);
    writeFileSync(join(one, 'file'), content);
    await git('-C', one, 'add', '.');
    await git('-C', one, 'commit', '--quiet', '-m', 'Add a file');
    await git('-C', one, 'push', '--quiet', 'origin', 'HEAD:main');
    await git('clone', '--quiet', url, other);
    assert.deepEqual(readFileSync(join(other, 'file')), content);
    assert.deepEqual([...callers], ['Caller']);
  });

  it('gives nothing to others', async () => {
    callers.clear();
    const without = run('git', ['ls-remote', `${service.url}/repository.git`], {
      env: cleanEnv({ HOME: folder, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' }),
    });
    await assert.rejects(without, /could not read Username/);
    assert.equal(callers.size, 0);
  });
});
