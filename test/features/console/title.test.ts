import assert from 'node:assert/strict';
import { defaultConfig } from '../../../src/config/default-config.ts';
import { startConsoleService, visitorWith } from './support/console.ts';
import { browse, OPENS_PAGE } from '../../support/door.ts';
import type { TestService } from '../../support/server.ts';

const TITLE = '<b>Acme</b> & "keys"';
const ESCAPED = '&lt;b&gt;Acme&lt;/b&gt; &amp; ';
const PATHS = ['/console/sign-in', '/.svc-api/sign-in', '/device', '/console/', '/console/keys', '/console/nowhere'];

describe('the title of the service', () => {
  let test: TestService;
  const startWith = async (title: string | undefined) => {
    test = await startConsoleService({
      consent: 'both',
      app: { config: { ...defaultConfig(), signIn: 'on', consent: 'both', title } },
    });
  };
  afterEach(() => test.stop());

  /** Pages before and after signing in. */
  const pages = async () => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    return Promise.all(
      PATHS.flatMap((path) => [{}, { cookie: visitor.cookie! }].map((headers) => ({ path, headers }))).map(
        async ({ path, headers }) => ({
          path,
          ...(await browse(`${test.url}${path}`, { headers: { ...OPENS_PAGE, ...headers } })),
        }),
      ),
    );
  };
  const titleIn = (body: string) => /<title>[^<]* · ([^<]*)<\/title>/.exec(body)?.[1];
  const brandIn = (body: string) => /class="brand"[^>]*><strong>([^<]*)<\/strong>/.exec(body)?.[1];

  it('is on each page, as text', async () => {
    await startWith(TITLE);
    let shown = 0;
    for (const { path, status, body } of await pages()) {
      assert.ok(!body.includes('<b>'), path);
      if (status >= 300 && status < 400) continue;
      shown++;
      assert.ok(titleIn(body)?.startsWith(ESCAPED), `${path}: ${body.slice(0, 600)}`);
      assert.ok(brandIn(body)?.startsWith(ESCAPED), path);
    }
    assert.ok(shown > PATHS.length, String(shown));
    const signIn = await browse(`${test.url}/console/sign-in`, { headers: OPENS_PAGE });
    assert.ok(signIn.body.includes(`<h1>Sign in to ${ESCAPED}`), signIn.body);
  });

  it('is svc-api unless there is one', async () => {
    await startWith(undefined);
    for (const { path, status, body } of await pages())
      if (status < 300 || status >= 400) assert.deepEqual([titleIn(body), brandIn(body)], ['svc-api', 'svc-api'], path);
  });
});
