import assert from 'node:assert/strict';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempStore } from '../support/temp.ts';

const ROUNDS = 6;
const CLIENTS = 4;

/** The changes that a server has confirmed: secrets by key name. */
interface Answered {
  /** Created, and not yet requested to be deleted: an unconfirmed deletion has possibly happened. */
  readonly created: Map<string, string>;
  readonly deleted: Map<string, string>;
}

describeOnEach('a server that is killed under load', () => {
  it(`has done what it confirmed, and the next one continues, in ${ROUNDS} rounds`, async () => {
    const cli = testCli(tempStore());
    const { key: admin } = await cli.given('Admin', { roles: ['ADMIN'] });
    for (let round = 0; round < ROUNDS; round += 1) {
      const server = await startServe(cli.database);
      const answered: Answered = { created: new Map(), deleted: new Map() };
      let killed: Promise<void> | undefined;
      const killInTime = () => {
        // At a different moment in each round.
        if (answered.created.size + answered.deleted.size >= 5 + 7 * round) killed ??= server.stop('SIGKILL');
      };
      const prefixes = Array.from({ length: CLIENTS }, (_, client) => `Round ${round} client ${client}`);
      await Promise.all(
        prefixes.map((prefix) => change(server.url, admin, { prefix, answered, afterEach: killInTime })),
      );
      await killed;
      await checkAll(answered);
    }
    const { code, stdout } = await cli.run(['apikey', 'log', '--verify']);
    assert.equal(code, 0, stdout);

    /** Restarts the server, and checks that it has everything that the killed one confirmed. */
    async function checkAll({ created, deleted }: Answered): Promise<void> {
      const next = await startServe(cli.database);
      const statusOf = async (secret: string) => (await query(next.url, secret, '{ online }')).status;
      for (const [name, secret] of created) assert.equal(await statusOf(secret), 200, name);
      for (const [name, secret] of deleted) assert.equal(await statusOf(secret), 401, name);
      await next.stop();
    }
  });
});

/** Creates and deletes keys until the server is gone. */
async function change(
  url: string,
  admin: string,
  { prefix, answered, afterEach }: { prefix: string; answered: Answered; afterEach: () => void },
): Promise<void> {
  const { created, deleted } = answered;
  try {
    for (let count = 0; ; count += 1) {
      const name = `${prefix} key ${count}`;
      const { body } = await query(
        url,
        admin,
        'mutation($name: String!) { createApiKey(input: { name: $name, roles: [GUEST] }) { key apiKey { id } } }',
        { name },
      );
      const { key, apiKey } = body.data!['createApiKey'] as { key: string; apiKey: { id: string } };
      created.set(name, key);
      afterEach();
      if (count % 2 === 1) continue;
      created.delete(name);
      await query(url, admin, 'mutation($id: ID!) { deleteApiKeys(ids: [$id]) { deleted } }', { id: apiKey.id });
      deleted.set(name, key);
      afterEach();
    }
  } catch (error) {
    // The error of fetch for a broken connection.
    assert.ok(error instanceof TypeError, String(error));
  }
}
