import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { configFile } from '../support/config-file.ts';
import { tempFolder } from '../support/temp.ts';

const ROUTES = 'routes: [{ host: "*", path: /x, allow: key }]\n';

describe('explain', () => {
  const run = async (args: readonly string[], cwd?: string) => {
    const cli = testCli();
    await cli.given('CI', { roles: ['VIEWER'] });
    const env = { SVC_API_CONFIG: configFile(ROUTES) };
    const { stdout, code } = await cli.run(['explain', ...args, '--json'], { env, ...(cwd !== undefined && { cwd }) });
    return { code, json: JSON.parse(stdout) as Record<string, unknown> };
  };

  it('goes by its arguments', async () => {
    assert.equal((await run(['CI', 'DOCKER:READ_ANY'])).json['allowed'], true);
    assert.equal((await run(['GET', 'https://a.example/x'])).json['outcome'], 'refused');
    // No federation rules exist.
    assert.equal((await run(['-'])).json['code'], 'CONFIG_UNAVAILABLE');
    assert.equal((await run(['./missing'])).json['code'], 'CONFIG_UNAVAILABLE');
  });

  it('takes a single word for a file only if there is one', async () => {
    const folder = tempFolder();
    assert.equal((await run(['token'], folder)).json['code'], 'USAGE');
    writeFileSync(join(folder, 'token'), 'x');
    assert.equal((await run(['token'], folder)).json['code'], 'CONFIG_UNAVAILABLE');
  });

  it('names its forms if none fits', async () => {
    for (const args of [[], ['CI'], ['CI', 'deploy'], ['GET', 'a.example'], ['https://a.example/x']]) {
      const { code, json } = await run(args);
      assert.deepEqual([json['code'], code], ['USAGE', 2], args.join(' '));
      assert.match(json['error'] as string, /NAME RESOURCE:ACTION, METHOD URL or FILE\./);
    }
  });

  it('refuses flags of another form by their names', async () => {
    for (const [args, error] of [
      [['CI', 'DOCKER:READ_ANY', '--preflight'], '--preflight cannot be used with NAME RESOURCE:ACTION. Leave it out.'],
      [['./token', '--key', 'CI', '--preflight'], '--key and --preflight cannot be used with FILE. Leave them out.'],
      [
        ['GET', 'https://a.example/x', '--server', 'http://127.0.0.1:9'],
        '--server cannot be used with METHOD URL. Leave it out.',
      ],
    ] as const) {
      const { code, json } = await run(args);
      assert.deepEqual([json, code], [{ error, code: 'USAGE' }, 2]);
    }
  });
});
