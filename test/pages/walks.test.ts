import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Machine } from '../support/machine.ts';
import { ROOT } from '../support/process.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { walk } from '../support/walk.ts';

describe('pages that are followed from top to bottom', () => {
  before(function () {
    needsRoot(this);
    needsPrograms(this, 'unshare', 'ip', 'curl');
  });

  for (const page of ['docs/tutorials/guard.md', 'docs/tutorials/pipeline.md'])
    it(`${page} shows what is seen`, () => walk(page, new Machine()));

  it('docs/tutorials/app.md shows what is seen', async () => {
    const machine = new Machine();
    const packages = join(machine.folder, 'node_modules');
    mkdirSync(join(packages, '.bin'), { recursive: true });
    symlinkSync(ROOT, join(packages, 'svc-api'));
    symlinkSync(join(ROOT, 'bin/run.js'), join(packages, '.bin/svc-api'));
    symlinkSync(join(ROOT, 'node_modules/express'), join(packages, 'express'));
    await walk('docs/tutorials/app.md', machine, {
      // Its packages are there already.
      adapt: (text) => text.replace(/^npm install .*\n/m, ''),
    });
  });
});
