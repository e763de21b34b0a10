import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { LOG_LEVELS } from '../../src/log.ts';
import { SECRET, testCli } from '../support/cli.ts';
import { errorText } from '../support/errors.ts';

const CREATE = ['apikey', '--create', '--roles', 'GUEST', '--name'];

describe('LOG_LEVEL', () => {
  it('takes each level, in any case, and shows no secret at any of them', async () => {
    const cli = testCli();
    await cli.given('Taken');
    const levels = [...LOG_LEVELS, 'DEBUG'];
    for (let index = 0; index < levels.length; index += 2) {
      await Promise.all(
        levels.slice(index, index + 2).map(async (level, place) => {
          const created = await cli.runProcess([...CREATE, `Key ${index + place}`], { env: { LOG_LEVEL: level } });
          assert.equal(created.code, 0, created.stderr);
          const secret = created.stdout.trim();
          assert.match(secret, SECRET);
          assert.ok(!created.stderr.includes(secret.slice(17)), `the secret is logged at ${level}`);
        }),
      );
    }
  });

  it('writes JSON lines to stderr at debug, none by default, and leaves stdout alone', async () => {
    const cli = testCli();
    await cli.given('Taken');
    const [debug, byDefault, silent] = await Promise.all(
      ['debug', '', 'silent'].map((level) =>
        cli.runProcess([...CREATE, 'Taken', '--json'], { env: { LOG_LEVEL: level } }),
      ),
    );
    const lines = debug!.stderr.trimEnd().split('\n');
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual([...new Set(logged.map(({ level, name }) => `${String(level)} ${String(name)}`))], ['20 svc-api']);
    assert.ok(logged.some(({ msg }) => msg === 'the command failed'));
    assert.equal((JSON.parse(debug!.stdout) as { code: string }).code, 'NAME_TAKEN');
    assert.deepEqual([byDefault!.stderr, silent!.stderr], ['', '']);
  });

  it('refuses another value before anything is done', async () => {
    const cli = testCli();
    const env = { LOG_LEVEL: 'verbose' };
    const [plain, asJson, serve] = await Promise.all([
      cli.run([...CREATE, 'A key'], { env }),
      cli.run(['apikey', '--delete', '--name', 'A key', '--json'], { env }),
      cli.run(['serve', '--port', '0'], { env }),
    ]);
    const error = 'LOG_LEVEL is "verbose". The levels are trace, debug, info, warn, error, fatal, silent.';
    assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error), code: 2, signal: null });
    assert.deepEqual([JSON.parse(asJson.stdout), asJson.code], [{ deleted: 0, error, code: 'USAGE' }, 2]);
    assert.deepEqual([serve.stderr, serve.code], [errorText('USAGE', error, 'serve'), 2]);
    assert.ok(!existsSync(cli.database));
  });
});
