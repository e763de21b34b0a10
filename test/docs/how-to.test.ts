import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/load-config.ts';
import { blockWith } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';

const PAGE = 'docs/how-to/github-actions.md';

describe(PAGE, () => {
  const example = readFileSync(join(ROOT, 'examples/github-actions/hosted.yml'), 'utf8');

  it('has the rule of the example, which is taken', async () => {
    const text = blockWith('federation:', PAGE, 'yaml');
    const ofExample = example.match(/^#   .*$/gm)!.map((line) => line.replace(/^#   /, ''));
    assert.deepEqual(parse(text), parse(ofExample.join('\n')));
    const { federation } = await parseConfig({ path: '/svc-api.yaml', text });
    assert.equal(federation.length, 1);
  });

  it('has the workflow of the example', () => {
    assert.deepEqual(parse(blockWith('jobs:', PAGE, 'yaml')), parse(example));
  });
});
