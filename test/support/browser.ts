import type { Browser } from 'playwright-core';
import { launchWithMemory, launchWithSites, theBrowser } from './browser/launch.ts';
import { Visit } from './browser/visit.ts';
import { needsPrograms } from './skip.ts';

/**
 * A test in a real browser, for `it`:
 *
 *     it('opens', inBrowser(async (visit) => {
 *       const { url } = await visit.serve();
 *       const page = await visit.open(url, { width: 360 });
 *       await expectAccessible(page);
 *     }));
 *
 * Each page that `visit.open` opens has a context of its own, and cookies and storage with it; two pages share one by
 * `visit.context`. When the test ends, it fails if there was any console message, error, failed request, answer from
 * 400 on, issue (violations of the Content-Security-Policy among them) or request to an origin that `visit` has not
 * started, except those of `visit.expectTrouble`. It fails, too, if a text of `visit.isSecret` was in an address, the
 * history, the storage, a cookie that scripts can read, window.name, a console message or the log of the service.
 *
 * Beside it are `browser/accessible.ts` (axe, narrow screens), `browser/keyboard.ts` (forms without a mouse) and
 * `browser/picture.ts` (the pictures of the documentation). Without Chromium, the test is skipped; in CI, it fails.
 */
export function inBrowser(test: (visit: Visit) => Promise<void>): Mocha.AsyncFunc {
  return async function (this: Mocha.Context): Promise<void> {
    needsPrograms(this, 'chromium');
    await visitWith(await theBrowser(), test);
  };
}

/** The same, in its own browser, with the back/forward cache on. */
export function inBrowserWithMemory(test: (visit: Visit) => Promise<void>): Mocha.AsyncFunc {
  return inOwnBrowser(launchWithMemory, test);
}

/**
 * The same, in its own browser, which resolves these hosts to ports of this machine.
 * @param sites the TLS port for each host
 */
export function inBrowserWithSites(
  sites: () => Readonly<Record<string, number>>,
  test: (visit: Visit) => Promise<void>,
): Mocha.AsyncFunc {
  return inOwnBrowser(() => launchWithSites(sites()), test);
}

function inOwnBrowser(launch: () => Promise<Browser>, test: (visit: Visit) => Promise<void>): Mocha.AsyncFunc {
  return async function (this: Mocha.Context): Promise<void> {
    needsPrograms(this, 'chromium');
    const browser = await launch();
    try {
      await visitWith(browser, test);
    } finally {
      await browser.close();
    }
  };
}

async function visitWith(browser: Browser, test: (visit: Visit) => Promise<void>): Promise<void> {
  const visit = new Visit(browser);
  try {
    await test(visit);
    await visit.check();
  } catch (error) {
    // A page's own errors often explain why a test does not find an element.
    for (const trouble of visit.troubles) console.error(`      ${trouble}`);
    throw error;
  } finally {
    await visit.end();
  }
}
