import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestCli, testCli } from '../support/cli.ts';
import { type Fifo, openFifo } from '../support/fifo.ts';
import { type Finished, finished, startCli } from '../support/process.ts';
import { isAccepted, keyNamed, keysIn, namesIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** After this many failed writes following its commit, a command is known to retry. */
const RETRIES = 30;

describe('a secret that waits for a reader who does not read', () => {
  const pipes: Fifo[] = [];
  afterEach(() => {
    for (const pipe of pipes.splice(0)) pipe.close();
  });

  const unread = (isFull = true) => {
    const pipe = openFifo({ isFull });
    pipes.push(pipe);
    return pipe;
  };

  interface Interruption {
    pipe?: Fifo;
    /** True if stderr is the same pipe. */
    isShared?: boolean;
    signal?: NodeJS.Signals;
    /** True if the change is committed, and its secrets are being delivered. */
    committed: () => Promise<boolean>;
  }

  /** Runs a command whose stdout is not read, and sends it a signal once it waits. */
  async function interrupt(
    { database }: TestCli,
    args: readonly string[],
    { pipe = unread(), isShared = false, signal = 'SIGTERM', committed }: Interruption,
  ): Promise<Pick<Finished, 'code' | 'signal' | 'stderr'>> {
    const child = startCli(['apikey', ...args], {
      stdio: ['ignore', pipe.input, isShared ? pipe.input : 'pipe'],
      env: { SVC_API_DATABASE: database },
    });
    try {
      const end = finished(child);
      await until(committed);
      let before = writesOf(child.pid!);
      await until(() => {
        const { calls, characters } = writesOf(child.pid!);
        if (characters !== before.characters) before = { calls, characters };
        return calls > before.calls + RETRIES;
      });
      child.kill(signal);
      const { code, signal: killedBy, stderr } = await end;
      return { code, signal: killedBy, stderr };
    } finally {
      child.kill('SIGKILL');
    }
  }

  const hasKey = (cli: TestCli, name: string) => async () => (await namesIn(cli.database)).includes(name);
  const create = ['create', '--name', 'Lost', '--roles', 'GUEST'];

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const) {
    for (const args of [create, [...create, '--json']]) {
      it(`is given up at ${signal}, and its key removed: ${args.join(' ')}`, async () => {
        const cli = testCli();
        await cli.given('Kept');
        assert.deepEqual(await interrupt(cli, args, { signal, committed: hasKey(cli, 'Lost') }), {
          code,
          signal: null,
          stderr: `Error: Ended by ${signal}. The key was removed again, because its secret was not delivered.\n`,
        });
        assert.deepEqual(await namesIn(cli.database), ['Kept']);
      });
    }
  }

  it('is given up where the error waits for the same reader', async () => {
    const cli = testCli();
    await cli.given('Kept');
    for (const args of [create, [...create, '--json']]) {
      const { code } = await interrupt(cli, args, { isShared: true, committed: hasKey(cli, 'Lost') });
      assert.equal(code, 143);
      assert.deepEqual(await namesIn(cli.database), ['Kept']);
    }
  });

  it('leaves the key that it replaces as it was', async () => {
    const cli = testCli();
    const { key, id } = await cli.given('Lost');
    const replaced = async () => (await keyNamed(cli.database, 'Lost'))?.id !== id;
    const { code } = await interrupt(cli, [...create, '--overwrite'], { committed: replaced });
    assert.equal(code, 143);
    assert.ok(await isAccepted(cli.database, key));
    assert.equal((await keysIn(cli.database)).length, 1);
  });

  for (const args of [[], ['--json'], ['--grace', '0s']]) {
    it(`keeps only the old secret: rotate ${args.join(' ')}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('CI');
      const before = await keyNamed(cli.database, 'CI');
      const rotated = async () => (await keyNamed(cli.database, 'CI'))?.publicId !== before?.publicId;
      assert.deepEqual(await interrupt(cli, ['rotate', 'CI', ...args], { committed: rotated }), {
        code: 143,
        signal: null,
        stderr: 'Error: Ended by SIGTERM. The new secret could not be delivered, so the rotation was undone.\n',
      });
      assert.ok(await isAccepted(cli.database, key));
      const { publicId, rotation } = (await keyNamed(cli.database, 'CI'))!;
      assert.deepEqual([publicId, rotation], [before?.publicId, before?.rotation]);
    });
  }

  /** A file with more keys than fit into a pipe with their secrets. */
  const declareMany = () => {
    const file = join(tempFolder(), 'keys.yaml');
    const keys = Array.from({ length: 200 }, (_, index) => `  - { name: "key ${index}", roles: [GUEST] }\n`);
    writeFileSync(file, `keys:\n${keys.join('')}`);
    return file;
  };

  it('revokes those already written: apply --json', async () => {
    const cli = testCli();
    await cli.given('Kept');
    const pipe = unread(false);
    const args = ['apply', '-f', declareMany(), '--json'];
    const { code, stderr } = await interrupt(cli, args, { pipe, committed: hasKey(cli, 'key 199') });
    assert.deepEqual(
      [code, stderr],
      [143, 'Error: Ended by SIGTERM. All changes were reverted, because the new secrets could not be delivered.\n'],
    );
    assert.deepEqual(await namesIn(cli.database), ['Kept']);
    const [secret] = /svc_\w{62}/.exec(pipe.read()) ?? [];
    assert.ok(secret !== undefined && !(await isAccepted(cli.database, secret)));
  });

  it('concerns no secret that is in a file: apply --secrets-dir has made its changes', async () => {
    const cli = testCli();
    await cli.given('Kept');
    const folder = join(tempFolder(), 'secrets');
    const args = ['apply', '-f', declareMany(), '--secrets-dir', folder];
    const published = async () => hasNames(folder);
    await interrupt(cli, args, { committed: published });
    assert.equal((await keysIn(cli.database)).length, 201);
    for (const name of ['key 0', 'key 199'])
      assert.ok(await isAccepted(cli.database, readFileSync(join(folder, name), 'utf8').trim()));
  });
});

/** A process's number of write calls, including failed ones, and the bytes written. */
function writesOf(pid: number): { calls: number; characters: number } {
  const text = readFileSync(`/proc/${pid}/io`, 'utf8');
  const numberOf = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)![1]);
  return { calls: numberOf('syscw'), characters: numberOf('wchar') };
}

/** True if each secret has the name of its key. */
function hasNames(folder: string): boolean {
  try {
    const names = readdirSync(folder);
    return names.length === 200 && names.every((name) => name.startsWith('key '));
  } catch {
    return false;
  }
}
