import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal, idOf, storedKey } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const DESCENDANTS = 50_000;
const CLIENTS = 4;
/** The minimum of requests answered during a step that cannot be divided. */
const MIN_ANSWERED = 3;

describe(`a server that deletes ${DESCENDANTS} keys which one key has created`, () => {
  let test: TestService;
  let admin: string;
  let writer: Worker;
  beforeEach(async () => {
    test = await startTestService();
    const started = once(process, 'worker') as Promise<[Worker]>;
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    [writer] = await started;
  });
  afterEach(() => test.stop());

  /**
   * Deletes a key with its descendants while clients send requests.
   * @returns how many were answered during commit and checkpoint
   */
  async function deleteBesideClients(parent: string): Promise<number[]> {
    const children = Array.from({ length: DESCENDANTS }, (_, at) =>
      storedKey(`${parent}.${at}`, { createdBy: idOf(parent) }),
    );
    await test.store.repository.write((into) => into.insert([storedKey(parent), ...children]));
    let answered = 0;
    let before = 0;
    let wasInTransaction = false;
    // The last answer within the transaction is followed by that to the commit, and then by that to the checkpoint.
    const afterTransaction: number[] = [];
    const listen = ({ inTransaction }: { inTransaction: boolean }) => {
      if (!inTransaction && (wasInTransaction || afterTransaction.length > 0)) afterTransaction.push(answered - before);
      wasInTransaction = inTransaction;
      before = answered;
    };
    writer.on('message', listen);
    const done = new AbortController();
    const client = async () => {
      while (!done.signal.aborted) {
        assert.equal((await query(test.url, admin, '{ me { name } }')).status, 200);
        answered += 1;
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    const deleted = await test.keys.delete([idOf(parent)], OPERATOR);
    done.abort();
    await Promise.all(clients);
    writer.off('message', listen);
    assert.equal(deleted.length, DESCENDANTS + 1);
    return afterTransaction.slice(0, 2);
  }

  it('answers others during the commit, and during the checkpoint', async () => {
    let round = 0;
    // A pause of the machine can spoil a round, so it can repeat with other keys.
    await until(async () => {
      const answered = await deleteBesideClients(`top${(round += 1)}`);
      return answered.length === 2 && answered.every((count) => count >= MIN_ANSWERED);
    });
  });
});
