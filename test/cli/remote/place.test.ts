import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { type RemoteStore, remoteStore, stopRemoteStores } from '../../support/remote.ts';
import { tempStore } from '../../support/temp.ts';

/** Commands that need the store itself, with their required arguments. */
const STORE_COMMANDS: readonly (readonly string[])[] = [
  ['apikey', 'update', 'CI', '--detach'],
  ['apikey', 'verify', '-'],
  ['apikey', 'log', '--verify'],
  ['apikey', 'log', '--prune', '--until', '1w', '--yes'],
];

describe('whose keys a command works on', () => {
  let database: string;
  let server: RemoteStore;
  before(async () => {
    database = tempStore();
    server = await remoteStore(database);
    await testCli(database).given('Here');
  });
  after(stopRemoteStores);
  const run = async (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const { stdout, stderr, code } = await runCliHere(args, { env, input: '' });
    return { stdout, stderr, code, error: stderr.split('\n')[0]!.replace('Error: ', '') };
  };

  it('is set by flags before the environment', async () => {
    const key = { SVC_API_KEY: server.key };
    const elsewhere = tempStore();
    await testCli(elsewhere).given('There');
    for (const [args, env] of [
      [['--server', server.url], key],
      [['--server', `${server.url}/graphql`], { ...key, SVC_API_DATABASE: elsewhere }],
      [[], { ...key, SVC_API_SERVER: server.url }],
      [[], { ...key, SVC_API_SERVER: server.url, SVC_API_DATABASE: '' }],
    ] as const)
      assert.equal((await run(['apikey', 'show', 'Here', ...args], env)).code, 0, JSON.stringify([args, env]));
    const named = ['apikey', 'show', 'There', '--database', elsewhere];
    assert.equal((await run(named, { ...key, SVC_API_SERVER: server.url })).code, 0);
  });

  it('is an error where it is not clear', async () => {
    const both = { SVC_API_SERVER: server.url, SVC_API_DATABASE: database, SVC_API_KEY: server.key };
    assert.deepEqual(
      [(await run(['apikey', 'list'], both)).error, (await run(['apikey', 'list'], both)).code],
      [
        'SVC_API_SERVER and SVC_API_DATABASE are both set, so it is not clear which keys to use. Leave one of them out.',
        2,
      ],
    );
    const flags = ['apikey', 'list', '--server', server.url, '--database', database];
    assert.match((await run(flags)).error, /^--server and --database are both given, so/);
    assert.match(
      (await run(['apikey', 'list', '--server', 'keys.example.org'])).error,
      /is not the address of a server/,
    );
  });

  it('is always a store for some commands, which say so and do nothing', async () => {
    for (const args of STORE_COMMANDS) {
      const env = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
      for (const result of [await run(args, env), await run([...args, '--server', server.url])]) {
        assert.match(
          result.stderr,
          /^Error: "svc-api .*" needs the key store itself, not the server http:.*\n/,
          args.join(' '),
        );
        assert.match(result.stderr, /\nCode: STORE_REQUIRED\n/);
        assert.deepEqual([result.stdout, result.code], ['', 2]);
      }
    }
  });

  it('needs a key from the environment', async () => {
    const args = ['apikey', 'show', 'Here', '--server', server.url];
    const none = await run(args);
    assert.equal(none.code, 1);
    assert.ok(none.error?.startsWith(`There is no key for ${server.url}. `), none.error);
    assert.match(none.stderr, /\nCode: UNAUTHENTICATED\n/);
    const wrong = await run(args, { SVC_API_KEY: `${server.key.slice(0, -1)}_` });
    assert.equal(wrong.error, `The server ${server.url} does not accept the key that was sent.`);
  });

  it('sends no key over a network in the clear, unless told to', async () => {
    // 192.0.2.0/24 is reserved for documentation and unreachable.
    for (const url of ['http://192.0.2.1:4000', 'http://keys.example.org']) {
      const { error, stderr, code } = await run(['apikey', 'list', '--server', url], { SVC_API_KEY: server.key });
      assert.equal(
        error,
        `The key would be sent to ${url} without encryption. Use https:, or pass --insecure if the network is safe.`,
      );
      assert.match(stderr, /\nCode: SERVER_INSECURE\n/);
      assert.equal(code, 2);
    }
    // Another notation of 127.0.0.1, which does not count as loopback.
    const url = server.url.replace('127.0.0.1', '[::ffff:127.0.0.1]');
    for (const [flags, expected] of [
      [[], 2],
      [['--insecure'], 0],
    ] as const) {
      const args = ['apikey', 'show', 'Here', '--server', url, ...flags];
      assert.equal((await run(args, { SVC_API_KEY: server.key })).code, expected);
    }
  });

  it('may be the servers and the stores of other commands without a word', async () => {
    const env = { SVC_API_SERVER: server.url, SVC_API_KEY: server.key };
    assert.equal((await run(['apikey', 'help', 'exit-codes'], env)).code, 0);
  });
});
