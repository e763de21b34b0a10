import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { tempFolder } from '../../support/temp.ts';

describe('hidden built-in resources', () => {
  it('are not completed', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'resources: [WIKI]\nbuiltinResources: hidden\n');
    const env = { SVC_API_CONFIG: config, COMP_LINE: 'svc-api apikey create --permissions ' };
    const { stdout } = await testCli().runProcess(['autocomplete', 'fish', '--complete'], { env });
    assert.match(stdout, /WIKI:/);
    assert.doesNotMatch(stdout, /DISK:|EDGE:/);
  });
});
