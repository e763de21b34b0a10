import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../support/process.ts';

interface Workflow {
  readonly permissions: Record<string, string>;
  readonly jobs: Record<string, { permissions?: Record<string, string>; steps: { uses?: string; run?: string }[] }>;
}

describe('what others made and this project runs', () => {
  it('is held by a hash in the lockfile, each package of it', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { integrity?: string; link?: boolean }>;
    };
    const unheld = Object.entries(packages).filter(([path, entry]) => path !== '' && !entry.link && !entry.integrity);
    assert.deepEqual(
      unheld.map(([path]) => path),
      [],
    );
  });

  it('is held by a commit in each workflow, and what publishes has no other step of it than to fetch the release', () => {
    const workflows = globSync('.github/workflows/*.yml', { cwd: ROOT }).map(
      (path) => parse(readFileSync(join(ROOT, path), 'utf8')) as Workflow,
    );
    const jobs = workflows.flatMap(({ permissions, jobs: all }) =>
      Object.values(all).map((job) => ({ ...job, permissions: job.permissions ?? permissions })),
    );
    assert.ok(jobs.length >= 2);
    for (const { permissions, steps } of jobs) {
      const used = steps.flatMap(({ uses }) => uses ?? []);
      for (const uses of used) assert.match(uses, /^[\w-]+\/[\w-]+@[\da-f]{40}$/);
      const publishes = steps.some(({ run }) => run?.includes('npm publish'));
      assert.deepEqual(permissions, publishes ? { 'id-token': 'write' } : { contents: 'read' });
      if (publishes) assert.ok(!used.some((uses) => uses.startsWith('actions/checkout')));
    }
  });
});
