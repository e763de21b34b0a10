import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

/** Sources of pasted commands: pages, examples, and output. */
const FILES = globSync(
  [
    'README.md',
    'CONTRIBUTING.md',
    'docs/**',
    'examples/**',
    'examples/**/.*.yml',
    'src/commands/**',
    'scripts/start.ts',
  ],
  { cwd: ROOT, exclude: ['**/node_modules/**', '**/images/**'] },
).filter((path) => statSync(join(ROOT, path)).isFile());

/** The one-line commands in a text that start with a program. */
function commandsOf(text: string, program: RegExp): string[] {
  const begin = new RegExp(`(?<![\\w.@/-])(?:${program.source})(?![\\w-])[^\\n|\`]*`, 'g');
  return text.replaceAll(/\\+\n\s*/g, ' ').match(begin) ?? [];
}

/** The invalid commands in all files. */
const wrong = (program: RegExp, isWrong: (command: string) => boolean) =>
  FILES.flatMap((path) =>
    commandsOf(readFileSync(join(ROOT, path), 'utf8'), program)
      .filter(isWrong)
      .map((command) => `${path}: ${command}`),
  );

describe('a command in pages, examples or help', () => {
  it('has no secret in the arguments of curl, which all users of a machine can read', () => {
    const named = /\$\{?\w*(?:key|secret|token|code|pass|admin)/i;
    const shows = (command: string) => /Bearer|Basic |svc_\w/.test(command) || named.test(command);
    assert.ok(shows('curl -H "Authorization: Bearer $X"') && shows('curl -d code=$DEVICE_CODE'));
    assert.ok(wrong(/curl/, () => true).length > 10);
    assert.deepEqual(wrong(/curl/, shows), []);
  });

  it('installs no package named svc-api, which is not published yet: see docs/installing.md', () => {
    const install = /(?:npm (?:install|i)|npx --yes|pnpm (?:add|dlx)|yarn (?:add|dlx)|bun add|\w+ plugins install)/;
    const byName = (command: string) => /\ssvc-api(?:@[\w^~.]+)?(?=[\s"']*$|\s+(?!apikey|--version))/.test(command);
    assert.ok(byName('npm install --global svc-api') && byName('yarn add svc-api') && byName('npm i svc-api pg'));
    assert.ok(wrong(install, () => true).length > 10);
    assert.deepEqual(wrong(install, byName), []);
  });
});
