import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal, idOf, storedKey } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const DESCENDANTS = 50_000;
const CLIENTS = 4;
/** How many requests are answered, at least, while a step is under way that cannot be divided. */
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
    const children = Array.from({ length: DESCENDANTS }, (_, at) =>
      storedKey(`child ${at}`, { createdBy: idOf('parent') }),
    );
    await test.store.repository.write((writer) => writer.insert([storedKey('parent'), ...children]));
  });
  afterEach(() => test.stop());

  it('answers others while it commits that, and while it writes what it has committed into the file', async () => {
    let answered = 0;
    let before = 0;
    let wasInTransaction = false;
    // The last answer within the transaction is followed by that to the commit, and then by that to the checkpoint.
    const afterTransaction: number[] = [];
    writer.on('message', ({ inTransaction }: { inTransaction: boolean }) => {
      if (!inTransaction && (wasInTransaction || afterTransaction.length > 0)) afterTransaction.push(answered - before);
      wasInTransaction = inTransaction;
      before = answered;
    });

    const done = new AbortController();
    const client = async () => {
      while (!done.signal.aborted) {
        assert.equal((await query(test.url, admin, '{ me { name } }')).status, 200);
        answered += 1;
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    const deleted = await test.keys.delete([idOf('parent')], OPERATOR);
    done.abort();
    await Promise.all(clients);
    assert.equal(deleted.length, DESCENDANTS + 1);
    const [duringCommit = 0, duringCheckpoint = 0] = afterTransaction;
    assert.ok(duringCommit >= MIN_ANSWERED && duringCheckpoint >= MIN_ANSWERED, JSON.stringify(afterTransaction));
  });
});
