import assert from 'node:assert/strict';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { Keyboard } from '../support/browser/keyboard.ts';
import { theBrowser } from '../support/browser/launch.ts';
import type { Trace } from '../support/browser/recording.ts';
import { Visit } from '../support/browser/visit.ts';

/** Faults of a page, and how the browser reports them. */
const TROUBLES: Readonly<Record<string, readonly [html: string, trouble: RegExp]>> = {
  'a console message': ['<script>console.log("here")</script>', /^console log: here/],
  'an error': ['<script>nothing.here()</script>', /^page error: ReferenceError/],
  'a rejection': ['<script>Promise.reject(new Error("left alone"))</script>', /^page error: Error: left alone/],
  'a request to another origin': ['<img alt="" src="http://127.0.0.2:1/">', /^other origin: http:\/\/127\.0\.0\.2:1\//],
  'a request that fails': ['<img alt="" src="http://127.0.0.2:1/">', /^failed: GET http:\/\/127\.0\.0\.2:1\//],
  'a violation of the policy': [
    `<meta http-equiv="Content-Security-Policy" content="style-src 'none'"><p style="color: red">Red</p>`,
    /^issue ContentSecurityPolicyIssue: .*style-src-attr/,
  ],
  'a violation of Trusted Types': [
    `<meta http-equiv="Content-Security-Policy" content="require-trusted-types-for 'script'">
    <p id="p"></p><script>document.getElementById('p').innerHTML = 'text'</script>`,
    /^issue ContentSecurityPolicyIssue: .*require-trusted-types-for/,
  ],
  'a field without a name': ['<input type="text">', /^issue GenericIssue: .*FormEmptyIdAndNameAttributes/],
};
/** Places where a page can leave a secret. */
const LEAKS: Readonly<Record<string, string>> = {
  'the address': "location.hash = '#SECRET'",
  'the address of a request': "fetch('/?SECRET')",
  'the history': "history.pushState(null, '', '/SECRET'); history.pushState(null, '', '/')",
  'a referrer': "history.replaceState(null, '', '/SECRET'); fetch('/')",
  localStorage: "localStorage.setItem('key', 'SECRET'); localStorage.clear()",
  sessionStorage: "sessionStorage.setItem('SECRET', 'key')",
  'a cookie that scripts can read': "document.cookie = 'key=SECRET'",
  'window.name': "window.name = 'SECRET'",
  'history.state': "history.replaceState({ key: 'SECRET' }, '')",
  'a console message': "console.info('SECRET')",
};
const page = (html: string) => `<!doctype html><html lang="en"><title>Page</title>${html}</html>`;

/** Runs `work` in a new visit. @returns the failure */
async function failureOf(work: (visit: Visit) => Promise<unknown>): Promise<assert.AssertionError> {
  const visit = new Visit(await theBrowser());
  try {
    await work(visit);
    await visit.check();
  } catch (error) {
    if (error instanceof assert.AssertionError) return error;
    throw error;
  } finally {
    await visit.end();
  }
  return assert.fail('Nothing was noticed.');
}
const opens = (html: string) => async (visit: Visit) => visit.open((await visit.site(page(html))).url);

describe('a test in the browser', () => {
  for (const [what, [html, trouble]] of Object.entries(TROUBLES))
    it(
      `fails for ${what}`,
      inBrowser(async () => {
        const { actual } = await failureOf(opens(html));
        assert.ok(
          (actual as string[]).some((line) => trouble.test(line)),
          JSON.stringify(actual),
        );
      }),
    );

  for (const [where, script] of Object.entries(LEAKS))
    it(
      `fails for a secret in ${where}`,
      inBrowser(async () => {
        const { actual } = await failureOf(async (visit) => {
          visit.isSecret('SECRET');
          if (where === 'a console message') visit.expectTrouble(/SECRET/);
          await (await opens('<h1>Page</h1>')(visit)).evaluate(script);
        });
        assert.ok(
          (actual as Trace[]).some((trace) => trace.where === where),
          JSON.stringify(actual),
        );
      }),
    );

  it(
    'fails for a secret in the log of the server',
    inBrowser(async () => {
      const { actual } = await failureOf(async (visit) => {
        const { url } = await visit.serve();
        visit.isSecret(new URL(url).port);
        visit.expectTrouble(/./);
        await visit.open(`${url}/device?user_code=BBBB-BBBB`);
      });
      assert.ok((actual as Trace[]).length > 0);
    }),
  );

  it(
    'fails where an expected trouble does not happen',
    inBrowser(async () => {
      const failure = await failureOf(async (visit) => {
        visit.expectTrouble(/status 404/);
        await opens('<h1>Page</h1>')(visit);
      });
      assert.match(failure.message, /did not happen/);
    }),
  );

  it(
    'fails for inaccessible parts, even if only in the dark or on a narrow screen',
    inBrowser(async () => {
      const failure = await failureOf(async (visit) =>
        expectAccessible(
          await opens(`<h1>Page</h1><style>@media (prefers-color-scheme: dark) { p { color: #ddd } }</style>
            <p>Grey on white</p><div style="width: 500px">Wide</div>`)(visit),
        ),
      );
      assert.match(failure.message, /color-contrast: [^]*\(dark at 1280 px, dark at 360 px\)/);
      assert.match(failure.message, /scrolls sideways: [^]*500px[^]*\(light at 360 px, dark at 360 px\)/);
    }),
  );

  it(
    'fails for an invisible focus',
    inBrowser(async () => {
      for (const style of [
        'outline: none',
        'outline: none; box-shadow: 0 0 3px red',
        'position: fixed; left: -900px',
      ]) {
        const failure = await failureOf(async (visit) =>
          new Keyboard(await opens(`<button style="${style}">Go</button>`)(visit)).stops(),
        );
        assert.match(failure.message, /button "Go" (looks no different with the focus|is hidden or out of sight)/);
      }
    }),
  );
});
