import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Config } from '@oclif/core/config';
import type { PJSON } from '@oclif/core/interfaces';
import { closeTo } from '../../../src/cli/explain/did-you-mean.ts';
import { presentFailure } from '../../../src/cli/explain/present.ts';
import { ROOT } from '../../support/process.ts';

/** The error output of a command in a host with its own name and separator. */
async function shownByHost(id: string, argv: readonly string[], error: Partial<Error>): Promise<string> {
  const pjson = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as PJSON;
  const config = new Config({
    root: ROOT,
    pjson: { ...pjson, oclif: { ...pjson.oclif, bin: 'acme', topicSeparator: ':' } },
  });
  await config.load();
  const thrown = Object.assign(new Error(error.message ?? 'wrong'), { oclif: { exit: 2 }, ...error });
  return presentFailure(thrown, { config, id, argv, columns: undefined }).text;
}

describe('in a host with colons between topics, an error', () => {
  it('has the name and the separator of the host', async () => {
    const text = await shownByHost('apikey:plugins:install', [], { args: [{ name: 'plugin' }] } as Partial<Error>);
    assert.equal(
      text,
      `Error: Missing 1 required arg: plugin. Run: acme apikey:plugins:install PLUGIN
Code: USAGE
Usage: acme apikey:plugins:install PLUGIN [--no-color]
See acme apikey:plugins:install --help`,
    );
  });

  it('names all arguments that are missing', async () => {
    const error = { args: [{ name: 'one' }, { name: 'other' }] } as Partial<Error>;
    const [first] = (await shownByHost('apikey:plugins:install', [], error)).split('\n');
    assert.equal(first, 'Error: Missing 2 required args: one and other. Run: acme apikey:plugins:install PLUGIN');
  });

  it('takes a word after a topic for the command that was meant', async () => {
    const error = { args: ['lst'] } as Partial<Error>;
    const [first] = (await shownByHost('apikey', ['lst'], error)).split('\n');
    assert.match(first!, /^Error: Unknown command: "apikey:lst"\. Did you mean "acme apikey:list"\? The commands of /);
  });

  it('names the command whose words were separated by a space, whatever else is wrong', async () => {
    const errors: object[] = [
      { args: ['create'] },
      { flags: ['--dry-run'] },
      { message: 'Flag --name expects a value' },
    ];
    for (const error of errors) {
      const [line] = (await shownByHost('apikey', ['create', '--name', 'CI'], error)).split('\n');
      assert.equal(line, 'Error: Commands of acme are written with ":" between words: "acme apikey:create".');
    }
  });

  it('takes a later word for a command, too', async () => {
    const error = { args: ['lst'] } as Partial<Error>;
    const [later] = (await shownByHost('apikey', ['--json', 'lst'], error)).split('\n');
    assert.equal(later, 'Error: Unexpected argument: lst. Did you mean "acme apikey:list"?');
  });
});

describe('what may have been meant', () => {
  it('is not looked for where a secret was typed', () => {
    assert.deepEqual(closeTo('svc_0a1B2c3D4e5F_x', ['svc_0a1B2c3D4e5F_y']), []);
    assert.deepEqual(closeTo('svc_0a1B2c3D4e5F', ['svc_0a1B2c3D4e5G']), ['svc_0a1B2c3D4e5G']);
  });
});
