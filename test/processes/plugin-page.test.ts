import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readDirectly } from '../support/direct.ts';
import { DataFolder } from '../support/plugins.ts';
import { ROOT, runCliWithInput } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { tempFolder } from '../support/temp.ts';

/** The hooks of docs/plugins.md, by the names of their plugins, as JavaScript that makes the feature. */
const EXAMPLES = new Map(
  Array.from(
    readFileSync(join(ROOT, 'docs/plugins.md'), 'utf8').matchAll(/^```js\n(\/\*\* @type.*?)^```$/gms),
    ([, text]) => [
      /name: '([^']+)'/.exec(text!)![1]!,
      `(() => { ${text!.replace(/export default hook;/, 'return hook();')} })()`,
    ],
  ),
);

describe('an example of docs/plugins.md', () => {
  const tried = new Set<string>();
  const database = join(tempFolder(), 'keys.sqlite');
  let data: DataFolder;
  const example = (name: string) => {
    tried.add(name);
    data = new DataFolder();
    data.install(name, `await ${EXAMPLES.get(name)}`);
  };
  const cli = async (words: string, code = 0) => {
    const env = { ...data.env, SVC_API_DATABASE: database };
    const result = await runCliWithInput('', [...words.split(' '), '--json'], { env });
    assert.equal(result.code, code, `${words}: ${result.stdout}${result.stderr}`);
    return JSON.parse(result.stdout) as Record<string, unknown>;
  };

  it('adds a field', async () => {
    example('svc-api-team');
    await cli('apikey create --name A --roles GUEST --team Web --owner Ada');
    assert.equal((await cli('apikey show A'))['team'], 'Web');
  });

  it('adds a step when keys change', async () => {
    example('svc-api-owned');
    assert.equal((await cli('apikey create --name B --roles GUEST', 1))['code'], 'FEATURE_FAILED');
    await cli('apikey create --name B --roles GUEST --owner Ada');
  });

  it('adds a table', async () => {
    example('svc-api-visits');
    await cli('apikey create --name E --roles GUEST --owner Ada');
    assert.deepEqual(await readDirectly(database, 'select visits from plugin_svc_api_visits_counts'), [{ visits: 0 }]);
  });

  it('adds an error code', async () => {
    example('svc-api-owners');
    assert.equal((await cli('apikey create --name D --roles GUEST', 2))['code'], 'OWNER_MISSING');
  });

  it('adds work beside requests', async () => {
    example('svc-api-heartbeat');
    const serve = await startServe(database, ['--port', '0'], data.env);
    await serve.stop();
  });

  it('adds an endpoint', async () => {
    example('svc-api-whoami');
    const { key } = await cli('apikey create --name C --roles ADMIN --owner Ada');
    const serve = await startServe(database, ['--port', '0'], data.env);
    try {
      const answer = await fetch(`${serve.url}/whoami`, { headers: { authorization: `Bearer ${key as string}` } });
      assert.deepEqual(await answer.json(), { name: 'C' });
    } finally {
      await serve.stop();
    }
  });

  it('is tried, each of them', () => assert.deepEqual([...EXAMPLES.keys()].toSorted(), [...tried].toSorted()));
});
