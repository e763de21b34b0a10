import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bareMachine, installPrograms, runOn } from '../support/bare-machine.ts';
import { packedFile, printable } from '../support/host.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const DOCUMENT = readFileSync(join(ROOT, 'docs/installing.md'), 'utf8');
/** The package managers on the page, with the commands for a first install, a second install, and a run. */
const MANAGERS = Array.from(DOCUMENT.matchAll(/^\| (.+) \| `(.+)` \| `(.+)` \| `(.+)` \|$/gm), ([, ...row]) => row);

const PACKAGES: Record<string, Record<string, string>> = {
  'npm 10 to 12': { npm: '10.9.9' },
  pnpm: { pnpm: '12.21.0' },
  'Yarn 1': { yarn: '1.22.22' },
  'Yarn 4': { '@yarnpkg/cli-dist': '4.18.0' },
};

const NODE = dirname(process.execPath);

async function mustRunOn(machine: NodeJS.ProcessEnv, commandLine: string, cwd: string): Promise<string> {
  const { code, stdout, stderr } = await runOn(machine, commandLine, cwd);
  assert.equal(code, 0, printable(`${commandLine}\n${stdout}\n${stderr}`));
  return stdout;
}

describe('the packed package, without Python, make or a compiler', () => {
  let tarball: string;
  before(async () => {
    tarball = packedFile();
    assert.deepEqual(
      MANAGERS.map(([manager]) => manager),
      Object.keys(PACKAGES),
    );
  });

  for (const [manager, first, second, program] of MANAGERS) {
    it(`is installed by ${manager}, and again from the lockfile`, async () => {
      const machine = bareMachine(await installPrograms(PACKAGES[manager!]!), NODE);
      // Yarn 1 keeps root's cache outside the home folder.
      machine['YARN_CACHE_FOLDER'] = join(machine['HOME']!, 'cache');
      const folder = tempFolder();
      copyFileSync(tarball, join(folder, basename(tarball)));
      writeFileSync(join(folder, 'package.json'), '{"name":"consumer","private":true}');
      for (const install of [first!, second!]) {
        await mustRunOn(machine, install, folder);
        const create = `${program} apikey create --name Key --roles GUEST --overwrite --database keys.sqlite`;
        assert.match(await mustRunOn(machine, create, folder), /^svc_\S+\n$/);
        for (const installed of ['node_modules', '.pnp.cjs', '.yarn']) {
          rmSync(join(folder, installed), { recursive: true, force: true });
        }
      }
    });
  }
});
