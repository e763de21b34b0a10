import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cleanEnv, finished } from '../../support/process.ts';
import { rawPost, sendAndCut, sendRaw } from '../../support/raw-http.ts';
import { query } from '../../support/server.ts';

const CHILD = fileURLToPath(new URL('../../support/console-child.ts', import.meta.url));

describe('the console', () => {
  const started: ChildProcess[] = [];
  after(() => {
    for (const child of started) child.kill('SIGKILL');
  });

  it('stays empty, whatever requests a server gets', async () => {
    const child = spawn(process.execPath, [CHILD], { stdio: ['pipe', 'pipe', 'pipe'], env: cleanEnv() });
    started.push(child);
    const end = finished(child);
    const [line] = (await once(child.stdout, 'data')) as [string];
    const { url, secret } = JSON.parse(line) as { url: string; secret: string };
    const headers = [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'];

    const replies: string[] = [];
    const documents = [
      '{',
      '{ nothing }',
      '{ fails }',
      '{ me { name } }',
      'subscription { a }',
      'query ($a: Int!) { online }',
      '{ apiKeys(first: -1) { edges { cursor } } }',
    ];
    for (const document of documents) replies.push(JSON.stringify((await query(url, secret, document)).body));
    replies.push(JSON.stringify((await query(url, 'x', '{ online }')).body));
    for (const body of ['', '{', '[]', '{"query":1}', '\ufffe'])
      replies.push((await sendRaw(url, rawPost(headers, body))).body);
    for (const bytes of [
      'hello\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a b\r\n\r\n',
      `GET / HTTP/1.1\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
    ])
      replies.push((await sendRaw(url, bytes)).body);
    // Clients that disconnect: within a body, and before the answer.
    await sendAndCut(url, rawPost(headers, '{"que', 1000));
    await sendAndCut(url, rawPost(headers, '{"query":"{ endless }"}'));
    await sendAndCut(url, rawPost(headers, '{"query":"{ __schema { types { name fields { name } } } }"}'));
    assert.deepEqual((await query(url, secret, '{ online }')).body, { data: { online: true } });

    child.stdin.end();
    const { code, stdout, stderr } = await end;
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: line, stderr: '' });
    assert.equal(replies.length, 16);
    for (const reply of replies) {
      assert.doesNotMatch(reply, /not for the console|node_modules|file:\/\/|\/tmp|\n? {4}at /);
      assert.ok(!reply.includes(secret.slice(17, 30)));
    }
  });
});
