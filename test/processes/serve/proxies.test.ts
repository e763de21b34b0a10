import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { ASKING } from '../../features/guard/support/forward-auth.ts';
import { finished, startCli } from '../../support/process.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describe('serve, to proxies', () => {
  it('answers by the routes of its configuration, and by the changed ones once it has taken them', async () => {
    const file = join(tempFolder(), 'svc-api.yaml');
    const declare = (allow: string) => writeFileSync(file, `routes: [{ host: "*", path: /x, allow: ${allow} }]\n`);
    declare('open');
    const child = startCli(['serve', '--port', '0', '--config', file], {
      env: { SVC_API_DATABASE: testCli().database, LOG_LEVEL: 'info' },
    });
    const end = finished(child);
    let log = '';
    child.stderr!.on('data', (chunk: string) => (log += chunk));
    const [line] = (await once(child.stdout!, 'data')) as [string];
    const url = line.slice('Listening on '.length).trim();
    const status = async () => {
      const { target, headers } = ASKING.nginx({ target: '/x' });
      return (await sendRaw(url, [`GET ${target} HTTP/1.1`, ...headers, '\r\n'].join('\r\n'))).status;
    };
    assert.equal(await status(), 200);
    declare('key');
    await until(() => log.includes('the configuration was loaded'));
    assert.equal(await status(), 401);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
  });
});
