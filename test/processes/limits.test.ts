import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { cleanEnv } from '../support/process.ts';

const CHILD = fileURLToPath(new URL('../support/limits-child.ts', import.meta.url));
/** So slow that nothing becomes available again during the test. */
const LIMIT = '1000/month';
/** The largest number of requests that a process leases at once. */
const LARGEST_LEASE = 100;

interface Spent {
  admitted: number;
  leased: number;
}

describeOnEach('processes that share a limit', () => {
  let test: TestKeys;
  let keyId: string;
  beforeEach(async () => {
    test = await openTestKeys({ asServer: true });
    keyId = (await test.keys.create({ name: 'Key', roles: ['GUEST'], limits: [LIMIT] }, OPERATOR)).apiKey.id;
  });
  afterEach(() => test.store.close());
  const start = (task: 'spend' | 'hold', requests: number): ChildProcess =>
    spawn(process.execPath, [CHILD, task, test.database, keyId, LIMIT, `${requests}`], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: cleanEnv(),
    });
  const said = async (child: ChildProcess) => String(((await once(child.stdout!, 'data')) as [Buffer])[0]);
  const spentBy = async (child: ChildProcess): Promise<Spent> => {
    child.stdin!.write('begin');
    return JSON.parse(await said(child)) as Spent;
  };
  /** Starts several processes at once. @returns how many requests each accepted */
  const spend = async (...requests: number[]): Promise<number[]> => {
    const children = requests.map((each) => start('spend', each));
    for (const child of children) assert.equal(await said(child), 'ready\n');
    return Promise.all(
      children.map(async (child) => {
        const [{ admitted }] = await Promise.all([spentBy(child), once(child, 'exit')]);
        return admitted;
      }),
    );
  };

  it('together accept no more than one process would, and return what they leave', async () => {
    const together = await spend(500, 400, 300);
    const sum = together.reduce((total, admitted) => total + admitted, 0);
    assert.ok(sum <= 1000, together.join());
    assert.ok(sum >= 1000 - 2 * LARGEST_LEASE, together.join());
    const [rest] = await spend(1000);
    assert.equal(sum + rest!, 1000, 'what was left is there for others');
  });

  it('lose only the leases of a killed one', async () => {
    const child = start('hold', 250);
    assert.equal(await said(child), 'ready\n');
    const { admitted, leased } = await spentBy(child);
    assert.ok(leased > admitted / 2, 'most were accepted by leases');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const [rest] = await spend(1500);
    assert.ok(admitted + rest! <= 1000, `${admitted} and ${rest}`);
    assert.ok(admitted + rest! >= 1000 - LARGEST_LEASE, `${admitted} and ${rest}`);
  });
});
