import assert from 'node:assert/strict';
import { testCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { type RemoteStore, remoteStore, stopRemoteStores } from '../support/remote.ts';
import { tempStore } from '../support/temp.ts';

describe('commands of features where a server is named', () => {
  let database: string;
  let server: RemoteStore;
  before(async () => {
    database = tempStore();
    server = await remoteStore(database);
  });
  after(stopRemoteStores);

  for (const args of [
    ['export', '--to', '/nonexistent/other.sqlite'],
    ['export', '--to', '/nonexistent/keys.jsonl'],
    ['export'],
    ['import', '-'],
    ['scan', '-'],
  ] as const)
    it(`need the store itself, which they say, and do nothing: ${args.join(' ')}`, async () => {
      const env = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
      for (const more of [[], ['--server', server.url]]) {
        const { stdout, stderr, code } = await runCliHere(['apikey', ...args, ...more], { env, input: '' });
        assert.match(stderr, /^Error: "svc-api .*" needs the key store itself, not the server http:.*\n/);
        assert.match(stderr, /\nCode: STORE_REQUIRED\n/);
        assert.deepEqual([stdout, code], ['', 2]);
      }
    });

  it('adopt no keys by apply', async () => {
    const adopting = await testCli(database).run(['apikey', 'apply', '-f', '-', '--adopt', '--dry-run'], {
      env: { SVC_API_DATABASE: '', SVC_API_SERVER: server.url, SVC_API_KEY: server.key },
      input: 'keys: []',
    });
    assert.match(
      adopting.stderr,
      /Only the operator can adopt keys\. Run the command on the machine with the store.*\nCode: STORE_REQUIRED/,
    );
  });

  it('print completions without a word', async () => {
    const env = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
    assert.equal((await runCliHere(['autocomplete', 'bash'], { env, input: '' })).code, 0);
  });
});
