import assert from 'node:assert/strict';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bareMachine, installPrograms, runOn } from '../support/bare-machine.ts';
import { packPackage } from '../support/host.ts';
import { tempFolder } from '../support/temp.ts';

/** The first install writes a lockfile, the second installs what the lockfile says. */
const MANAGERS: readonly { name: string; program: Record<string, string>; first: string; second: string }[] = [
  { name: 'npm 10', program: { npm: '10.9.9' }, first: 'npm install', second: 'npm ci' },
  { name: 'npm 12', program: { npm: '12.2.0' }, first: 'npm install', second: 'npm ci' },
  { name: 'pnpm', program: { pnpm: '12.21.0' }, first: 'pnpm install', second: 'pnpm install --frozen-lockfile' },
  {
    name: 'Yarn 1',
    program: { yarn: '1.22.22' },
    // Without the option, the cache of root is not in its home.
    first: 'yarn install --cache-folder cache',
    second: 'yarn install --cache-folder cache --frozen-lockfile',
  },
  {
    name: 'Yarn 4',
    program: { '@yarnpkg/cli-dist': '4.18.0' },
    first: 'yarn install',
    second: 'yarn install --immutable',
  },
];

describe('without Python, make or a compiler', () => {
  let tarball: string;
  before(async () => {
    tarball = await packPackage();
  });

  for (const { name, program, first, second } of MANAGERS) {
    it(`${name} installs the package, twice`, async () => {
      const machine = bareMachine(await installPrograms(program), dirname(process.execPath));
      const folder = tempFolder();
      copyFileSync(tarball, join(folder, 'svc-api.tgz'));
      const manifest = { name: 'consumer', private: true, dependencies: { 'svc-api': 'file:./svc-api.tgz' } };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
      writeFileSync(join(folder, '.yarnrc.yml'), 'nodeLinker: node-modules\n');
      const mustRun = async (commandLine: string) => {
        const { code, stdout, stderr } = await runOn(machine, commandLine, folder);
        assert.equal(code, 0, `${stdout}\n${stderr}`);
        return stdout;
      };
      for (const install of [first, second]) {
        await mustRun(install);
        const create =
          'node_modules/.bin/svc-api apikey create --name Key --roles GUEST --overwrite --database keys.sqlite';
        assert.match(await mustRun(create), /^svc_/);
        rmSync(join(folder, 'node_modules'), { recursive: true });
      }
    });
  }
});
